package events_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/events"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// purged is a store of tenants without events, which are purged before their leases are given up.
type purged struct {
	events.Store
	leased sync.WaitGroup // a Done for each tenant
	asked  []okapi.Tenant // whose leases were to be given up
}

func (p *purged) Lease(context.Context, uuid.UUID, time.Duration) (events.Lease, bool, error) {
	p.leased.Done()
	return events.Lease{}, true, nil
}

func (*purged) Next(context.Context, int64, int64, int, bool) (events.Batch, error) {
	return events.Batch{}, nil
}

func (p *purged) GiveUp(ctx context.Context, _ uuid.UUID) error {
	p.asked = append(p.asked, okapi.FromContext(ctx).Tenant)
	return fault.New(fault.UnknownTenant, "Unknown tenant")
}

func TestDeliverer_AStoppedProcessGivesUpBesidePurgedTenants(t *testing.T) {
	t.Parallel()
	tenants := []okapi.Tenant{pgtest.Tenant(t), pgtest.Tenant(t), pgtest.Tenant(t)}
	store := &purged{}
	store.leased.Add(len(tenants))
	d := events.New(store, nil, events.Names{}, func(context.Context) ([]okapi.Tenant, error) { return tenants, nil },
		&memory{}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	d.SetInterval(time.Millisecond)
	d.SetLease(time.Hour, time.Hour)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		store.leased.Wait()
		stop()
	}()
	d.Run(ctx)
	for _, id := range tenants {
		if !slices.Contains(store.asked, id) {
			t.Errorf("the lease of %s was not given up", id)
		}
	}
}
