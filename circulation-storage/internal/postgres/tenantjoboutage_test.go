package postgres_test

import (
	"context"
	"testing"

	"checkoutlock/circulation-storage/internal/tenantjob"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// An outage while a file of migrations runs is no defect: the same work may succeed later.
func TestTenantJobs_AnOutageDuringTheMigrations(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fails string
		want  fault.Code
	}{
		"the session ends": {"SELECT pg_terminate_backend(pg_backend_pid())", fault.Unavailable},
		"a full disk":      {"DO $$ BEGIN RAISE 'full' USING ERRCODE = '53100'; END $$", fault.Unavailable},
		"a defect":         {"SELECT 1/0", fault.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, id := newTenant(t)
			db.UseMigrations(files(tt.fails))
			jobs, _ := startJobs(t, db, func(context.Context, tenantjob.Attributes) error { return nil })
			ctx := okapi.WithTenant(t.Context(), id)
			job, err := jobs.Begin(ctx, install)
			if err != nil {
				t.Fatal(err)
			}
			if job = wantEnded(t, jobs, ctx, job.ID); job.Fault != tt.want {
				t.Errorf("got %s: %s, want %s", job.Fault, job.Error, tt.want)
			}
		})
	}
}
