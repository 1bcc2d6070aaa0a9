package cache_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/cache"
	"checkoutlock/schemas/fault"
)

const (
	maxAge  = time.Second
	maxSize = 100
	someKey = "/locations/1"
)

func newCache() *cache.Cache[string, int] { return cache.New[string, int](maxAge, maxSize) }

// slowly returns a fetch that takes d and then answers how often it was called.
func slowly(d time.Duration, err error) (fetch func(context.Context, int) (int, error), calls *int) {
	calls = new(int)
	return func(context.Context, int) (int, error) {
		*calls++
		n := *calls
		<-time.After(d)
		return n, err
	}, calls
}

func TestCache_SharesOneFetch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache()
		fetch, calls := slowly(100*time.Millisecond, nil)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if got, err := c.Get(t.Context(), someKey, fetch); got != 1 || err != nil {
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

func TestCache_CountsTheAgeFromTheBeginningOfTheFetch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache()
		fetch, calls := slowly(300*time.Millisecond, nil)
		for _, step := range []struct {
			wait time.Duration
			want int
		}{{0, 1}, {600 * time.Millisecond, 1}, {200 * time.Millisecond, 2}} {
			<-time.After(step.wait)
			if got, err := c.Get(t.Context(), someKey, fetch); got != step.want || err != nil {
				t.Errorf("after %s more: got %v, %v, want %d", step.wait, got, err, step.want)
			}
		}
		if *calls != 2 {
			t.Errorf("%d fetches, want 2", *calls)
		}
	})
}

func TestCache_SharesAFailureOnlyWithTheCallersThatWaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache()
		failure := errors.New("down")
		fails, calls := slowly(100*time.Millisecond, failure)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := c.Get(t.Context(), someKey, fails); !errors.Is(err, failure) {
					t.Errorf("got %v, want %v", err, failure)
				}
			})
		}
		wg.Wait()
		works, _ := slowly(0, nil)
		if got, err := c.Get(t.Context(), someKey, works); got != 1 || err != nil {
			t.Errorf("got %v, %v, want the fetch that works", got, err)
		}
		if *calls != 1 {
			t.Errorf("%d fetches failed, want 1", *calls)
		}
	})
}

func TestCache_FinishesTheFetchOfACallerThatLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		fetch := func(ctx context.Context, _ int) (int, error) {
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(100 * time.Millisecond):
				return 7, nil
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Get(ctx, someKey, fetch); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
			}
		})
		synctest.Wait()
		if got, err := c.Get(t.Context(), someKey, fetch); got != 7 || err != nil {
			t.Errorf("got %v, %v, want the record", got, err)
		}
		wg.Wait()
	})
}

func TestCache_DropsAFetchFromBeforeAChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache()
		old, _ := slowly(200*time.Millisecond, nil)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = c.Get(t.Context(), someKey, old) })
		synctest.Wait()
		c.Drop(someKey)
		wg.Wait()
		fresh := func(context.Context, int) (int, error) { return 7, nil }
		if got, _ := c.Get(t.Context(), someKey, fresh); got != 7 {
			t.Errorf("got %v, want what was stored after the change", got)
		}
	})
}

func TestCache_KeepsWhatAVersionConfirms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache()
		version, read := "a", time.Now()
		c.Version = func(string) (string, time.Time) { return version, read }
		fetch, _ := slowly(0, nil)
		want := func(what string, n int) {
			t.Helper()
			if got, err := c.Get(t.Context(), someKey, fetch); got != n || err != nil {
				t.Errorf("%s: got %d, %v, want fetch %d", what, got, err, n)
			}
		}
		pass := func() { <-time.After(maxAge) }
		want("new", 1)
		pass()
		read = time.Now()
		want("the version is the same", 1)
		pass()
		want("the version was read a while ago", 2)
		pass()
		version, read = "b", time.Now()
		want("the version changed", 3)
		pass()
		version, read = "", time.Now()
		want("there is no version", 4)
		pass()
		read = time.Now()
		want("there is still none", 5)
		version = "c"
		pass()
		want("the version came later than the value", 6)
		for range 59 {
			pass()
			read = time.Now()
			want("the version is the same for a minute", 6)
		}
		pass()
		read = time.Now()
		want("after a minute", 7)
	})
}

