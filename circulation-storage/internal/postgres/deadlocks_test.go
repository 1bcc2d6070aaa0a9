package postgres_test

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/database"
)

// deadlocks counts the transactions that run again after a deadlock.
type deadlocks struct {
	slog.Handler
	count atomic.Int32
}

// Handle implements slog.Handler.
func (d *deadlocks) Handle(ctx context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		err, _ := a.Value.Any().(error)
		if code, _ := database.SQLState(err); code == database.DeadlockDetected {
			d.count.Add(1)
		}
		return true
	})
	return d.Handler.Handle(ctx, r)
}

// withoutDeadlocks is the same desk through connections of its own. The test fails if PostgreSQL
// has to end a deadlock of their transactions, although these run again.
func (l harness) withoutDeadlocks() harness {
	l.t.Helper()
	found := &deadlocks{Handler: slog.NewTextHandler(l.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})}
	db, err := postgres.Open(l.t.Context(), database.Settings{URL: pgtest.URL(l.t), MaxConns: 16}, slog.New(found))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		db.Close()
		if n := found.count.Load(); n > 0 {
			l.t.Errorf("%d transactions ran again after a deadlock", n)
		}
	})
	return l.on(db)
}

// A write of the holdings record locks its items by id too.
func TestMoveRequest_LocksItemsByID(t *testing.T) {
	t.Parallel()
	const lock = `SELECT FROM {schema}.item WHERE id = $1 FOR NO KEY UPDATE`
	l := newHarness(t).withoutDeadlocks()
	for range 8 {
		of := l.addTitle(2)
		queue := l.queue(of, of.copies[0], uuid.New())
		ordered := slices.SortedFunc(slices.Values(of.copies), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
		write := l.begin(lock, ordered[0])
		done := make(chan error, 1)
		go func() {
			_, err := l.move(queue[0], of.copies[1], "Hold", false)
			done <- err
		}()
		l.waitUntilBlocked(1)
		if _, err := write.Exec(l.ctx(), l.sql(lock), ordered[1]); err != nil {
			t.Errorf("the second item: %v", err)
		}
		if err := write.Rollback(l.ctx()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("the move: %v", err)
		}
	}
}
