package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// RecordStore implements records.Store: one table per type, each with the whole
// JSON and what the migrations derive from it.
type RecordStore struct {
	db           *DB
	unfencedLoan func()
	longLists    chan struct{} // has an element for each that is under way
}

var _ records.Store = (*RecordStore)(nil)

// NewRecordStore returns the record store of all tenants in db. unfencedLoan is
// called after each write here that made a loan open: the check-out lock did not
// guard it.
func NewRecordStore(db *DB, unfencedLoan func()) *RecordStore {
	longLists := make(chan struct{}, max(1, db.pool.Config().MaxConns/2))
	return &RecordStore{db: db, unfencedLoan: unfencedLoan, longLists: longLists}
}

// tableMark stands for the type's table in a statement.
const tableMark = "{table}"

// tableQuery puts the tenant's schema and the type's table into a statement.
func tableQuery(ctx context.Context, statement, table string) (string, error) {
	return query(ctx, strings.ReplaceAll(statement, tableMark, schemaMark+"."+pgx.Identifier{table}.Sanitize()))
}

const getRecordSQL = `SELECT jsonb FROM {table} WHERE id = $1::uuid`

// Get implements records.Store.
func (s *RecordStore) Get(ctx context.Context, t records.Type, id string) (json.RawMessage, error) {
	statement, err := tableQuery(ctx, getRecordSQL, t.Table)
	if err != nil {
		return nil, err
	}
	var doc json.RawMessage
	err = s.db.read(ctx, func() error { return s.db.pool.QueryRow(ctx, statement, id).Scan(&doc) })
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, notFound(t, id)
	}
	return doc, toFault("reading a "+t.Name, err)
}

func notFound(t records.Type, id string) error {
	return fault.New(fault.NotFound, "Not found: there is no %s with id %s", t.Name, id)
}
