package postgres_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/lock/locktest"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// lockTable ages locks in the tenant's own schema.
type lockTable struct {
	db *postgres.DB
	id okapi.Tenant
}

func (l lockTable) name() string { return postgres.SchemaName(l.id) + ".check_out_lock" }

func (l lockTable) Age(ctx context.Context, t *testing.T, id uuid.UUID, by time.Duration) {
	tag, err := l.db.Pool().Exec(ctx, `UPDATE `+l.name()+` SET creation_date = creation_date - $2::interval WHERE id = $1`,
		id, by)
	if err != nil || tag.RowsAffected() != 1 {
		t.Errorf("ageing lock %s: %v, %s", id, err, tag)
	}
}

func newLockStore(t *testing.T) (context.Context, *postgres.LockStore, lockTable) {
	db, id := pgtest.New(t)
	return okapi.WithTenant(t.Context(), id), postgres.NewLockStore(db), lockTable{db, id}
}

func TestLockStore(t *testing.T) {
	t.Parallel()
	locktest.RunStore(t, func(t *testing.T) (context.Context, lock.Store, locktest.Ager) {
		return newLockStore(t)
	})
}

func quiet(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// An instance of a version without the column acquires locks beside this one.
func TestLockStore_LockOfAnEarlierVersionNamesNoCall(t *testing.T) {
	t.Parallel()
	ctx, store, table := newLockStore(t)
	id, user := uuid.New(), uuid.New()
	insert := `INSERT INTO ` + table.name() +
		` (id, user_id, creation_date, ttl_ms, request_id, holder) VALUES ($1, $2, clock_timestamp(), 3600000, NULL, NULL)`
	if _, err := table.db.Pool().Exec(ctx, insert, id, user); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Get(ctx, id); err != nil || got.UserID != user || got.OkapiRequestID != "" {
		t.Errorf("Get = %+v, %v, want the lock without a call", got, err)
	}
	if got, total, err := store.List(ctx, lock.Filter{Limit: 10}); err != nil || total != 1 || len(got) != 1 ||
		got[0].OkapiRequestID != "" {
		t.Errorf("List = %+v, %d, %v, want the lock without a call", got, total, err)
	}
	if got, err := store.ForceRelease(ctx, id, lock.Note{Reason: "stuck"}); err != nil || got.OkapiRequestID != "" {
		t.Errorf("ForceRelease = %+v, %v, want the lock without a call", got, err)
	}
	changes, _, err := postgres.NewLockChangeStore(table.db).List(ctx, "", 0, 1)
	if err != nil || len(changes) != 1 || changes[0].Lock.OkapiRequestID != "" {
		t.Errorf("noted %+v, %v, want the lock without a call", changes, err)
	}
}

func TestLockStore_TenantOfAnEarlierVersionIsNotReady(t *testing.T) {
	t.Parallel()
	ctx, store, table := newLockStore(t)
	if _, err := table.db.Pool().Exec(ctx, `ALTER TABLE `+table.name()+` DROP COLUMN okapi_request_id`); err != nil {
		t.Fatal(err)
	}
	_, _, err := store.Acquire(ctx, lock.Request{UserID: uuid.New(), TTL: time.Hour})
	if !fault.Is(err, fault.TenantNotReady) || !strings.Contains(err.Error(), "upgrade it with POST /_/tenant") {
		t.Errorf("got %v, want the command that upgrades it", err)
	}
}

func TestGauges_LeaveOutOutdatedLocks(t *testing.T) {
	t.Parallel()
	ctx, store, table := newLockStore(t)
	for _, by := range []time.Duration{0, 20 * time.Minute, 2 * time.Hour, -time.Hour} {
		l, _, err := store.Acquire(ctx, lock.Request{UserID: uuid.New(), TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		table.Age(ctx, t, l.ID, by)
	}
	g, err := table.db.ReadGauges(ctx)
	if err != nil || g.HeldLocks != 2 || g.OldestLock < 20*time.Minute || g.OldestLock > time.Hour {
		t.Errorf("got %+v, %v, want 2 locks, the older one 20 minutes old", g, err)
	}
}

func TestLockStore_NeedsAnInstalledTenant(t *testing.T) {
	t.Parallel()
	_, store, _ := newLockStore(t)
	for name, tt := range map[string]struct {
		id   okapi.Tenant
		want fault.Code
	}{
		"no tenant":         {okapi.Tenant{}, fault.Malformed},
		"one not installed": {pgtest.Tenant(t), fault.UnknownTenant},
	} {
		ctx := okapi.WithTenant(t.Context(), tt.id)
		_, _, err := store.Acquire(ctx, lock.Request{UserID: uuid.New()})
		_, peekErr := store.Peek(ctx, lock.Request{UserID: uuid.New()})
		_, _, listErr := store.List(ctx, lock.Filter{Limit: 1})
		_, releaseErr := store.Release(ctx, uuid.New())
		_, requestErr := store.ReleaseAcquisition(ctx, uuid.New(), uuid.New())
		for _, err := range []error{err, peekErr, listErr, releaseErr, requestErr} {
			if !fault.Is(err, tt.want) {
				t.Errorf("%s: %v, want %q", name, err, tt.want)
			}
		}
	}
}
