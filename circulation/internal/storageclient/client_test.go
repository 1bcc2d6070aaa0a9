package storageclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const (
	someID    = "0b96a642-5e7f-452d-9cae-9cee66c9a892"
	anotherID = "1a54b431-2e4f-452d-9cae-9cee66c9a892"
)

// clientOf returns a client of a storage that answers as handler does.
func clientOf(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return clientFor(t, server.URL)
}

func clientFor(t *testing.T, address string) *Client {
	t.Helper()
	return clientOfSize(t, address, 32)
}

// clientOfSize returns a client for so many check-outs at once.
func clientOfSize(t *testing.T, address string, checkOuts int) *Client {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{
		URL: u, Instance: "circ-1", CheckOuts: checkOuts, Observe: func(string, string, int, time.Duration) {},
	})
	t.Cleanup(c.Close)
	return c
}

// stopClock stops the clock of the client's cache and returns the function that sets it forward.
func stopClock(c *Client) (advance func(time.Duration)) {
	now := time.Now()
	c.cache.Now = func() time.Time { return now }
	return func(d time.Duration) { now = now.Add(d) }
}

// inTenant returns the context of a call for the tenant.
func inTenant(t *testing.T, name string) context.Context {
	t.Helper()
	id, err := okapi.ParseTenant(name)
	if err != nil {
		t.Fatal(err)
	}
	return okapi.WithTenant(t.Context(), id)
}

// answer writes an answer as storage does; code may be "".
func answer(w http.ResponseWriter, status int, code fault.Code, body string) {
	if code != "" {
		w.Header().Set(fault.Header, string(code))
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func TestClient_PassesHeadersOn(t *testing.T) {
	t.Parallel()
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		answer(w, 201, "", `{"id":"`+someID+`"}`)
	}))
	t.Cleanup(server.Close)
	c := clientFor(t, strings.Replace(server.URL, "//", "//user:pass@", 1))
	ctx := okapi.NewContext(inTenant(t, "diku"), okapi.Call{
		RequestID: "r-1", UserID: anotherID, Token: "secret", Permissions: []string{"a.get", "b.put"},
	})
	if _, err := c.Acquire(ctx, checkout.LockRequest{UserID: someID, TTL: time.Second, Wait: time.Minute}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		okapi.TenantHeader: "diku", okapi.RequestIDHeader: "r-1", okapi.UserIDHeader: anotherID,
		okapi.TokenHeader: "secret", okapi.PermissionsHeader: `["a.get","b.put"]`, schemas.HolderHeader: "circ-1",
		"Content-Type": "application/json", "Authorization": "Basic dXNlcjpwYXNz",
	} {
		if got.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Get(name), want)
		}
	}
}

