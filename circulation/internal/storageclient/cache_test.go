package storageclient

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var someKey = cacheKey{tenant: "diku", path: "/locations/1"}

// slowly returns a fetch that takes d and then answers how often it was called.
func slowly(d time.Duration, err error) (fetch func(context.Context, any) (any, error), calls *int) {
	calls = new(int)
	return func(context.Context, any) (any, error) {
		*calls++
		n := *calls
		<-time.After(d)
		return n, err
	}, calls
}

// letGrow makes all that is kept as old as that. With a negative age it stays fresh
// however long the next call takes to come.
func (c *cache) letGrow(age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		e.begun = time.Now().Add(-age)
	}
}

func TestCallersAtTheSameTimeShareOneFetch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache()
		fetch, calls := slowly(100*time.Millisecond, nil)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if got, err := c.get(t.Context(), someKey, fetch); got != 1 || err != nil {
					t.Errorf("got %v, %v, want 1", got, err)
				}
			})
		}
		wg.Wait()
		if *calls != 1 {
			t.Errorf("%d fetches, want 1", *calls)
		}
	})
}

func TestARecordIsKeptForASecondFromTheBeginningOfItsFetch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache()
		fetch, calls := slowly(300*time.Millisecond, nil)
		for _, step := range []struct {
			wait time.Duration
			want int
		}{{0, 1}, {600 * time.Millisecond, 1}, {200 * time.Millisecond, 2}} {
			<-time.After(step.wait)
			if got, err := c.get(t.Context(), someKey, fetch); got != step.want || err != nil {
				t.Errorf("after %s more: got %v, %v, want %d", step.wait, got, err, step.want)
			}
		}
		if *calls != 2 {
			t.Errorf("%d fetches, want 2", *calls)
		}
	})
}

func TestAFailureIsToldToThoseWhoWaitedAndToNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache()
		failure := errors.New("down")
		fails, calls := slowly(100*time.Millisecond, failure)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := c.get(t.Context(), someKey, fails); !errors.Is(err, failure) {
					t.Errorf("got %v, want %v", err, failure)
				}
			})
		}
		wg.Wait()
		works, _ := slowly(0, nil)
		if got, err := c.get(t.Context(), someKey, works); got != 1 || err != nil {
			t.Errorf("got %v, %v, want the fetch that works", got, err)
		}
		if *calls != 1 {
			t.Errorf("%d fetches failed, want 1", *calls)
		}
	})
}

func TestACallerThatLeavesSpoilsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		fetch := func(ctx context.Context, _ any) (any, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(100 * time.Millisecond):
				return "here", nil
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.get(ctx, someKey, fetch); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
			}
		})
		synctest.Wait()
		if got, err := c.get(t.Context(), someKey, fetch); got != "here" || err != nil {
			t.Errorf("got %v, %v, want the record", got, err)
		}
		wg.Wait()
	})
}

func TestAFetchFromBeforeAChangeIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache()
		old, _ := slowly(200*time.Millisecond, nil)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = c.get(t.Context(), someKey, old) })
		synctest.Wait()
		c.drop(someKey)
		wg.Wait()
		fresh := func(context.Context, any) (any, error) { return "new", nil }
		if got, _ := c.get(t.Context(), someKey, fresh); got != "new" {
			t.Errorf("got %v, want what was stored after the change", got)
		}
	})
}

func TestTheCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := newCache()
	fetch := func(context.Context, any) (any, error) { return 1, nil }
	for i := range 3 * cacheSize {
		if _, err := c.get(t.Context(), cacheKey{"diku", strconv.Itoa(i)}, fetch); err != nil {
			t.Fatal(err)
		}
		if len(c.entries) > cacheSize {
			t.Fatalf("%d entries, want at most %d", len(c.entries), cacheSize)
		}
	}
}
