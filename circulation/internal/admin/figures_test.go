package admin_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

func TestFigures_AreReadOnceInFiveSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &backend{delay: 300 * time.Millisecond}
		s, ctx := b.service(), inTenant(t, "diku")
		for range 3 { // at once, and again while they are fresh
			var lookers sync.WaitGroup
			for range 20 {
				lookers.Go(func() {
					if f, err := s.Figures(ctx, lastMinutes(60)); err != nil || f.Held != 60 || f.Waiting != 1 {
						t.Errorf("got %+v, %v", f, err)
					}
				})
			}
			lookers.Wait()
			<-time.After(time.Second)
		}
		if n := b.times(); n != 1 {
			t.Errorf("storage was asked %d times, want once", n)
		}
		<-time.After(admin.FiguresAge)
		if f, err := s.Figures(ctx, lastMinutes(60)); err != nil || f.Waiting != 2 {
			t.Errorf("got %+v, %v, want new ones", f, err)
		}
	})
}

func TestFigures_AreKeptByTenantAndMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &backend{}
		s := b.service()
		for i, ask := range []func() (any, error){
			func() (any, error) { return s.Figures(inTenant(t, "diku"), lastMinutes(60)) },
			func() (any, error) { return s.Figures(inTenant(t, "other"), lastMinutes(60)) },
			func() (any, error) { return s.Figures(inTenant(t, "diku"), lastMinutes(5)) },
		} {
			if _, err := ask(); err != nil || b.times() != i+1 {
				t.Errorf("asking %d: %v, storage was asked %q", i, err, b.asked)
			}
		}
		if _, err := s.Figures(t.Context(), lastMinutes(60)); !errors.Is(err, okapi.ErrNoTenant) {
			t.Errorf("got %v, want %v", err, okapi.ErrNoTenant)
		}
	})
}

func TestFigures_SurviveACallerThatLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &backend{delay: time.Second}
		s := b.service()
		ctx, leave := context.WithCancel(inTenant(t, "diku"))
		var lookers sync.WaitGroup
		lookers.Go(func() {
			if _, err := s.Figures(ctx, lastMinutes(60)); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want %v", err, context.Canceled)
			}
		})
		synctest.Wait()
		lookers.Go(func() {
			if _, err := s.Figures(inTenant(t, "diku"), lastMinutes(60)); err != nil {
				t.Errorf("who stayed got %v", err)
			}
		})
		synctest.Wait()
		leave()
		lookers.Wait()
		if n := b.times(); n != 1 {
			t.Errorf("storage was asked %d times, want once", n)
		}
	})
}

func TestFigures_AreReadAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &backend{err: fault.New(fault.Unavailable, "down")}
		s, ctx := b.service(), inTenant(t, "diku")
		if _, err := s.Figures(ctx, lastMinutes(60)); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v, want %s", err, fault.Unavailable)
		}
		b.err = nil
		if _, err := s.Figures(ctx, lastMinutes(60)); err != nil {
			t.Errorf("got %v", err)
		}
		b.delay = time.Hour
		<-time.After(admin.FiguresAge)
		start := time.Now()
		_, err := s.Figures(ctx, lastMinutes(60))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
			t.Errorf("got %v after %s, want it given up after 5 s", err, time.Since(start))
		}
	})
}

func TestFigures_AreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &backend{}
		s := b.service()
		for i := range 1000 {
			if _, err := s.Figures(inTenant(t, fmt.Sprintf("t%d", i)), lastMinutes(60)); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.RememberedFigures(); n > 128 {
			t.Errorf("%d figures are kept, want at most 128", n)
		}
	})
}

func TestFigures_AreReadFourAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &backend{delay: time.Second}
		s, ctx := b.service(), inTenant(t, "diku")
		var lookers sync.WaitGroup
		for i := range 12 {
			lookers.Go(func() {
				if _, err := s.Figures(ctx, lastMinutes(i+1)); err != nil {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		if n := b.times(); n != 4 {
			t.Errorf("storage is asked %d times at once, want 4", n)
		}
		lookers.Wait()
	})
}
