package database_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/database"
	"checkoutlock/devpostgres/testserver"
)

// readInBatch returns the settings in the first batch of a transaction, whose first statements are
// given.
func readInBatch(t *testing.T, db *database.DB, b database.Bounds, first ...string) (got string) {
	t.Helper()
	read := func(_ database.Querier, batch *pgx.Batch) error {
		for _, statement := range first {
			batch.Queue(statement, "x")
		}
		batch.Queue(settingsSQL).QueryRow(func(row pgx.Row) error { return row.Scan(&got) })
		return nil
	}
	nothing := func(database.Querier, *pgx.Batch) error { return nil }
	err := db.InTwoBatches(t.Context(), db.Urgent, b, read, func() (database.Fill, error) { return nothing, nil })
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestDB_CommitsInTwoBatchesWhollyOrNotAtAll(t *testing.T) {
	t.Parallel()
	db := openWith(t, "application_name", "batches", 0)
	table := "batches_" + rand.Text()
	execute(t, testserver.URL(t), `CREATE TABLE `+table+` (n integer PRIMARY KEY)`)
	t.Cleanup(func() { execute(t, testserver.URL(t), `DROP TABLE `+table) })
	refused := errors.New("refused")
	insert := func(numbers ...int) database.Fill {
		return func(_ database.Querier, batch *pgx.Batch) error {
			for _, n := range numbers {
				batch.Queue(`INSERT INTO `+table+` VALUES ($1)`, n)
			}
			return nil
		}
	}
	for _, tt := range []struct {
		name   string
		read   database.Fill
		write  database.Fill
		refuse error
		leave  bool // the caller leaves between the batches
		state  string
		err    error
		want   int
	}{
		{name: "both batches", read: insert(1), write: insert(2), want: 2},
		{name: "a refusal", read: insert(1), refuse: refused, err: refused},
		{name: "a statement of the first that fails", read: insert(1, 1), state: database.UniqueViolation},
		{name: "a statement of the second that fails", read: insert(1), write: insert(2, 1), state: database.UniqueViolation},
		{name: "a caller that has left", read: insert(1), write: insert(2), leave: true, err: context.Canceled},
		{
			name: "a batch that cannot be filled", read: insert(1), err: refused,
			write: func(database.Querier, *pgx.Batch) error { return refused },
		},
	} {
		ctx, leave := context.WithCancel(t.Context())
		err := db.InTwoBatches(ctx, db.Urgent, database.Bounds{}, tt.read, func() (database.Fill, error) {
			if tt.leave {
				leave()
			}
			return tt.write, tt.refuse
		})
		leave()
		if state, _ := database.SQLState(err); state != tt.state || tt.err != nil && !errors.Is(err, tt.err) ||
			(err == nil) != (tt.err == nil && tt.state == "") {
			t.Errorf("%s: got %v, want %v %s", tt.name, err, tt.err, tt.state)
		}
		var got int
		if err := db.Urgent.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&got); err != nil ||
			got != tt.want {
			t.Errorf("%s: got %d rows, %v, want %d", tt.name, got, err, tt.want)
		}
		// The pool closes the connection of a caller that left in the background.
		for end := time.Now().Add(time.Minute); db.Urgent.Stat().AcquiredConns() != 0; <-time.After(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %d connections are not given back", tt.name, db.Urgent.Stat().AcquiredConns())
			}
		}
		if _, err := db.Urgent.Exec(t.Context(), `DELETE FROM `+table); err != nil {
			t.Fatal(err)
		}
	}
	if made := db.Urgent.Stat().NewConnsCount(); made > 2 { // the one of the caller that left may be closed
		t.Errorf("%d connections were made, want 2 at most", made)
	}
}

func TestDB_BeginsInTwoBatchesOnAFreshConnection(t *testing.T) {
	t.Parallel()
	db := openWith(t, "application_name", "fresh", 0)
	_ = readInBatch(t, db, database.Bounds{})
	// The session that the pool keeps ends without the pool's knowledge.
	_, err := db.Ordinary.Exec(t.Context(), `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
		WHERE application_name = 'fresh' AND pid <> pg_backend_pid()`)
	if err != nil {
		t.Fatal(err)
	}
	if got := readInBatch(t, db, database.Bounds{Statement: 2 * time.Second}); got == "" {
		t.Error("the transaction read nothing")
	}
}

// The COMMIT has not begun while a write before it waits, so that wait says nothing about the standby.
func TestDB_WriteThatWaitsIsNoUnconfirmedCommit(t *testing.T) {
	t.Parallel()
	const key = 4200
	holder, err := pgx.Connect(t.Context(), testserver.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(t.Context())
	if _, err := holder.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, key); err != nil {
		t.Fatal(err)
	}
	db, log := openLogged(t, testserver.URL(t))
	db.SetCommitTimeout(database.LateMargin) // a COMMIT is late at once
	db.SetWritesMargin(time.Minute)
	write := func(_ database.Querier, batch *pgx.Batch) error {
		batch.Queue(`SELECT pg_advisory_xact_lock($1)`, key)
		return nil
	}
	read := func(_ database.Querier, batch *pgx.Batch) error {
		batch.Queue(`SELECT 1`)
		return nil
	}
	done := make(chan error, 1)
	go func() {
		done <- db.InTwoBatches(t.Context(), db.Urgent, database.Bounds{}, read,
			func() (database.Fill, error) { return write, nil })
	}()
	const waitingSQL = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted`
	for waiting := 0; waiting == 0; {
		if err := holder.QueryRow(t.Context(), waitingSQL, key).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := holder.Exec(t.Context(), `SELECT pg_advisory_unlock($1)`, key); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the transaction: %v", err)
	}
	if n := log.count("commits are not confirmed"); n > 0 {
		t.Errorf("the log says %d times that commits wait, want none", n)
	}
}
