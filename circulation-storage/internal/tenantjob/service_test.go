package tenantjob_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/tenantjob"
	"checkoutlock/schemas/fault"
)

// renewals are a tenantjob.Store with one job. Each renewal has its answer; later ones have the last.
type renewals struct {
	tenantjob.Store
	answers []error // nil renews the lease, ErrLost finds it lost
	end     string  // how the job ended, "" if it runs
	workers map[uuid.UUID]bool
	broken  error // of Take
}

func (*renewals) Begin(
	_ context.Context, l tenantjob.Lease, a tenantjob.Attributes,
) (tenantjob.Job, bool, error) {
	return tenantjob.Job{ID: l.JobID, Attributes: a}, true, nil
}

func (*renewals) Read(_ context.Context, id uuid.UUID) (tenantjob.Job, error) {
	return tenantjob.Job{ID: id}, nil
}

func (r *renewals) Take(_ context.Context, l tenantjob.Lease) (bool, error) {
	r.workers[l.Worker] = true
	return false, r.broken
}

func (*renewals) Install(context.Context, tenantjob.Lease) error { return nil }

func (r *renewals) Renew(context.Context, tenantjob.Lease) (bool, error) {
	err := r.answers[0]
	if len(r.answers) > 1 {
		r.answers = r.answers[1:]
	}
	if errors.Is(err, tenantjob.ErrLost) {
		return false, nil
	}
	return err == nil, err
}

func (r *renewals) End(_ context.Context, _ tenantjob.Lease, code fault.Code, text string) error {
	r.end = string(code) + ": " + text
	return nil
}

func TestService_EndsAJobByItsWorkAndItsLease(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	for name, tt := range map[string]struct {
		renewals []error // every 2 s
		work     time.Duration
		err      error // of the work
		took     time.Duration
		end      string
	}{
		"done": {renewals: []error{nil}, work: 15 * time.Second, err: nil, took: 15 * time.Second, end: ": "},
		"two outages shorter than the lease": {
			renewals: []error{away, away, away, nil, away, away, away, nil}, work: 19 * time.Second, err: nil,
			took: 19 * time.Second, end: ": ",
		},
		"an outage longer than the lease": {
			renewals: []error{away}, work: 15 * time.Second, err: nil, took: 8 * time.Second, end: "",
		},
		"taken over": {
			renewals: []error{tenantjob.ErrLost}, work: 15 * time.Second, err: nil, took: 2 * time.Second, end: "",
		},
		"purged": {
			renewals: []error{fault.New(fault.UnknownTenant, "no table")}, work: 15 * time.Second, err: nil,
			took: 2 * time.Second, end: "",
		},
		"too slow": {
			renewals: []error{nil}, work: time.Minute, err: nil, took: 20 * time.Second,
			end: "TIMEOUT: The work did not end within 20s",
		},
		"refused": {
			renewals: []error{nil}, work: 0, err: fault.New(fault.TenantNotReady, "dirty"), took: 0,
			end: "TENANT_NOT_READY: dirty",
		},
		"refused for its time": {
			renewals: []error{nil}, work: 0, err: fault.Wrap(context.DeadlineExceeded, fault.Timeout, "busy"), took: 0,
			end: "TIMEOUT: busy",
		},
		"failed": {renewals: []error{nil}, work: 0, err: away, took: 0, end: "INTERNAL: The work failed. The log of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &renewals{answers: tt.renewals}
				began, took := time.Now(), time.Duration(-1)
				s := tenantjob.New(store, func(ctx context.Context, _ tenantjob.Attributes) error {
					defer func() { took = time.Since(began) }()
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(tt.work):
						return tt.err
					}
				}, 20*time.Second, slog.New(slog.DiscardHandler))
				if _, err := s.Begin(t.Context(), tenantjob.Attributes{}); err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Minute)
				synctest.Wait()
				if took != tt.took || !strings.HasPrefix(store.end, tt.end) || (store.end == "") != (tt.end == "") {
					t.Errorf("the job ended with %q after %s, want %q after %s", store.end, took, tt.end, tt.took)
				}
			})
		})
	}
}

func TestService_EndsWaitsAndNotTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &renewals{answers: []error{nil}, workers: map[uuid.UUID]bool{}}
		s := tenantjob.New(store, func(context.Context, tenantjob.Attributes) error {
			<-time.After(10 * time.Second)
			return nil
		}, time.Minute, slog.New(slog.DiscardHandler))
		job, err := s.Begin(t.Context(), tenantjob.Attributes{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.AfterFunc(time.Second, s.EndWaits)
		for _, want := range []time.Duration{time.Second, 0} {
			_, err := s.Wait(t.Context(), job.ID, 8*time.Second)
			if took := time.Since(began); err != nil || took != want {
				t.Errorf("a wait ended with %v after %s, want %s", err, took, want)
			}
			began = time.Now()
		}
		<-time.After(9 * time.Second)
		synctest.Wait()
		if store.end != ": " {
			t.Errorf("the job ended with %q, want no fault", store.end)
		}
	})
}

// Workers with one id would not find that another one has taken their job over.
func TestService_WaitTakesAJobOverAsANewWorker(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	store := &renewals{workers: map[uuid.UUID]bool{}}
	s := tenantjob.New(store, nil, time.Minute, slog.New(slog.DiscardHandler))
	for _, store.broken = range []error{nil, away} {
		if _, err := s.Wait(t.Context(), uuid.New(), 0); !errors.Is(err, store.broken) {
			t.Errorf("got %v, want %v", err, store.broken)
		}
	}
	if len(store.workers) != 2 {
		t.Errorf("two attempts were of %d workers", len(store.workers))
	}
}
