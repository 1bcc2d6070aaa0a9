package pgtest

import (
	"context"
	"encoding/json"

	"checkoutlock/circulation-storage/internal/records"
)

// Listed is a page of records with how many match in all.
type Listed struct {
	Records []json.RawMessage
	Total   int
}

// Begin implements records.Sink.
func (l *Listed) Begin(total int) error {
	l.Total = total
	return nil
}

// Record implements records.Sink.
func (l *Listed) Record(doc json.RawMessage) error {
	l.Records = append(l.Records, doc)
	return nil
}

// List returns a page of a store's records.
func List(ctx context.Context, store records.Store, t records.Type, p records.Page) (Listed, error) {
	var l Listed
	err := store.List(ctx, t, p, &l)
	return l, err
}
