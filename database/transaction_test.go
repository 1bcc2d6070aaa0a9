package database_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"checkoutlock/database"
)

func TestDB_RepeatsWhatChangedNothing(t *testing.T) {
	t.Parallel()
	db := openWith(t, "application_name", "repeats", 0)
	deadlock := &pgconn.PgError{Code: database.DeadlockDetected}
	for _, tt := range []struct {
		name string
		err  error
		left bool // the caller
		want int  // calls
	}{
		{name: "a deadlock", err: deadlock, want: 3},
		{name: "what asks for it", err: database.ErrRunAgain, want: 3},
		{name: "a deadlock of a caller that has left", err: deadlock, left: true, want: 1},
		{name: "a commit without the standby", err: errors.Join(database.ErrUnconfirmed, deadlock), want: 1},
		{name: "any other error", err: errors.New("refused"), want: 1},
		{name: "no error", want: 1},
	} {
		ctx, leave := context.WithCancel(t.Context())
		calls := 0
		err := db.Repeat(ctx, 3, "lending", func() error {
			calls++
			if tt.left {
				leave()
			}
			return tt.err
		})
		leave()
		if !errors.Is(err, tt.err) || calls != tt.want {
			t.Errorf("%s: %d calls, %v, want %d", tt.name, calls, err, tt.want)
		}
	}
}

func TestDB_BoundsStatementsOfCallersWithMuchTime(t *testing.T) {
	t.Parallel()
	db := openWith(t, "application_name", "much time", 0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	err := db.InTx(ctx, db.Urgent, database.Bounds{}, func(tx pgx.Tx) error {
		var got string
		err := tx.QueryRow(ctx, `SHOW statement_timeout`).Scan(&got)
		if got != "301s" {
			t.Errorf("a statement may run for %s, want 5 minutes and the margin", got)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestDB_ConfirmsEachCommitByItself(t *testing.T) {
	t.Parallel()
	db := openWith(t, "application_name", "confirms", 0)
	conn, err := db.Urgent.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	conn.Conn().PgConn().CustomData()[database.Unconfirmed] = true // by a statement outside of Confirm
	if err := db.Confirm(conn, time.Minute, func() error { return nil }); err != nil {
		t.Errorf("got %v, want the next commit confirmed", err)
	}
}