func TestCache_IsBounded(t *testing.T) {
	t.Parallel()
	c := newCache()
	fetch := func(context.Context, int) (int, error) { return 1, nil }
	for i := range 3 * maxSize {
		if _, err := c.Get(t.Context(), strconv.Itoa(i), fetch); err != nil {
			t.Fatal(err)
		}
		c.Put(strconv.Itoa(-i), i, maxAge)
		if c.Len() > maxSize {
			t.Fatalf("%d values, want at most %d", c.Len(), maxSize)
		}
	}
}

func TestCache_MakesRoomByWhatIsOutdated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := cache.New[string, int](maxAge, 2)
		c.Put("old", 1, time.Second)
		c.Put("fresh", 2, time.Hour)
		<-time.After(time.Minute)
		c.Put("fresh", 3, time.Hour) // which needs no room
		if c.Len() != 2 {
			t.Errorf("%d values, want both", c.Len())
		}
		c.Put("new", 4, time.Hour)
		if fresh, _ := c.Peek("fresh"); fresh != 3 || c.Len() != 2 {
			t.Errorf("got %d of %d values, want the outdated one replaced", fresh, c.Len())
		}
	})
}

func TestCache_PutAndAdd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache()
		want := func(value int, known bool) {
			t.Helper()
			if got, ok := c.Peek(someKey); got != value || ok != known {
				t.Errorf("got %d, %t, want %d, %t", got, ok, value, known)
			}
		}
		want(0, false)
		c.Add(someKey, 1, time.Minute)
		want(1, true)
		c.Put(someKey, 2, time.Hour)
		c.Add(someKey, 3, time.Hour) // which leaves the fresh value
		want(2, true)
		<-time.After(time.Hour)
		want(0, false)
		c.Add(someKey, 3, time.Hour)
		want(3, true)
		old, calls := slowly(time.Second, nil)
		<-time.After(time.Hour)
		go func() { _, _ = c.Get(t.Context(), someKey, old) }()
		synctest.Wait()
		want(0, false) // until the fetch has ended
		<-time.After(time.Second)
		if *calls != 1 {
			t.Errorf("%d fetches, want 1", *calls)
		}
	})
}

func TestCache_GivesTheFetchTheOutdatedValue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache()
		failure := errors.New("down")
		steps := []struct {
			name   string
			old    int
			answer int
			err    error
		}{
			{name: "the first fetch", old: 0, answer: 5, err: nil},
			{name: "a fetch that fails", old: 5, answer: 9, err: failure},
			{name: "the fetch after it", old: 5, answer: 6, err: nil},
		}
		for _, step := range steps {
			_, err := c.Get(t.Context(), someKey, func(_ context.Context, old int) (int, error) {
				if old != step.old {
					t.Errorf("%s: got %d, want %d", step.name, old, step.old)
				}
				return step.answer, step.err
			})
			if !errors.Is(err, step.err) {
				t.Errorf("%s: got %v, want %v", step.name, err, step.err)
			}
			<-time.After(maxAge)
		}
	})
}

func TestCache_PanicOfAFetchIsAnError(t *testing.T) {
	t.Parallel()
	c := newCache()
	if got, err := c.Get(t.Context(), someKey, func(context.Context, int) (int, error) { panic("a bug") }); !fault.Is(err,
		fault.Internal) {
		t.Errorf("got %d, %v, want %s", got, err, fault.Internal)
	}
	if got, err := c.Get(t.Context(), someKey, func(context.Context, int) (int, error) { return 7, nil }); got != 7 ||
		err != nil {
		t.Errorf("got %d, %v after the panic, want 7", got, err)
	}
}
