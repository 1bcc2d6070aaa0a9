package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/config"
	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	front "checkoutlock/resource-locks/internal/mutex"
	"checkoutlock/resource-locks/mutex"
	"checkoutlock/schemas/fault"
)

type quiet struct{}

func (quiet) Observe(engine.Event) {}

// startService returns the address of a service over a store in memory.
func startService() (address string, store *enginetest.Store, stop func(), err error) {
	store = enginetest.NewStore()
	f, err := front.New(front.Options{
		Settings: front.Settings{Addr: "127.0.0.1:0", TTL: time.Minute, UserHeader: "X-User-Id"},
		Locks:    engine.NewLocks(store, quiet{}), Log: config.Log{}.New(io.Discard, ""), Registry: prometheus.NewRegistry(),
		Ready: func(context.Context) error { return nil }, ShutdownTimeout: time.Second,
	})
	if err != nil {
		return "", nil, nil, err
	}
	if err := f.Listen(context.Background()); err != nil {
		return "", nil, nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = f.Serve(context.Background())
	}()
	return f.URL(), store, func() {
		_ = f.Drain(context.Background())
		<-done
	}, nil
}

func start(t *testing.T) (address string, store *enginetest.Store) {
	t.Helper()
	address, store, stop, err := startService()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return address, store
}

func TestClient(t *testing.T) {
	t.Parallel()
	address, store := start(t)
	ctx := t.Context()
	ann, seven := &mutex.Client{URL: address + "/", User: "ann"}, &mutex.Client{URL: address, User: "7"}
	const uid = "drafts/ä %2F 1"

	if _, held, err := seven.Check(ctx, uid); held || err != nil {
		t.Errorf("got %v %v of a free resource", held, err)
	}
	first, err := ann.Acquire(ctx, uid)
	if err != nil || first.UID != uid || first.User != "ann" || first.Fence == 0 || first.ExpiresAt.Sub(first.LockedAt) != time.Minute {
		t.Errorf("got %+v %v", first, err)
	}
	_, err = seven.Acquire(ctx, uid)
	var locked *mutex.LockedError
	if !errors.Is(err, mutex.ErrLocked) || !errors.As(err, &locked) || locked.Holder != "ann" {
		t.Errorf("got %v, want the holder", err)
	}
	if err := seven.Release(ctx, uid); err != nil {
		t.Errorf("got %v, want no error for a lock of another user", err)
	}
	store.Advance(30 * time.Second)
	renewed, err := ann.Renew(ctx, uid)
	if err != nil || !renewed.ExpiresAt.After(first.ExpiresAt) || renewed.Fence != first.Fence {
		t.Errorf("got %+v %v", renewed, err)
	}
	if lock, held, err := seven.Check(ctx, uid); !held || err != nil || lock != renewed {
		t.Errorf("got %+v %v %v, want %+v", lock, held, err, renewed)
	}
	for range 2 {
		if err := ann.Release(ctx, uid); err != nil {
			t.Error(err)
		}
	}
	if _, err := seven.Acquire(ctx, uid); err != nil {
		t.Error(err)
	}
	if _, err := ann.Renew(ctx, uid); !errors.As(err, &locked) || locked.Holder != "7" {
		t.Errorf("got %v, want the holder that has a number", err)
	}
	store.Advance(time.Minute)
	if again, err := ann.Renew(ctx, uid); err != nil || again.Fence <= first.Fence {
		t.Errorf("got %+v %v, want a new lock", again, err)
	}
}

func TestClient_Outage(t *testing.T) {
	t.Parallel()
	address, store := start(t)
	store.Fail(fault.New(fault.Unavailable, "gone"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>", http.StatusLocked)
	}))
	t.Cleanup(proxy.Close)
	for _, tt := range []struct {
		name, address string
	}{
		{"the store is down", address},
		{"the service is down", "http://127.0.0.1:1"},
		{"a proxy answers", proxy.URL},
	} {
		c := &mutex.Client{URL: tt.address, User: "ann"}
		_, acquire := c.Acquire(t.Context(), "u")
		_, _, check := c.Check(t.Context(), "u")
		for call, err := range map[string]error{"Acquire": acquire, "Check": check, "Release": c.Release(t.Context(), "u")} {
			if !errors.Is(err, mutex.ErrUnavailable) || errors.Is(err, mutex.ErrLocked) {
				t.Errorf("%s: %s got %v", tt.name, call, err)
			}
		}
		_, err := c.Acquire(ended, "u")
		if !errors.Is(err, mutex.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want the context's error too", tt.name, err)
		}
	}
}

func TestClient_Mistakes(t *testing.T) {
	t.Parallel()
	address, _ := start(t)
	for _, tt := range []struct{ name, address, user, uid string }{
		{"no user", address, "", "u"},
		{"no uid", address, "ann", ""},
		{"a uid with NUL", address, "ann", "a\x00"},
		{"a bad address", "::", "ann", "u"},
	} {
		c := &mutex.Client{URL: tt.address, User: tt.user}
		if _, err := c.Acquire(t.Context(), tt.uid); err == nil || errors.Is(err, mutex.ErrUnavailable) || errors.Is(err, mutex.ErrLocked) {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

func Example() {
	address, _, stop, err := startService()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	ctx := context.Background()
	ann := &mutex.Client{URL: address, User: "ann"}
	bob := &mutex.Client{URL: address, User: "bob"}

	if _, err := ann.Acquire(ctx, "draft-1"); err == nil {
		fmt.Println("ann edits")
	}
	_, err = bob.Acquire(ctx, "draft-1")
	var locked *mutex.LockedError
	switch {
	case errors.As(err, &locked):
		fmt.Println("bob reads, because it is in use by", locked.Holder)
	case errors.Is(err, mutex.ErrUnavailable):
		fmt.Println("bob edits without a lock, or not at all")
	}
	if err := ann.Release(ctx, "draft-1"); err == nil {
		fmt.Println("ann has left")
	}
	// Output:
	// ann edits
	// bob reads, because it is in use by ann
	// ann has left
}

// A redirect by a gateway turns POST into GET, which shows the lock of any user.
func TestClient_RedirectGrantsNothing(t *testing.T) {
	t.Parallel()
	address, _ := start(t)
	if _, err := (&mutex.Client{URL: address, User: "ann"}).Acquire(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, address+r.URL.Path, http.StatusMovedPermanently)
	}))
	t.Cleanup(gateway.Close)
	bob := &mutex.Client{URL: gateway.URL, User: "bob"}
	if lock, err := bob.Acquire(t.Context(), "d"); !errors.Is(err, mutex.ErrUnavailable) {
		t.Errorf("got %+v, %v, want an outage", lock, err)
	}
	if lock, held, err := bob.Check(t.Context(), "d"); !held || err != nil || lock.User != "ann" {
		t.Errorf("got %+v %v %v, want the lock of ann", lock, held, err)
	}
}
