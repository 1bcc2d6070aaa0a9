package app

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/tenantjob"
)

// busyJobs are jobs that another process works on.
type busyJobs struct{ tenantjob.Store }

func (busyJobs) Read(_ context.Context, id uuid.UUID) (tenantjob.Job, error) {
	return tenantjob.Job{ID: id}, nil
}

func (busyJobs) Take(context.Context, tenantjob.Lease) (bool, error) { return false, nil }

func TestEndpoints_BeforeCloseEndsWaitsForTenantJobs(t *testing.T) {
	t.Parallel()
	db, _ := pgtest.New(t)
	log := slog.New(slog.DiscardHandler)
	s := newStores(Config{}, db, newMetrics(prometheus.NewRegistry()), log)
	synctest.Test(t, func(t *testing.T) {
		s.tenantJobs = tenantjob.New(busyJobs{}, nil, time.Minute, log)
		front, err := httpapi.New(endpoints(Config{}, db, nil, s))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.AfterFunc(time.Second, front.BeforeClose)
		job, err := s.tenantJobs.Wait(t.Context(), uuid.New(), 10*time.Second)
		if took := time.Since(began); err != nil || job.Ended || took != time.Second {
			t.Errorf("got %+v, %v after %s, want a running job after 1s", job, err, took)
		}
	})
}
