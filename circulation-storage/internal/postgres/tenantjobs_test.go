package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/tenantjob"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// startJobs returns the jobs of one process, which does work, and what stops it.
func startJobs(
	t *testing.T, db *postgres.DB, work func(context.Context, tenantjob.Attributes) error,
) (s *tenantjob.Service, stop func()) {
	t.Helper()
	return startJobsOf(t, postgres.NewTenantJobStore(db), work)
}

func startJobsOf(
	t *testing.T, store tenantjob.Store, work func(context.Context, tenantjob.Attributes) error,
) (s *tenantjob.Service, stop func()) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s = tenantjob.New(store, work, time.Minute, log)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(stop)
	return s, stop
}

var (
	install = tenantjob.Attributes{ModuleTo: "m-1.0.0"}
	sampled = tenantjob.Attributes{
		ModuleTo: "m-1.0.0", Parameters: []tenantjob.Parameter{{Key: "loadSample", Value: "true"}},
	}
)

//nolint:revive // t is first, as in all tests
func wantEnded(t *testing.T, s *tenantjob.Service, ctx context.Context, id uuid.UUID) tenantjob.Job {
	t.Helper()
	job, err := s.Wait(ctx, id, time.Minute)
	if err != nil || !job.Ended {
		t.Fatalf("got %+v, %v, want it ended", job, err)
	}
	return job
}

// All callers have looked for a running job before one is added, except those that wait for their turn:
// a row that is not committed holds the others up.
func TestTenantJobs_TwoAtOnceAreOne(t *testing.T) {
	t.Parallel()
	db, id := newTenant(t)
	ctx := okapi.WithTenant(t.Context(), id)
	store, past := postgres.NewTenantJobStore(db), tenantjob.Lease{JobID: uuid.New(), Worker: uuid.New()}
	if _, _, err := store.Begin(ctx, past, sampled); err != nil {
		t.Fatal(err)
	}
	if err := store.End(ctx, past, "", ""); err != nil {
		t.Fatal(err)
	}
	l := harness{t: t, id: id, db: db} //nolint:exhaustruct // the table alone
	l.exec(`CREATE UNIQUE INDEX ON {schema}.tenant_job ((0)) WHERE ended_date IS NULL`)
	foreign := l.begin(`INSERT INTO {schema}.tenant_job (id, attributes, worker, lease_until)
		VALUES (gen_random_uuid(), '{}', gen_random_uuid(), now())`)
	var works atomic.Int32
	begun := make(chan struct{})
	processes := make([]*tenantjob.Service, 2)
	for i := range processes {
		processes[i], _ = startJobs(t, pgtest.Open(t), func(context.Context, tenantjob.Attributes) error {
			works.Add(1)
			<-begun
			return nil
		})
	}
	one, other := processes[0], processes[1]
	const callers = 6
	jobs, errs := make([]tenantjob.Job, callers), make([]error, callers)
	var calling sync.WaitGroup
	for i := range callers {
		calling.Go(func() { jobs[i], errs[i] = processes[i%2].Begin(ctx, sampled) })
	}
	l.waitUntilBlockedBy(foreign, callers)
	if err := foreign.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	calling.Wait()
	close(begun)
	for i := range callers {
		if errs[i] != nil || jobs[i].ID != jobs[0].ID {
			t.Fatalf("caller %d: got %+v, %v, want job %s", i, jobs[i], errs[i], jobs[0].ID)
		}
	}
	if job := wantEnded(t, other, ctx, jobs[0].ID); job.Err() != nil {
		t.Error(job.Err())
	}
	if n := works.Load(); n != 1 {
		t.Errorf("the work was done %d times, want once", n)
	}
	wantVersion(t, db, id, listVersions(t)[len(listVersions(t))-1], false)
	if again, err := one.Begin(ctx, sampled); err != nil || again.ID == jobs[0].ID {
		t.Errorf("a repeat after the end: got %+v, %v, want a new job", again, err)
	} else {
		wantEnded(t, one, ctx, again.ID)
	}
}

