package sweep_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation-storage/internal/sweep"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// tenants are the installed ones.
type tenants []okapi.Tenant

// Tenants implements sweep.Tenants.
func (t tenants) Tenants(context.Context) ([]okapi.Tenant, error) { return t, nil }

func TestSweeper_WarnsOfFailuresButNotOfTenantsThatAreNotServed(t *testing.T) {
	t.Parallel()
	diku, err := okapi.ParseTenant("diku")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		err   error
		warns bool
	}{
		"a failure":            {errors.New("disk full"), true},
		"an outage":            {fault.New(fault.Unavailable, "gone"), true},
		"a tenant not ready":   {fault.New(fault.TenantNotReady, "it has migration 1"), false},
		"a tenant just purged": {fault.New(fault.UnknownTenant, "no table"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				s := &sweep.Sweeper{
					What: "rows", Tenants: tenants{diku}, Interval: time.Minute, Swept: func(int) {},
					Batch: func(context.Context, int) (int, error) { return 0, tt.err },
					Log:   slog.New(slog.NewTextHandler(&log, nil)),
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				s.Run(ctx)
				if got := strings.Contains(log.String(), "level=WARN"); got != tt.warns {
					t.Errorf("logged %q, want a warning: %t", log.String(), tt.warns)
				}
			})
		})
	}
}
