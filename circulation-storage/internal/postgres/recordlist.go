package postgres

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// listRecordsSQL returns page and total from one snapshot. The page is joined to the
// total, so that an empty page has a total too. The id ends every order: without it, two
// pages could show the same record.
const listRecordsSQL = `
SELECT counted.total, page.jsonb
  FROM (SELECT {total} AS total) AS counted
  LEFT JOIN (SELECT jsonb, row_number() OVER () AS place
               FROM (SELECT jsonb FROM {table} WHERE {where} ORDER BY {order}id OFFSET {offset} LIMIT {limit}) AS ordered
            ) AS page ON true
 ORDER BY page.place`

const countRecordsSQL = `(SELECT count(*) FROM {table} WHERE {where})`

// List implements records.Store.
func (s *RecordStore) List(ctx context.Context, t records.Type, p records.Page, out records.Sink) error {
	statement, args, err := listStatement(t, p)
	if err != nil {
		return err
	}
	if statement, err = nameSchema(ctx, nameTable(statement, t.Table)); err != nil {
		return err
	}
	l := &listing{out: out, long: s.longLists}
	defer l.freePlace()
	var broken error // after a part was given to out, the query must not run again
	err = s.db.read(ctx, func() error {
		err := l.readRows(ctx, func(ctx context.Context) pgx.Rows {
			rows, _ := s.db.pool.Query(ctx, statement, args...) // a Query error surfaces in ForEachRow
			return rows
		})
		if l.begun {
			broken = err
			return nil
		}
		return err
	})
	if err == nil {
		err = broken
	}
	return toFault("listing "+t.Collection, err)
}

const (
	// heldBytes is how much of a page is read before any of it is given to the sink. A
	// shorter page releases its connection before its client reads.
	heldBytes = 1 << 20
	// longListPause is the Retry-After of a long page without a place.
	longListPause = time.Second
)

// listing is a page on its way from PostgreSQL to a sink. It holds at most heldBytes and
// one record. A longer page uses a connection while its client reads. So it needs one of
// the places of long pages, which leave the other connections to short reads.
type listing struct {
	out   records.Sink
	long  chan struct{}
	total int
	held  []json.RawMessage
	size  int
	begun bool // out has a part of it
	place bool // it has a place of a long page
}

// readRows gives the rows of query to the sink.
func (l *listing) readRows(ctx context.Context, query func(context.Context) pgx.Rows) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.held, l.size = nil, 0 // the query may run twice
	var doc *json.RawMessage
	_, err := pgx.ForEachRow(query(ctx), []any{&l.total, &doc}, func() error {
		if doc == nil {
			return nil
		}
		err := l.addRecord(*doc)
		if err != nil {
			cancel() // else pgx reads the remaining rows
		}
		return err
	})
	if err != nil || l.begun {
		return err
	}
	return l.giveHeld()
}

// addRecord holds a record, or gives it to the sink once the page has begun there.
func (l *listing) addRecord(doc json.RawMessage) error {
	if l.begun {
		return l.out.Record(doc)
	}
	l.held = append(l.held, doc)
	if l.size += len(doc); l.size < heldBytes {
		return nil
	}
	select {
	case l.long <- struct{}{}:
		l.place = true
	default:
		return &fault.Error{
			Code: fault.Overloaded, RetryAfter: longListPause,
			Msg: "Too many long lists are being read: try again, or ask for less with limit and offset",
		}
	}
	return l.giveHeld()
}

// giveHeld gives what is held to the sink.
func (l *listing) giveHeld() error {
	l.begun = true
	if err := l.out.Begin(l.total); err != nil {
		return err
	}
	for _, doc := range l.held {
		if err := l.out.Record(doc); err != nil {
			return err
		}
	}
	l.held = nil
	return nil
}

// freePlace gives up the place of a long page, if it has one.
func (l *listing) freePlace() {
	if l.place {
		<-l.long
	}
}

// listStatement returns the statement for a page, with marks for schema and table.
func listStatement(t records.Type, p records.Page) (string, []any, error) {
	sel, err := parseCQL(t, p.Query)
	if err != nil {
		return "", nil, err
	}
	w := cqlWriter{args: sel.args}
	total := countRecordsSQL
	if p.NoTotal {
		total = "0::bigint"
	}
	statement := strings.NewReplacer("{total}", total, "{order}", sel.order,
		"{offset}", w.bind(p.Offset, "bigint"), "{limit}", w.bind(p.Limit, "bigint")).Replace(listRecordsSQL)
	return strings.ReplaceAll(statement, "{where}", sel.where), w.args, nil
}
