package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// Create implements records.Store.
func (s *RecordStore) Create(ctx context.Context, t records.Type, r records.Record) (json.RawMessage, error) {
	var stored json.RawMessage
	err := s.write(ctx, t, "creating a "+t.Name, func(w *recordWrite) (err error) {
		stored, err = w.put(ctx, insertRecordSQL, r, nil)
		return err
	})
	return stored, err
}

// Update implements records.Store.
func (s *RecordStore) Update(ctx context.Context, t records.Type, r records.Record) error {
	return s.write(ctx, t, "updating a "+t.Name, func(w *recordWrite) error {
		if err := w.lockHoldings(ctx, r); err != nil {
			return err
		}
		stored, err := w.lock(ctx, r.ID())
		switch {
		case fault.Is(err, fault.NotFound) && t.Upsert:
			_, err = w.put(ctx, insertRecordSQL, r, nil)
			if _, constraint := sqlState(err); constraint == t.Table+"_pkey" {
				return fmt.Errorf("created meanwhile: %w", errRunAgain)
			}
			return err
		case err != nil:
			return err
		}
		if _, err := w.put(ctx, updateRecordSQL, r, stored); err != nil {
			return err
		}
		return w.deriveItems(ctx, stored)
	})
}

// recordWrite is one transaction that writes a record of type t. Rows are locked
// in one order everywhere: lock row, holdings, item, loan.
type recordWrite struct {
	tx   pgx.Tx
	t    records.Type
	read map[string]records.Record // what rules read, by table and id; locked
	now  time.Time                 // the database's clock, zero until it was read
	// opened tells that a loan was written as open that was not open before.
	opened bool
}

func (s *RecordStore) write(ctx context.Context, t records.Type, op string, fn func(*recordWrite) error) error {
	opened := false
	err := s.db.runTx(ctx, s.db.pool, shortTx, op, func(tx pgx.Tx) error {
		w := &recordWrite{tx: tx, t: t, read: map[string]records.Record{}}
		if err := w.lockSettingsVersion(ctx); err != nil {
			return err
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

// queryRow runs a statement that returns one JSON document.
func (w *recordWrite) queryRow(ctx context.Context, statement, table string, doc *json.RawMessage, args ...any) error {
	statement, err := tableQuery(ctx, statement, table)
	if err != nil {
		return err
	}
	return w.tx.QueryRow(ctx, statement, args...).Scan(doc)
}

const (
	readRecordSQL = `SELECT jsonb FROM {table} WHERE id = $1::uuid FOR SHARE`
	lockRecordSQL = `SELECT jsonb FROM {table} WHERE id = $1::uuid FOR NO KEY UPDATE`
)

// Read implements records.Reader.
func (w *recordWrite) Read(ctx context.Context, table, id string) (records.Record, error) {
	key := table + "/" + id
	if r, ok := w.read[key]; ok {
		return r, nil
	}
	var doc json.RawMessage
	err := w.queryRow(ctx, readRecordSQL, table, &doc, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fault.New(fault.NotFound, "Not found: there is no %s with id %s", table, id)
	}
	if err != nil {
		return nil, err
	}
	r, err := records.Decode(doc)
	w.read[key] = r
	return r, err
}

// lock returns the stored record and keeps it from changing. Fault: NotFound.
func (w *recordWrite) lock(ctx context.Context, id string) (records.Record, error) {
	var doc json.RawMessage
	err := w.queryRow(ctx, lockRecordSQL, w.t.Table, &doc, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, notFound(w.t, id)
	}
	if err != nil {
		return nil, err
	}
	return records.Decode(doc)
}

const (
	insertRecordSQL = `INSERT INTO {table} (id, jsonb) VALUES ($1::uuid, $2::jsonb) RETURNING jsonb`
	updateRecordSQL = `UPDATE {table} SET jsonb = $2::jsonb WHERE id = $1::uuid RETURNING jsonb`
)

// put completes a record by its type's rules and writes it over stored, which is
// nil for a new one.
func (w *recordWrite) put(ctx context.Context, statement string, r, stored records.Record) (json.RawMessage, error) {
	r = maps.Clone(r) // the transaction may run again
	if err := w.complete(ctx, w.t, r, stored); err != nil {
		return nil, err
	}
	doc, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	var written json.RawMessage
	// As a string: a connection in exec mode takes []byte for a bytea.
	if err := w.queryRow(ctx, statement, w.t.Table, &written, r.ID(), string(doc)); err != nil {
		return nil, w.violated(err, r)
	}
	w.opened = w.t.Table == records.Loan().Table && records.OpenLoan(r) && !records.OpenLoan(stored)
	return written, w.settingsChanged(ctx, stored, r)
}

// complete applies the rules of t to a record that replaces stored.
func (w *recordWrite) complete(ctx context.Context, t records.Type, r, stored records.Record) error {
	if w.now.IsZero() {
		if err := w.tx.QueryRow(ctx, clockSQL).Scan(&w.now); err != nil {
			return fmt.Errorf("reading the clock: %w", err)
		}
	}
	return t.Complete(ctx, w, records.Write{Record: r, Stored: stored, Now: w.now, UserID: okapi.FromContext(ctx).UserID})
}

// violation keeps PostgreSQL's error beside the fault that explains it.
type violation struct{ fault, cause error }

func (v violation) Error() string   { return v.fault.Error() }
func (v violation) Unwrap() []error { return []error{v.fault, v.cause} }

// violated explains a broken constraint; other errors pass.
func (w *recordWrite) violated(err error, r records.Record) error {
	switch code, constraint := sqlState(err); code {
	case uniqueViolation, foreignKeyViolation:
		if f := w.t.Violation(constraint, r); f != nil {
			return violation{fault: f, cause: err}
		}
	}
	return err
}

// holdsSettings is true for the type whose records may be the lock settings.
func holdsSettings(t records.Type) bool { return t.Table == records.SettingsEntry().Table }

// lockSettingsVersion locks the version of the lock settings before any settings
// entry, as LockSettingsStore does: the other way round, the two deadlock.
func (w *recordWrite) lockSettingsVersion(ctx context.Context) error {
	if !holdsSettings(w.t) {
		return nil
	}
	return lockSettingsTable(ctx, w.tx)
}

// settingsChanged raises the version of the lock settings, and notes who did it,
// when a record is or was the entry that holds them; nil is no record.
func (w *recordWrite) settingsChanged(ctx context.Context, before, after records.Record) error {
	if !holdsSettings(w.t) || !records.LockSettings(before) && !records.LockSettings(after) {
		return nil
	}
	var entry *string
	if records.LockSettings(before) {
		doc, err := json.Marshal(before)
		if err != nil {
			return fmt.Errorf("writing JSON: %w", err)
		}
		text := string(doc)
		entry = &text
	}
	var b batch
	b.one(raiseVersionSQL, nil)
	if records.DecidesLock(after) {
		b.one(dropAnnouncementSQL, nil)
	}
	b.noteSettings(ctx, lock.Note{}, entry)
	return b.send(ctx, w.tx)
}