func TestClient_SendsNothingWithoutATenant(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	c := clientOf(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	if _, err := c.UserByBarcode(t.Context(), "1"); !errors.Is(err, okapi.ErrNoTenant) {
		t.Errorf("got %v, want %v", err, okapi.ErrNoTenant)
	}
	if _, err := c.Location(t.Context(), someID); !errors.Is(err, okapi.ErrNoTenant) {
		t.Errorf("got %v, want %v", err, okapi.ErrNoTenant)
	}
	if calls.Load() != 0 {
		t.Errorf("storage was asked %d times", calls.Load())
	}
}

func TestClient_MakesFaultsOfErrorAnswers(t *testing.T) {
	t.Parallel()
	const list = `{"errors":[{"message":"limit","code":"X","parameters":[{"key":"userBarcode",` +
		`"value":"21234567890123"}]}]}`
	tests := map[string]struct {
		status  int
		header  fault.Code
		body    string
		want    fault.Code
		message string
		details int
	}{
		"held": {
			status: 503, header: fault.LockHeld, body: "Unable to acquire lock", want: fault.LockHeld,
			message: "Another check-out of the same patron is under way", details: 0,
		},
		"a proxy's 503": {
			status: 503, header: "", body: "Unable to acquire lock", want: fault.Unavailable, message: "Storage was not reached",
			details: 0,
		},
		"headers too long for storage": {
			status: 431, header: "", body: "431 Request Header Fields Too Large", want: fault.Malformed,
			message: "The address or the headers are too long for storage", details: 0,
		},
		"queue full": {
			status: 429, header: fault.LockQueueFull, body: "", want: fault.LockQueueFull,
			message: "Another check-out of the same patron is under way", details: 0,
		},
		"fence": {
			status: 409, header: fault.LockLost, body: "", want: fault.LockLost, message: "The patron's lock was lost",
			details: 0,
		},
		"settings changed": {
			status: 409, header: fault.SettingsChanged, body: "", want: fault.SettingsChanged,
			message: "The check-out lock's settings were changed meanwhile", details: 0,
		},
		"item changed": {
			status: 409, header: fault.ItemChanged, body: "", want: fault.ItemChanged, message: "The item was changed meanwhile",
			details: 0,
		},
		"other conflict": {
			status: 409, header: fault.Conflict, body: "", want: fault.Conflict, message: "It was changed meanwhile", details: 0,
		},
		"FOLIO's errors": {
			status: 422, header: fault.Invalid, body: list, want: fault.Invalid, message: "limit", details: 1,
		},
		"errors of a failure are not shown": {
			status: 500, header: fault.Internal, body: list, want: fault.Internal, message: "Storage failed", details: 0,
		},
		"a refusal in plain text": {
			status: 422, header: fault.Invalid, body: "SELECT 1", want: fault.Invalid, message: "Storage refused the request",
			details: 0,
		},
		"what storage could not read": {
			status: 400, header: fault.Malformed, body: "CQL: EOF expected", want: fault.Malformed, message: "CQL: EOF expected",
			details: 0,
		},
		"an unknown tenant": {
			status: 404, header: fault.UnknownTenant, body: "Unknown tenant x: install it", want: fault.UnknownTenant,
			message: "Unknown tenant x: install it", details: 0,
		},
		"an unknown tenant without words": {
			status: 404, header: fault.UnknownTenant, body: "", want: fault.UnknownTenant, message: "Unknown tenant", details: 0,
		},
		"a tenant that is not ready": {
			status: 503, header: fault.TenantNotReady, body: "Tenant x has migration 3", want: fault.TenantNotReady,
			message: "Tenant x has migration 3", details: 0,
		},
		"storage's database is away": {
			status: 503, header: fault.Unavailable, body: "PostgreSQL was not reached", want: fault.Unavailable,
			message: "Storage is not available right now", details: 0,
		},
		"what a proxy could not read": {
			status: 400, header: "", body: "<html>", want: fault.Malformed, message: "Storage refused the request", details: 0,
		},
		"failure": {
			status: 500, header: fault.Internal, body: "pq: secret", want: fault.Internal, message: "Storage failed", details: 0,
		},
		"storage's time-out": {
			status: 504, header: fault.Timeout, body: "", want: fault.Timeout, message: "Storage did not answer in time",
			details: 0,
		},
		"no storage behind the proxy": {
			status: 502, header: "", body: "", want: fault.Unavailable, message: "Storage was not reached", details: 0,
		},
		"forbidden": {
			status: 403, header: "", body: "", want: fault.Forbidden, message: "Storage refused access", details: 0,
		},
		"too large": {
			status: 413, header: fault.TooLarge, body: "", want: fault.TooLarge, message: "Storage refused the request",
			details: 0,
		},
		"an unknown path": {
			status: 404, header: fault.NotFound, body: "", want: fault.Unavailable, message: "Storage was not reached",
			details: 0,
		},
		"a redirect": {
			status: 302, header: "", body: "", want: fault.Internal, message: "Storage failed", details: 0,
		},
		"a success that is another than 201": {
			status: 200, header: "", body: `{"id":"` + someID + `"}`, want: fault.Internal, message: "Storage failed",
			details: 0,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "2")
				w.Header().Set("Location", "/elsewhere")
				answer(w, tt.status, tt.header, tt.body)
			})
			_, err := c.Acquire(inTenant(t, "diku"), checkout.LockRequest{UserID: someID, Wait: time.Minute})
			var f *fault.Error
			if !errors.As(err, &f) {
				t.Fatalf("got %v, want a fault", err)
			}
			if f.Code != tt.want || f.Msg != tt.message || len(f.Details) != tt.details {
				t.Errorf("got %s %q with %d details, want %s %q with %d", f.Code, f.Msg, len(f.Details), tt.want, tt.message,
					tt.details)
			}
			if f.RetryAfter != 2*time.Second {
				t.Errorf("retry after %s, want 2s", f.RetryAfter)
			}
			logged := tt.body
			if tt.body == list {
				logged = ": limit"
			}
			if tt.status >= http.StatusBadRequest && !strings.Contains(err.Error(), logged) {
				t.Errorf("the error %q does not have %q", err, logged)
			}
			if strings.Contains(err.Error(), "21234567890123") || strings.Contains(err.Error(), someID) {
				t.Errorf("the error names a patron: %v", err)
			}
		})
	}
}