// A process that died leaves its job with a lease that ends.
func TestTenantJobs_AnotherProcessGoesOn(t *testing.T) {
	t.Parallel()
	for name, goOn := range map[string]func(s *tenantjob.Service, ctx context.Context, id uuid.UUID) error{
		"when the job is read": func(s *tenantjob.Service, ctx context.Context, id uuid.UUID) error {
			_, err := s.Wait(ctx, id, 0)
			return err
		},
		"when the same is asked for": func(s *tenantjob.Service, ctx context.Context, id uuid.UUID) error {
			job, err := s.Begin(ctx, sampled)
			if err == nil && job.ID != id {
				t.Errorf("got job %s, want %s", job.ID, id)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, id := newTenant(t)
			ctx := okapi.WithTenant(t.Context(), id)
			store := postgres.NewTenantJobStore(db)
			dead := tenantjob.Lease{JobID: uuid.New(), Worker: uuid.New(), Duration: 0}
			if _, leased, err := store.Begin(ctx, dead, sampled); err != nil || !leased {
				t.Fatal(leased, err)
			}
			got := make(chan tenantjob.Attributes, 1)
			alive, _ := startJobs(t, db, func(_ context.Context, a tenantjob.Attributes) error {
				got <- a
				return nil
			})
			if err := goOn(alive, ctx, dead.JobID); err != nil {
				t.Fatal(err)
			}
			job := wantEnded(t, alive, ctx, dead.JobID)
			if a := <-got; job.Err() != nil || !a.Wants("loadSample") {
				t.Errorf("got %+v with %+v, want it done with its attributes", job, a)
			}
			if err := store.End(ctx, dead, fault.Internal, "late"); err != nil {
				t.Fatal(err)
			}
			if job, err := store.Read(ctx, dead.JobID); err != nil || job.Err() != nil {
				t.Errorf("the dead process changed the end to %+v, %v", job, err)
			}
			if held, err := store.Renew(ctx, dead); held || err != nil {
				t.Errorf("got %t, %v: the dead process has its lease again", held, err)
			}
		})
	}
}

func TestTenantJobs_AStoppedProcessGivesItsJobsUp(t *testing.T) {
	t.Parallel()
	db, id := newTenant(t)
	ctx := okapi.WithTenant(t.Context(), id)
	working := make(chan struct{})
	first, stop := startJobs(t, db, func(ctx context.Context, _ tenantjob.Attributes) error {
		close(working)
		<-ctx.Done()
		return ctx.Err()
	})
	job, err := first.Begin(ctx, install)
	if err != nil {
		t.Fatal(err)
	}
	<-working
	stop()
	brief := tenantjob.Lease{JobID: job.ID, Worker: uuid.New()}
	if taken, err := postgres.NewTenantJobStore(db).Take(ctx, brief); err != nil || !taken {
		t.Errorf("got %t, %v, want that another process gets the job at once", taken, err)
	}
	next, _ := startJobs(t, db, func(context.Context, tenantjob.Attributes) error { return nil })
	if got := wantEnded(t, next, ctx, job.ID); got.Err() != nil {
		t.Error(got.Err())
	}
}

func TestTenantJobs_DeleteEndsTheWork(t *testing.T) {
	t.Parallel()
	db, id := newTenant(t)
	ctx := okapi.WithTenant(t.Context(), id)
	working, ended := make(chan struct{}), make(chan struct{})
	s, _ := startJobs(t, db, func(ctx context.Context, _ tenantjob.Attributes) error {
		close(working)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	})
	job, err := s.Begin(ctx, install)
	if err != nil {
		t.Fatal(err)
	}
	<-working
	if err := s.Delete(ctx, uuid.New()); !fault.Is(err, fault.NotFound) {
		t.Errorf("another job: got %v, want %s", err, fault.NotFound)
	}
	begun := time.Now()
	if err := s.Delete(ctx, job.ID); err != nil {
		t.Fatal(err)
	}
	<-ended
	if took := time.Since(begun); took > 30*time.Second { // it would end after a minute by itself
		t.Errorf("the work ended after %s, want at the next renewal of the lease", took)
	}
	if _, err := s.Wait(ctx, job.ID, 0); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want %s", err, fault.NotFound)
	}
}

func TestTenantJobs_OtherWorkWaitsForALiveProcess(t *testing.T) {
	t.Parallel()
	db, id := newTenant(t)
	ctx := okapi.WithTenant(t.Context(), id)
	store := postgres.NewTenantJobStore(db)
	held := tenantjob.Lease{JobID: uuid.New(), Worker: uuid.New(), Duration: 30 * time.Second}
	if _, _, err := store.Begin(ctx, held, install); err != nil {
		t.Fatal(err)
	}
	next := tenantjob.Lease{JobID: uuid.New(), Worker: uuid.New(), Duration: 30 * time.Second}
	if _, _, err := store.Begin(ctx, next, sampled); !fault.Is(err, fault.InUse) ||
		!strings.Contains(err.Error(), held.JobID.String()) {
		t.Errorf("got %v, want %s with the job", err, fault.InUse)
	}
	held.Duration = 0
	if ok, err := store.Renew(ctx, held); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, leased, err := store.Begin(ctx, next, sampled); err != nil || !leased {
		t.Errorf("got %t, %v, want the lease", leased, err)
	}
	if job, err := store.Read(ctx, held.JobID); err != nil || !job.Ended || job.Fault != fault.Unavailable {
		t.Errorf("the job of the dead process: got %+v, %v, want it ended as failed", job, err)
	}
}

// frozenJobs is the store of a process that freezes between Begin and the work.
type frozenJobs struct {
	tenantjob.Store
	frozen, goOn, done chan struct{}
	err                error // of the installation
}

