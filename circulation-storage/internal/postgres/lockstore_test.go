package postgres_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/lock/locktest"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas/tenant"
)

// lockTable ages locks in the tenant's own schema.
type lockTable struct {
	db *postgres.DB
	id tenant.ID
}

func (l lockTable) name() string { return l.id.Schema() + ".check_out_lock" }

func (l lockTable) Age(ctx context.Context, t *testing.T, id uuid.UUID, by time.Duration) {
	tag, err := l.db.Pool().Exec(ctx, `UPDATE `+l.name()+` SET creation_date = creation_date - $2::interval WHERE id = $1`, id, by)
	if err != nil || tag.RowsAffected() != 1 {
		t.Errorf("ageing lock %s: %v, %s", id, err, tag)
	}
}

func newLockStore(t *testing.T) (context.Context, *postgres.LockStore, lockTable) {
	db, id := pgtest.New(t)
	return tenant.NewContext(t.Context(), id), postgres.NewLockStore(db), lockTable{db, id}
}

func TestLockStore(t *testing.T) {
	t.Parallel()
	locktest.RunStore(t, func(t *testing.T) (context.Context, lock.Store, locktest.Ager) {
		return newLockStore(t)
	})
}

func quiet(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }
