package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/resource-locks/internal/engine"
)

// SendRenewals sends one group of renewals. It returns those that the group renewed, by
// their places.
func (s *LockStore) SendRenewals(ctx context.Context, asked []engine.Acquire) (map[int]engine.Lock, error) {
	group := make([]*renewal, len(asked))
	for i, a := range asked {
		group[i] = &renewal{asked: a}
	}
	err := s.db.write(ctx, "renewing locks", func(ctx context.Context, conn *pgxpool.Conn) error {
		return s.renewals.send(ctx, conn, group)
	})
	renewed := map[int]engine.Lock{}
	for i, m := range group {
		if m.done {
			renewed[i] = m.grant.Lock
		}
	}
	return renewed, err
}