// Install implements tenantjob.Store.
func (s *frozenJobs) Install(ctx context.Context, l tenantjob.Lease) error {
	close(s.frozen)
	<-s.goOn
	defer close(s.done)
	s.err = s.Store.Install(ctx, l)
	return s.err
}

// Renew implements tenantjob.Store. It comes too late to end the work.
func (s *frozenJobs) Renew(ctx context.Context, l tenantjob.Lease) (bool, error) {
	<-s.done
	return s.Store.Renew(ctx, l)
}

func TestTenantJobs_ALateProcessDoesNotInstall(t *testing.T) {
	t.Parallel()
	purge := func(_ context.Context, db *postgres.DB, id okapi.Tenant) error { return db.Purge(t.Context(), id) }
	for name, tt := range map[string]struct {
		meanwhile func(context.Context, *postgres.DB, okapi.Tenant) error
		schema    bool // is there afterwards
	}{
		"after a purge": {meanwhile: purge, schema: false},
		"after a purge and another installation": {
			meanwhile: func(ctx context.Context, db *postgres.DB, id okapi.Tenant) error {
				if err := purge(ctx, db, id); err != nil {
					return err
				}
				l := tenantjob.Lease{JobID: uuid.New(), Worker: uuid.New(), Duration: time.Minute}
				_, _, err := postgres.NewTenantJobStore(db).Begin(ctx, l, install)
				return err
			},
			schema: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, id := newTenant(t)
			ctx := okapi.WithTenant(t.Context(), id)
			store := &frozenJobs{
				Store: postgres.NewTenantJobStore(db), frozen: make(chan struct{}), goOn: make(chan struct{}),
				done: make(chan struct{}), err: nil,
			}
			var worked atomic.Bool
			s, stop := startJobsOf(t, store, func(context.Context, tenantjob.Attributes) error {
				worked.Store(true)
				return nil
			})
			if _, err := s.Begin(ctx, install); err != nil {
				t.Fatal(err)
			}
			<-store.frozen
			if err := tt.meanwhile(ctx, db, id); err != nil {
				t.Error(err)
			}
			close(store.goOn)
			<-store.done
			stop()
			if !errors.Is(store.err, tenantjob.ErrLost) || worked.Load() {
				t.Errorf("got %v, work done %t, want %v and no work", store.err, worked.Load(), tenantjob.ErrLost)
			}
			var there bool
			const find = `SELECT to_regnamespace(quote_ident($1)) IS NOT NULL`
			err := db.Pool().QueryRow(ctx, find, postgres.SchemaName(id)).Scan(&there)
			if err != nil || there != tt.schema {
				t.Errorf("the schema is there: %t, %v, want %t", there, err, tt.schema)
			}
		})
	}
}

func TestTenantJobs_APanicFailsTheJob(t *testing.T) {
	t.Parallel()
	db, id := newTenant(t)
	ctx := okapi.WithTenant(t.Context(), id)
	s, _ := startJobs(t, db, func(context.Context, tenantjob.Attributes) error { panic("a bug") })
	job, err := s.Begin(ctx, install)
	if err != nil {
		t.Fatal(err)
	}
	if got := wantEnded(t, s, ctx, job.ID); got.Fault != fault.Internal || strings.Contains(got.Error, "bug") {
		t.Errorf("got %+v, want %s without the cause", got, fault.Internal)
	}
}

func TestTenantJobs_LeaseAJobOnce(t *testing.T) {
	t.Parallel()
	db, id := newTenant(t)
	ctx := okapi.WithTenant(t.Context(), id)
	store := postgres.NewTenantJobStore(db)
	dead := tenantjob.Lease{JobID: uuid.New(), Worker: uuid.New()} // the first round takes its job over
	if _, _, err := store.Begin(ctx, dead, install); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		leases, errs, leased := make([]tenantjob.Lease, 8), make([]error, 8), make([]bool, 8)
		var calling sync.WaitGroup
		for i := range leases {
			leases[i] = tenantjob.Lease{JobID: uuid.New(), Worker: uuid.New(), Duration: time.Minute}
			calling.Go(func() {
				var job tenantjob.Job
				job, leased[i], errs[i] = store.Begin(ctx, leases[i], install)
				leases[i].JobID = job.ID
			})
		}
		calling.Wait()
		granted := 0
		for i, l := range leases {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			if leased[i] {
				granted++
				if err := store.End(ctx, l, "", ""); err != nil {
					t.Fatal(err)
				}
			}
		}
		if granted != 1 {
			t.Fatalf("%d of 8 have a lease, want 1", granted)
		}
	}
	if taken, err := store.Take(ctx, dead); err != nil || taken {
		t.Errorf("got %t, %v: a job is taken over after its end", taken, err)
	}
}
