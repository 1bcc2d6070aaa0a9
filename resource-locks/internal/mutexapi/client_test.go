package mutexapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"checkoutlock/resource-locks/mutex"
	"checkoutlock/schemas/fault"
)

// newClient returns a client of the server for a user.
func (s *harness) newClient(user string) *mutex.Client {
	return &mutex.Client{URL: s.URL(), User: user, HTTP: s.client}
}

func TestClient(t *testing.T) {
	t.Parallel()
	s := startHarness(t)
	ctx := t.Context()
	ann, seven := s.newClient("ann"), s.newClient("7")
	ann.URL += "/"
	const uid = "drafts/ä %2F 1"

	if _, held, err := seven.Check(ctx, uid); held || err != nil {
		t.Errorf("got %v %v of a free resource", held, err)
	}
	first, err := ann.Acquire(ctx, uid)
	if err != nil || first.UID != uid || first.User != "ann" || first.Fence == 0 ||
		first.ExpiresAt.Sub(first.LockedAt) != time.Minute {
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
	s.store.Advance(30 * time.Second)
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
	s.store.Advance(time.Minute)
	if again, err := ann.Renew(ctx, uid); err != nil || again.Fence <= first.Fence {
		t.Errorf("got %+v %v, want a new lock", again, err)
	}
}

func TestClient_Outage(t *testing.T) {
	t.Parallel()
	s := startHarness(t)
	s.store.Fail(fault.New(fault.Unavailable, "gone"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>", http.StatusLocked)
	}))
	t.Cleanup(proxy.Close)
	for _, tt := range []struct {
		name, address string
	}{
		{"the store is down", s.URL()},
		{"the service is down", "http://127.0.0.1:1"},
		{"a proxy answers", proxy.URL},
	} {
		c := s.newClient("ann")
		c.URL = tt.address
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
	s := startHarness(t)
	for _, tt := range []struct{ name, address, user, uid string }{
		{name: "no user", address: s.URL(), user: "", uid: "u"},
		{name: "no uid", address: s.URL(), user: "ann", uid: ""},
		{name: "a uid with NUL", address: s.URL(), user: "ann", uid: "a\x00"},
		{name: "a bad address", address: "::", user: "ann", uid: "u"},
		{name: "an address without a scheme", address: "localhost:9003", user: "ann", uid: "u"},
		{name: "a user that no header can have", address: s.URL(), user: "ann\n", uid: "u"},
		{name: "a user that a header changes", address: s.URL(), user: " ann", uid: "u"},
	} {
		c := s.newClient(tt.user)
		c.URL = tt.address
		if _, err := c.Acquire(t.Context(), tt.uid); err == nil || errors.Is(err, mutex.ErrUnavailable) ||
			errors.Is(err, mutex.ErrLocked) {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

// A gateway in front may answer for the service, and well.
func TestClient_AnotherAnswerGrantsNothing(t *testing.T) {
	t.Parallel()
	s := startHarness(t)
	for _, body := range []string{`{}`, `null`, `{"status":"maintenance"}`, `{"uid":"other","user_id":"ann","fence":1}`} {
		gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(gateway.Close)
		c := s.newClient("ann")
		c.URL = gateway.URL
		if lock, err := c.Acquire(t.Context(), "u"); !errors.Is(err, mutex.ErrUnavailable) {
			t.Errorf("%s: Acquire got %+v, %v, want an outage", body, lock, err)
		}
		if lock, held, err := c.Check(t.Context(), "u"); held || !errors.Is(err, mutex.ErrUnavailable) {
			t.Errorf("%s: Check got %+v, %t, %v, want an outage", body, lock, held, err)
		}
	}
}

// A redirect by a gateway turns POST into GET, which shows the lock of any user.
func TestClient_RedirectGrantsNothing(t *testing.T) {
	t.Parallel()
	s := startHarness(t)
	if _, err := s.newClient("ann").Acquire(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, s.URL()+r.URL.Path, http.StatusMovedPermanently)
	}))
	t.Cleanup(gateway.Close)
	bob := s.newClient("bob")
	bob.URL = gateway.URL
	if lock, err := bob.Acquire(t.Context(), "d"); !errors.Is(err, mutex.ErrUnavailable) {
		t.Errorf("got %+v, %v, want an outage", lock, err)
	}
	if lock, held, err := bob.Check(t.Context(), "d"); !held || err != nil || lock.User != "ann" {
		t.Errorf("got %+v %v %v, want the lock of ann", lock, held, err)
	}
}
