package storageclient

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/config/resolver/resolvertest"
	"checkoutlock/schemas"
)

// busyStorage answers what belongs to locks, commits and key leases, and holds all
// other calls up until it is freed. It counts its connections.
type busyStorage struct {
	free chan struct{}

	mu         sync.Mutex
	open, most int
	made       int
	reads      int // held up now
}

func (b *busyStorage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodDelete || r.Method == http.MethodPut:
		answer(w, http.StatusNoContent, "", "")
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/loan-storage/check-outs/"):
		answer(w, http.StatusOK, "", `{"id":"`+someID+`"}`)
	case r.URL.Path == "/admin/health/ready":
		answer(w, http.StatusOK, "", "ready")
	case r.Method == http.MethodPost:
		answer(w, http.StatusCreated, "", `{"id":"`+someID+`","loan":{},"loanId":"`+someID+`"}`)
	default:
		b.mu.Lock()
		b.reads++
		b.mu.Unlock()
		select {
		case <-b.free:
		case <-r.Context().Done():
		}
		answer(w, http.StatusOK, "", `{"id":"`+someID+`"}`)
	}
}

func (b *busyStorage) note(_ net.Conn, state http.ConnState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch state {
	case http.StateNew:
		b.made++
		b.open++
		b.most = max(b.most, b.open)
	case http.StateClosed:
		b.open--
	default:
	}
}

func (b *busyStorage) held() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reads
}

func TestClient_SettlesCheckOutsWhileReadsWaitForConnections(t *testing.T) {
	t.Parallel()
	const checkOuts = 8
	b := &busyStorage{free: make(chan struct{})}
	server := httptest.NewUnstartedServer(b)
	server.Config.ConnState = b.note
	server.Start()
	t.Cleanup(server.Close)
	c := clientOfSize(t, server.URL, checkOuts)
	ctx := inTenant(t, "diku")
	var reading sync.WaitGroup
	for range 100 {
		reading.Go(func() {
			if _, err := c.Item(ctx, someID); err != nil {
				t.Errorf("reading: %v", err)
			}
		})
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for b.held() < readConnections(checkOuts) {
		<-tick.C
	}

	var settling sync.WaitGroup
	for range checkOuts {
		settling.Go(func() {
			for range 20 {
				settleAll(ctx, t, c)
			}
		})
	}
	settling.Wait()
	if n := b.held(); n != readConnections(checkOuts) {
		t.Errorf("%d reads reached storage at once, want %d", n, readConnections(checkOuts))
	}
	close(b.free)
	reading.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.most >= 2*checkOuts || b.made != b.most {
		t.Errorf("%d connections at once and %d in all, want fewer than %d and none made twice", b.most, b.made, 2*checkOuts)
	}
}

// settleAll makes the calls of a check-out that must not wait behind others.
func settleAll(ctx context.Context, t *testing.T, c *Client) {
	t.Helper()
	for name, call := range map[string]func() error{
		"acquire": func() error {
			_, err := c.Acquire(ctx, checkout.LockRequest{UserID: someID, Wait: time.Minute})
			return err
		},
		"commit": func() error {
			_, err := c.CheckOut(ctx, schemas.CheckOut{})
			return err
		},
		"release":            func() error { return c.Release(ctx, someID) },
		"release by request": func() error { return c.ReleaseAcquisition(ctx, someID, anotherID) },
		"loan of a commit": func() error {
			_, err := c.CommittedLoan(ctx, someID)
			return err
		},
		"key lease": func() error {
			_, _, err := c.LeaseKey(ctx, schemas.KeyLeaseRequest{WaitMs: 60_000})
			return err
		},
		"change of a key lease": func() error {
			return c.RenewLease(ctx, someID, 0)
		},
		"readiness": func() error { return c.Ready(ctx) },
	} {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClient_ConnectionsStayBelowTwiceTheCheckOuts(t *testing.T) {
	t.Parallel()
	for n := 8; n <= 1000; n++ {
		if sum := settleConnections(n) + readConnections(n); sum >= 2*n {
			t.Errorf("%d check-outs may have %d connections", n, sum)
		}
	}
}

//nolint:paralleltest // it replaces the default resolver
func TestClient_ReachesStorageAfterALostAnswerOfTheNameServer(t *testing.T) {
	(&resolvertest.Server{Lost: 1}).ReplaceDefault(t)
	server := httptest.NewServer(&busyStorage{})
	t.Cleanup(server.Close)
	c := clientFor(t, strings.Replace(server.URL, "127.0.0.1", "storage.test.", 1))
	if err := c.Release(inTenant(t, "diku"), someID); err != nil {
		t.Error(err)
	}
}
