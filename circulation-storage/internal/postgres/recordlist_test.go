package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/database"
	"checkoutlock/schemas/fault"
)

// countedRows are rows of a list's statement, all with the same record.
type countedRows struct {
	doc    json.RawMessage
	left   int
	read   int
	ended  bool
	broken error // after the last one
}

func (r *countedRows) Next() bool {
	if r.ended = r.left == 0; r.ended {
		return false
	}
	r.left--
	r.read++
	return true
}

func (r *countedRows) Scan(dest ...any) error {
	*dest[0].(*int) = 7
	*dest[1].(**json.RawMessage) = &r.doc
	return nil
}

func (r *countedRows) Err() error                                   { return r.broken }
func (r *countedRows) Close()                                       {}
func (r *countedRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (r *countedRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (r *countedRows) Values() ([]any, error)                       { return nil, nil }
func (r *countedRows) RawValues() [][]byte                          { return nil }
func (r *countedRows) Conn() *pgx.Conn                              { return nil }
func (r *countedRows) TypeMap() *pgtype.Map                         { return nil }

// funcSink calls functions; nil is none.
type funcSink struct {
	begin  func(total int) error
	record func() error
	begun  int
	got    int
}

func (s *funcSink) Begin(total int) error {
	s.begun++
	if s.begin == nil {
		return nil
	}
	return s.begin(total)
}

func (s *funcSink) Record(json.RawMessage) error {
	s.got++
	if s.record == nil {
		return nil
	}
	return s.record()
}

func TestListing_HoldsABoundedPartOfALongPage(t *testing.T) {
	t.Parallel()
	const size, all = 1 << 10, 100_000
	rows := &countedRows{doc: json.RawMessage(strings.Repeat("1", size)), left: all}
	most := 0
	out := &funcSink{}
	out.record = func() error {
		most = max(most, rows.read-out.got)
		return nil
	}
	if err := postgres.GiveRows(t.Context(), rows, out); err != nil || out.got != all || out.begun != 1 {
		t.Fatalf("got %d records and %d beginnings, %v, want %d and 1", out.got, out.begun, err, all)
	}
	if limit := 1 << 20 / size; most > limit {
		t.Errorf("held %d records, want at most %d", most, limit)
	}
}

func TestListing_GivesAShortPageWhenItsConnectionIsFree(t *testing.T) {
	t.Parallel()
	rows := &countedRows{doc: json.RawMessage(`{}`), left: 1000}
	out := &funcSink{begin: func(total int) error {
		if !rows.ended || total != 7 {
			t.Errorf("begun with %d rows left and a total of %d, want none and 7", rows.left, total)
		}
		return nil
	}}
	if err := postgres.GiveRows(t.Context(), rows, out); err != nil || out.got != 1000 {
		t.Errorf("got %d records, %v, want 1000", out.got, err)
	}
}

func TestListing_EndsAtAnError(t *testing.T) {
	t.Parallel()
	failure := errors.New("failure")
	fail := func() error { return failure }
	doc := json.RawMessage(strings.Repeat("1", 1<<10))
	tests := []struct {
		name       string
		rows       *countedRows
		out        *funcSink
		begun, got int
	}{
		{
			name: "of a short page's rows, before it is begun", rows: &countedRows{doc: doc, left: 10, broken: failure},
			out: &funcSink{}, begun: 0, got: 0,
		},
		{
			name: "of a long page's rows", rows: &countedRows{doc: doc, left: 2000, broken: failure}, out: &funcSink{}, begun: 1,
			got: 2000,
		},
		{
			name: "of the sink at the beginning", rows: &countedRows{doc: doc, left: 2000},
			out: &funcSink{begin: func(int) error { return failure }}, begun: 1, got: 0,
		},
		{
			name: "of the sink at a record", rows: &countedRows{doc: doc, left: 2000}, out: &funcSink{record: fail}, begun: 1,
			got: 1,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := postgres.GiveRows(t.Context(), tt.rows, tt.out)
			if !errors.Is(err, failure) || tt.out.begun != tt.begun || tt.out.got != tt.got {
				t.Errorf("got %v, %d beginnings and %d records, want %d and %d", err, tt.out.begun, tt.out.got, tt.begun, tt.got)
			}
		})
	}
}

const longRecordsSQL = `INSERT INTO %s.material_type (id, jsonb)
SELECT id, jsonb_build_object('id', id, 'name', id, 'ours', repeat('x', 500000))
  FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, $1)) AS new`

// longPage is a tenant with n material types of 500 KB.
func longPage(t *testing.T, n int) library {
	t.Helper()
	l := newLibrary(t)
	if _, err := l.db.Pool().Exec(l.in(t), fmt.Sprintf(longRecordsSQL, postgres.SchemaName(l.id)), n); err != nil {
		t.Fatal(err)
	}
	return l
}

// A pool of its own has eight connections for records, so four long pages have a place.
func TestRecordStore_List_LeavesConnectionsToShortPages(t *testing.T) {
	t.Parallel()
	l := longPage(t, 4).alone(t)
	begun, proceed := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 4)
	for range 4 {
		go func() {
			out := &funcSink{begin: func(int) error {
				begun <- struct{}{}
				<-proceed
				return nil
			}}
			ended <- l.store.List(l.in(t), records.MaterialType, records.Page{Limit: 1<<31 - 1}, out)
		}()
	}
	for range 4 {
		<-begun
	}
	var f *fault.Error
	_, err := pgtest.List(l.in(t), l.store, records.MaterialType, records.Page{Limit: 1<<31 - 1})
	if !errors.As(err, &f) || f.Code != fault.Overloaded || f.RetryAfter != time.Second {
		t.Errorf("the fifth long page: got %v, want %s and a pause", err, fault.Overloaded)
	}
	if list, err := pgtest.List(l.in(t), l.store, records.MaterialType, records.Page{Limit: 1}); err != nil ||
		len(list.Records) != 1 {
		t.Errorf("a short page: got %d records, %v, want 1", len(list.Records), err)
	}
	close(proceed)
	for range 4 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if list, err := pgtest.List(l.in(t), l.store, records.MaterialType, records.Page{Limit: 1<<31 - 1}); err != nil ||
		len(list.Records) != 4 {
		t.Errorf("after them: got %d records, %v, want 4", len(list.Records), err)
	}
}