func TestClient_KnowsARefusalThatChangedNothing(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{"true": true, "": false} {
		c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(fault.UnchangedHeader, header)
			answer(w, http.StatusServiceUnavailable, fault.Unavailable, "no space left")
		})
		_, err := c.Acquire(inTenant(t, "diku"), checkout.LockRequest{UserID: someID, Wait: time.Minute})
		if fault.ChangedNothing(err) != want || (fault.Text(err) == "no space left") != want {
			t.Errorf("with the header %q: got %v, which changed nothing: %t", header, err, fault.ChangedNothing(err))
		}
	}
}

func TestClient_ReportsAnAbsentStorageWithoutThePatron(t *testing.T) {
	t.Parallel()
	_, err := clientFor(t, "http://127.0.0.1:1").UserByBarcode(inTenant(t, "diku"), "patron-4711")
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want %s", err, fault.Unavailable)
	}
	if strings.Contains(fmt.Sprint(err), "4711") {
		t.Errorf("the log names the patron: %v", err)
	}
}

// The time-out of a dial is not that of the call.
func TestClient_ReportsAHostThatDoesNotAnswerAsAbsent(t *testing.T) {
	t.Parallel()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, dialer := range map[string]interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	}{
		"TCP": &net.Dialer{Timeout: time.Nanosecond},
		"TLS": &tls.Dialer{NetDialer: &net.Dialer{Timeout: 20 * time.Millisecond}},
	} {
		c := clientFor(t, "http://"+silent.Addr().String())
		c.read.dial = dialer.DialContext
		if _, err := c.Item(inTenant(t, "diku"), someID); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: got %v, want %s", name, err, fault.Unavailable)
		}
	}
}

func TestClient_DistinguishesTheCallersDeadlineFromItsOwn(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	c := clientOf(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(stop) })
	cancelled, cancel := context.WithCancel(inTenant(t, "diku"))
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := c.Item(cancelled, someID); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	late, cancel := context.WithTimeout(inTenant(t, "diku"), 20*time.Millisecond)
	defer cancel()
	_, err := c.Item(late, someID)
	if f := (*fault.Error)(nil); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &f) {
		t.Errorf("got %v, want %v and no fault", err, context.DeadlineExceeded)
	}
	r := getRecord("", items.path, someID)
	r.timeout = 20 * time.Millisecond
	if _, err := c.do(inTenant(t, "diku"), r); !fault.Is(err, fault.Timeout) {
		t.Errorf("got %v, want %s", err, fault.Timeout)
	}
}

func TestClient_RefusesAnEndlessAnswer(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		piece := make([]byte, 1<<20)
		for range maxAnswer>>20 + 2 {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
	r := get("listing loans", "/loan-storage/loans", nil)
	r.timeout = time.Minute // a slow host reads 32 MiB in it
	if _, err := c.do(inTenant(t, "diku"), r); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v, want %s", err, fault.Invalid)
	}
}

func TestClient_ObservesCallsByTemplate(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			panic(http.ErrAbortHandler)
		}
		answer(w, 404, fault.NotFound, "")
	})
	var got []string
	c.options.Observe = func(method, route string, status int, _ time.Duration) {
		got = append(got, fmt.Sprint(method, " ", route, " ", status))
	}
	_, _ = c.Item(inTenant(t, "diku"), someID)
	_ = c.Release(inTenant(t, "diku"), someID)
	want := []string{"GET /item-storage/items/{id} 404", "DELETE /check-out-lock-storage/{id} 0"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
