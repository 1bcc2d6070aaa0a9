package httpapi_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/history"
	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/keylease"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/circulation-storage/internal/tenantjob"
)

// busyJobs are jobs that another process works on.
type busyJobs struct{ tenantjob.Store }

func (busyJobs) Read(_ context.Context, id uuid.UUID) (tenantjob.Job, error) {
	return tenantjob.Job{ID: id}, nil
}

func (busyJobs) Take(context.Context, tenantjob.Lease) (bool, error) { return false, nil }

func TestNew_BeforeCloseEndsWaitsForTenantJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		jobs := tenantjob.New(busyJobs{}, nil, time.Minute, slog.New(slog.DiscardHandler))
		front, err := httpapi.New(httpapi.Options{
			Locks: lock.NewService(nil, nil, nil), Commits: struct{ commit.Store }{}, KeyLeases: struct{ keylease.Store }{},
			Rules: struct{ records.RulesStore }{}, Records: struct{ records.Store }{}, History: struct{ history.Store }{},
			LockSettings: struct{ httpapi.LockSettingsStore }{}, LockChanges: struct{ httpapi.LockChanges }{},
			PatronBlocks: struct{ httpapi.PatronBlockStore }{}, Passwords: struct{ httpapi.PasswordStore }{},
			Terminals: struct{ httpapi.TerminalStore }{}, Tenants: struct{ httpapi.Tenants }{}, TenantJobs: jobs,
			Served: struct{ httpapi.Refuser }{},
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.AfterFunc(time.Second, front.BeforeClose)
		job, err := jobs.Wait(t.Context(), uuid.New(), 10*time.Second)
		if took := time.Since(began); err != nil || job.Ended || took != time.Second {
			t.Errorf("got %+v, %v after %s, want a running job after 1s", job, err, took)
		}
	})
}
