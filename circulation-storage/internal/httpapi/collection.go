package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// collectionWriter writes a page as FOLIO's module for the type does, with the
// names in alphabetical order. It implements records.Sink.
type collectionWriter struct {
	w        io.Writer
	settings bool   // the envelope is that of mod-settings
	key      string // of the list
	noTotal  bool

	total   int
	started bool // a record is written
	record  bytes.Buffer
}

// writesTotalFirst reports whether the total stands before the list.
func (p *collectionWriter) writesTotalFirst() bool { return !p.settings && "totalRecords" < p.key }

func (p *collectionWriter) Begin(total int) error {
	p.total = total
	head := ""
	if p.writesTotalFirst() && !p.noTotal {
		head = fmt.Sprintf(`"totalRecords":%d,`, total)
	}
	_, err := fmt.Fprintf(p.w, `{%s%q:[`, head, p.key)
	return err
}

func (p *collectionWriter) Record(doc json.RawMessage) error {
	p.record.Reset()
	if p.started {
		p.record.WriteByte(',')
	}
	p.started = true
	if err := json.Compact(&p.record, doc); err != nil {
		return fmt.Errorf("reading a stored record: %w", err)
	}
	_, err := p.w.Write(p.record.Bytes())
	return err
}

// finish writes what stands after the list.
func (p *collectionWriter) finish() error {
	tail := ""
	switch {
	case p.settings:
		tail = fmt.Sprintf(`,"resultInfo":{"diagnostics":[],"totalRecords":%d}`, p.total)
	case !p.writesTotalFirst() && !p.noTotal:
		tail = fmt.Sprintf(`,"totalRecords":%d`, p.total)
	}
	_, err := fmt.Fprintf(p.w, "]%s}\n", tail)
	return err
}
