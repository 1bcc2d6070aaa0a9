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
	return s.renewals.sendGroup(ctx, asked)
}

// SendRefusals sends one group of callers that were refused lately. It returns the locks that
// refuse them, by the callers' places.
func (s *LockStore) SendRefusals(ctx context.Context, asked []engine.Acquire) (map[int]engine.Lock, error) {
	return s.refusals.sendGroup(ctx, asked)
}

func (g *acquireGroups) sendGroup(ctx context.Context, asked []engine.Acquire) (map[int]engine.Lock, error) {
	group := make([]*acquireMember, len(asked))
	for i, a := range asked {
		group[i] = database.NewMember[engine.Acquire, engine.Grant](a)
	}
	err := g.db.write(ctx, g.db.holders, "sending a group", func(ctx context.Context, conn *pgxpool.Conn) error {
		return g.send(ctx, conn, group)
	})
	answered := map[int]engine.Lock{}
	for i, m := range group {
		if m.Err == nil {
			answered[i] = m.Answer.Lock
		}
	}
	return answered, err
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
