package sweep_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation-storage/internal/sweep"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// fakeStore has old rows of some tenants; a negative number fails.
type fakeStore struct {
	mu     sync.Mutex
	rows   map[string]int
	calls  int
	ids    []okapi.Tenant
	broken error
}

func newFakeStore(t *testing.T, rows map[string]int) *fakeStore {
	t.Helper()
	f := &fakeStore{rows: rows}
	for name := range rows {
		id, err := okapi.ParseTenant(name)
		if err != nil {
			t.Fatal(err)
		}
		f.ids = append(f.ids, id)
	}
	return f
}

// Tenants implements sweep.Tenants.
func (f *fakeStore) Tenants(context.Context) ([]okapi.Tenant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ids, f.broken
}

func (f *fakeStore) deleteRows(ctx context.Context, limit int) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	id, _ := okapi.TenantFrom(ctx)
	left := f.rows[id.String()]
	if left < 0 {
		return 0, errors.New("boom")
	}
	n := min(left, limit)
	f.rows[id.String()] -= n
	return n, nil
}

func TestSweeper_DeletesAllOldRowsInBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore(t, map[string]int{"a": 1, "broken": -1, "z": 1200})
		store.broken = errors.New("database is away")
		sweeps, deleted := 0, 0
		rows := sweep.Rows{Name: "rows", Sweep: store.deleteRows, Swept: func(n float64) {
			sweeps++
			deleted += int(n)
		}}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			sweep.New(rows, store.Tenants, time.Minute, slog.New(slog.NewTextHandler(t.Output(), nil))).Run(ctx)
		}()
		<-time.After(time.Minute) // the first turn, during an outage
		synctest.Wait()
		store.mu.Lock()
		store.broken = nil
		store.mu.Unlock()
		<-time.After(time.Minute)
		synctest.Wait()
		if store.rows["a"] != 0 || store.rows["z"] != 0 {
			t.Errorf("left after a turn: %v", store.rows)
		}
		if want := 1 + 1 + 3; store.calls != want {
			t.Errorf("%d deletions, want %d: one each, and z in three batches", store.calls, want)
		}
		if deleted != 1201 || sweeps != 2 {
			t.Errorf("observed %d rows in %d sweeps, want 1201 in 2", deleted, sweeps)
		}
		stop()
		<-ended
	})
}

// silent never answers.
type silent struct{ tenants, batches int }

// Tenants implements sweep.Tenants. Only its first call has no answer.
func (s *silent) Tenants(ctx context.Context) ([]okapi.Tenant, error) {
	s.tenants++
	if s.tenants > 1 {
		return make([]okapi.Tenant, 2), nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s *silent) deleteRows(ctx context.Context, _ int) (int, error) {
	s.batches++
	<-ctx.Done()
	return 0, ctx.Err()
}

func TestSweeper_GivesUpACallWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var database silent
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		sweep.New(sweep.Rows{
			Name: "rows", Sweep: database.deleteRows,
		}, database.Tenants, time.Minute, slog.New(slog.DiscardHandler)).Run(ctx)
		if database.tenants < 10 || database.batches < 20 {
			t.Errorf("%d turns with %d batches within an hour, want at least 10 with 2 each", database.tenants, database.batches)
		}
	})
}

func TestSweeper_StartsAtARandomTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const instances = 20
		starts := make(chan time.Duration, instances)
		begin := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		for range instances {
			s := sweep.New(sweep.Rows{}, starter(func() { starts <- time.Since(begin) }).Tenants, time.Minute,
				slog.New(slog.DiscardHandler))
			go s.Run(ctx)
		}
		<-time.After(time.Minute - 1)
		stop()
		seen := map[time.Duration]bool{}
		for range instances {
			seen[<-starts] = true
		}
		if len(seen) < instances/2 {
			t.Errorf("%d instances started at %d different times", instances, len(seen))
		}
	})
}

// starter has no tenants and calls itself when it lists them.
type starter func()

func (s starter) Tenants(context.Context) ([]okapi.Tenant, error) {
	s()
	return nil, nil
}

func TestSweeper_WarnsOfFailuresButNotOfTenantsThatAreNotServed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err   error
		level string
		lines int // of two turns
	}{
		"a failure of each tenant": {err: errors.New("deadlock"), level: "WARN", lines: 4},
		"an outage of all":         {err: fault.New(fault.Unavailable, "gone"), level: "DEBUG", lines: 2},
		"a lack of each statement": {
			err: &fault.Error{Code: fault.Unavailable, Msg: "a limit is reached", Unchanged: true}, level: "DEBUG", lines: 4,
		},
		"nothing":             {},
		"tenants not ready":   {err: fault.New(fault.TenantNotReady, "it has migration 1")},
		"tenants just purged": {err: fault.New(fault.UnknownTenant, "no table")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				rows := sweep.Rows{Name: "rows", Sweep: func(_ context.Context, limit int) (int, error) {
					if tt.err != nil {
						return limit, tt.err
					}
					return 1, nil
				}}
				s := sweep.New(rows, newFakeStore(t, map[string]int{"a": 0, "b": 0}).Tenants, time.Minute,
					slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				s.Run(ctx)
				lines := strings.Count(log.String(), `"not swept"`)
				if lines != tt.lines || strings.Count(log.String(), "level="+tt.level+` msg="not swept"`) != lines {
					t.Errorf("logged %q, want %d lines of level %s", log.String(), tt.lines, tt.level)
				}
			})
		})
	}
}
