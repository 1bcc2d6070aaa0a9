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
}

var _ records.Store = (*RecordStore)(nil)

// NewRecordStore returns the record store of all tenants in db. unfencedLoan is
// called after each write here that made a loan open: the check-out lock did not
// guard it.
func NewRecordStore(db *DB, unfencedLoan func()) *RecordStore {
	return &RecordStore{db: db, unfencedLoan: unfencedLoan}
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

// listRecordsSQL answers page and total from one snapshot. The page is joined to
// the total, so that an empty one has a total too. The id comes last in every
// order: without it, two pages could show the same record.
const listRecordsSQL = `
SELECT counted.total, page.jsonb
  FROM (SELECT {total} AS total) AS counted
  LEFT JOIN (SELECT jsonb, row_number() OVER () AS place
               FROM (SELECT jsonb FROM {table} WHERE {where} ORDER BY {order}id OFFSET {offset} LIMIT {limit}) AS ordered
            ) AS page ON true
 ORDER BY page.place`

const countRecordsSQL = `(SELECT count(*) FROM {table} WHERE {where})`

// List implements records.Store.
func (s *RecordStore) List(ctx context.Context, t records.Type, p records.Page) (records.List, error) {
	statement, args, err := listStatement(t, p)
	if err != nil {
		return records.List{}, err
	}
	if statement, err = tableQuery(ctx, statement, t.Table); err != nil {
		return records.List{}, err
	}
	list := records.List{Records: []json.RawMessage{}}
	var doc *json.RawMessage
	rows, _ := s.db.pool.Query(ctx, statement, args...) // a Query error surfaces in ForEachRow
	_, err = pgx.ForEachRow(rows, []any{&list.Total, &doc}, func() error {
		if doc != nil {
			list.Records = append(list.Records, *doc)
		}
		return nil
	})
	if err != nil {
		return records.List{}, toFault("listing "+t.Collection, err)
	}
	return list, nil
}

// listStatement writes the statement for a page, still without schema and table.
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
