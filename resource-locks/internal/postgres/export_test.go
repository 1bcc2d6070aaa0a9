package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/resource-locks/internal/engine"
)

// SendRenewals sends one group of renewals. It returns those that the group renewed, by
// their places.
func (s *LockStore) SendRenewals(ctx context.Context, asked []engine.Acquire) (map[int]engine.Lock, error) {
	group := make([]*renewal, len(asked))
	for i, a := range asked {
		group[i] = database.NewMember[engine.Acquire, engine.Grant](a)
	}
	err := s.db.write(ctx, s.db.holders, "renewing locks", func(ctx context.Context, conn *pgxpool.Conn) error {
		return s.renewals.send(ctx, conn, group)
	})
	renewed := map[int]engine.Lock{}
	for i, m := range group {
		if m.Err == nil {
			renewed[i] = m.Answer.Lock
		}
	}
	return renewed, err
}

// WaitingRenewals returns how many callers wait for the group that is under way, -1 if none
// is.
func (s *LockStore) WaitingRenewals() int {
	return s.renewals.groups.Waiting(struct{}{})
}

// HoldConnection takes a connection for locks from the pool until release.
func (db *DB) HoldConnection(t *testing.T) (release func()) {
	t.Helper()
	conn, err := db.conns.Urgent.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return conn.Release
}

// CallersAreBusy reports whether a caller that holds no lock has to wait for a connection.
func (s *LockStore) CallersAreBusy() bool { return s.db.callers.areBusy() }