const endReadersSQL = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() ` +
	`AND query LIKE $1::text`

// A page of which the sink has a part must not begin anew on another connection.
func TestRecordStore_List_EndsWithAnErrorWhenTheConnectionIsLostHalfWay(t *testing.T) {
	t.Parallel()
	l := longPage(t, 60) // 30 MB, more than the buffers of a connection hold
	out := &funcSink{}
	out.record = func() error {
		if out.got > 1 {
			return nil
		}
		ctx := context.WithoutCancel(l.in(t))
		_, err := l.db.Pool().Exec(ctx, endReadersSQL, "%"+postgres.SchemaName(l.id)+"%row_number%")
		return err
	}
	err := l.store.List(l.in(t), records.MaterialType, records.Page{Limit: 1<<31 - 1}, out)
	if err == nil || out.begun != 1 || out.got == 60 {
		t.Errorf("got %v, %d beginnings and %d records, want an error after a part", err, out.begun, out.got)
	}
}

// The view calls a function whenever a statement on it is planned. It ends the connection of each first
// of two estimates.
const loseEstimatesSQL = `
CREATE SEQUENCE S.estimates;
CREATE FUNCTION S.lose_estimate() RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF current_query() LIKE 'EXPLAIN%' AND nextval('S.estimates') % 2 = 1 THEN
        PERFORM pg_terminate_backend(pg_backend_pid());
    END IF;
    RETURN true;
END
$$;
ALTER TABLE S.material_type RENAME TO stored_type;
CREATE VIEW S.material_type AS SELECT * FROM S.stored_type WHERE S.lose_estimate()`

const typesOfAKilobyteSQL = `INSERT INTO S.material_type (id, jsonb)
SELECT id, jsonb_build_object('id', id, 'name', id, 'ours', repeat('x', 1000))
  FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, 1200)) AS new`

// Each query runs twice, and there are four places.
func TestRecordStore_List_TakesOnePlaceWhenTheQueryRunsAgain(t *testing.T) {
	t.Parallel()
	l := newLibrary(t).alone(t)
	l.executeStatements(t, typesOfAKilobyteSQL, loseEstimatesSQL)
	for n := range 5 {
		list, err := pgtest.List(l.in(t), l.store, records.MaterialType, records.Page{Limit: 1<<31 - 1})
		if err != nil || len(list.Records) != 1200 {
			t.Errorf("list %d: got %d records, %v, want 1200", n+1, len(list.Records), err)
		}
	}
	var estimates int
	row := l.db.Pool().QueryRow(t.Context(), l.sql("SELECT last_value FROM S.estimates"))
	if err := row.Scan(&estimates); err != nil || estimates != 10 {
		t.Errorf("got %d estimates, %v, want two for each list", estimates, err)
	}
}

// The smallest DATABASE_MAX_CONNS has one connection for records, which the page uses.
func TestRecordStore_List_EstimatesWithOneConnectionForRecords(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.executeStatements(t, typesOfAKilobyteSQL)
	db, err := postgres.Open(t.Context(), database.Settings{URL: pgtest.URL(t), MaxConns: 2},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	ctx, cancel := context.WithTimeout(l.in(t), 20*time.Second)
	defer cancel()
	store := postgres.NewRecordStore(db, func() {})
	list, err := pgtest.List(ctx, store, records.MaterialType, records.Page{Limit: 1<<31 - 1})
	if err != nil || len(list.Records) != 1200 {
		t.Errorf("got %d records, %v, want 1200", len(list.Records), err)
	}
}
