package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// RecordStore implements records.Store: one table per type, each with the whole
// JSON and what the migrations derive from it. It also keeps the circulation rules and the
// automated patron blocks.
type RecordStore struct {
	db           *DB
	unfencedLoan func()
	long         places
}

// NewRecordStore returns the record store of all tenants in db. It calls unfencedLoan
// after each write that opened a loan, because the check-out lock did not guard that.
func NewRecordStore(db *DB, unfencedLoan func()) *RecordStore {
	return &RecordStore{db: db, unfencedLoan: unfencedLoan, long: make(places, max(1, db.conns.Ordinary.Config().MaxConns/2))}
}

// places bounds the calls that use a connection for long, so that short ones find a free one. It has
// an element for each that is under way.
type places chan struct{}

// placesPause is the Retry-After of a call without a place.
const placesPause = time.Second

// take takes a place. Fault: Overloaded with the message if there is none.
func (p places) take(message string) error {
	select {
	case p <- struct{}{}:
		return nil
	default:
		return &fault.Error{Code: fault.Overloaded, RetryAfter: placesPause, Msg: message}
	}
}

// free gives a place up.
func (p places) free() { <-p }

const getRecordSQL = `SELECT jsonb FROM {table} WHERE id = $1::uuid`

// Get implements records.Store.
func (s *RecordStore) Get(ctx context.Context, t records.Type, id string) (json.RawMessage, error) {
	var doc json.RawMessage
	err := s.db.lookUpRow(ctx, s.db.conns.Ordinary, "reading a "+t.Name, nameTable(getRecordSQL, t.Table), []any{id}, &doc)
	if err != nil {
		return nil, explainNoRow(err, errNoRecord(t.Name, id))
	}
	return doc, nil
}

func errNoRecord(name, id string) error {
	return fault.New(fault.NotFound, "Not found: there is no %s with id %s", name, id)
}

// recordWrite is one transaction that writes records of type t. See lockRows for the
// order in which it locks rows.
type recordWrite struct {
	tx   pgx.Tx
	t    records.Type
	read map[string]records.Record // what rules read, by table and id; locked
	now  time.Time                 // the database's clock, zero until it was read
	// opened means that a loan was written as open that was not open before.
	opened bool
}

// writeRecords runs fn in one transaction. A write of settings locks their version
// first, as LockSettingsStore does: in the other order the two deadlock.
func (s *RecordStore) writeRecords(ctx context.Context, t records.Type, op string, fn func(*recordWrite) error) error {
	opened := false
	err := s.db.runTx(ctx, s.db.conns.Ordinary, shortTx, op, func(tx pgx.Tx) error {
		w := &recordWrite{tx: tx, t: t, read: map[string]records.Record{}}
		if holdsSettings(t) {
			if err := lockSettingsTable(ctx, tx); err != nil {
				return err
			}
		}
		err := fn(w)
		opened = w.opened
		return err
	})
	if err == nil && opened {
		s.unfencedLoan()
	}
	return err
}

// Read implements records.Reader.
func (w *recordWrite) Read(ctx context.Context, table, id string) (records.Record, error) {
	key := table + "/" + id
	if r, ok := w.read[key]; ok {
		return r, nil
	}
	r, err := w.readLocked(ctx, shareRecordSQL, table, table, id)
	if err == nil {
		w.read[key] = r
	}
	return r, err
}

// readLocked returns the record that a statement locks. Fault: NotFound, with the name
// of the type.
func (w *recordWrite) readLocked(ctx context.Context, statement, table, name, id string) (records.Record, error) {
	var doc json.RawMessage
	err := scanRow(ctx, w.tx, nameTable(statement, table), []any{id}, &doc)
	if err != nil {
		return nil, explainNoRow(err, errNoRecord(name, id))
	}
	return decodeStored(doc)
}

// completeRecord applies the rules of t to a record that replaces stored.
func (w *recordWrite) completeRecord(ctx context.Context, t records.Type, r, stored records.Record) error {
	if w.now.IsZero() {
		if err := scanRow(ctx, w.tx, clockSQL, nil, &w.now); err != nil {
			return fmt.Errorf("reading the clock: %w", err)
		}
	}
	return t.Complete(ctx, w, records.Write{Record: r, Stored: stored, Now: w.now, UserID: okapi.FromContext(ctx).UserID})
}

// lockRecords returns the records that a statement locks, one JSON each.
func (w *recordWrite) lockRecords(ctx context.Context, statement string, arg any) ([]records.Record, error) {
	found, err := collectRows(ctx, w.tx, statement, []any{arg}, scanRecord)
	if err != nil {
		return nil, fmt.Errorf("locking rows: %w", err)
	}
	return found, nil
}
