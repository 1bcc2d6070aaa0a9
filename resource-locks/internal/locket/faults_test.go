package locket_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/resource-locks/internal/locket"
	"checkoutlock/resource-locks/internal/locket/locketpb"
	"checkoutlock/schemas/fault"
)

// hookedStore calls before in place of each acquire's beginning.
type hookedStore struct {
	*enginetest.Store
	before func(ctx context.Context) error
}

func (s *hookedStore) Acquire(ctx context.Context, a engine.Acquire) (engine.Result, error) {
	if err := s.before(ctx); err != nil {
		return engine.Result{}, err
	}
	return s.Store.Acquire(ctx, a)
}

// startHooked returns a server whose acquires call before.
func startHooked(t *testing.T, timeout time.Duration, before func(context.Context) error) (*harness,
	locketpb.LocketClient,
) {
	t.Helper()
	settings := plaintext()
	settings.OperationTimeout = timeout
	store := enginetest.NewStore()
	s := newHarness(settings, &hookedStore{store, before})
	s.store = store
	s.start(t)
	return s, s.client(t)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		err     error
		code    codes.Code
		message string
	}{
		{
			name: "unavailable", err: fault.New(fault.Unavailable, "secret"), code: codes.Unavailable,
			message: "the database is not available: try again",
		},
		{
			name: "time-out", err: fault.New(fault.Timeout, "secret"), code: codes.DeadlineExceeded,
			message: "the database did not answer in time: try again",
		},
		{
			name: "invalid", err: fault.New(fault.Invalid, "the key is odd"), code: codes.InvalidArgument,
			message: "the key is odd",
		},
		{name: "a client that left", err: context.Canceled, code: codes.Canceled, message: "the client has left"},
		{name: "bug", err: errors.New("secret"), code: codes.Internal, message: "internal error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			settings := plaintext()
			settings.OperationTimeout = 2 * time.Second // longer than a busy host stands still
			s := startHarness(t, settings)
			c := s.client(t)
			s.store.Fail(tt.err)
			_, err := c.Lock(t.Context(), lockFor(15, resource("k", "a")))
			wantStatus(t, err, tt.code, tt.message)
			_, err = c.Release(t.Context(), &locketpb.ReleaseRequest{Resource: resource("k", "a")})
			wantStatus(t, err, tt.code, tt.message)
			_, err = c.Fetch(t.Context(), &locketpb.FetchRequest{Key: "k"})
			wantStatus(t, err, tt.code, tt.message)
			_, err = c.FetchAll(t.Context(), &locketpb.FetchAllRequest{TypeCode: locketpb.TypeCode_LOCK})
			wantStatus(t, err, tt.code, tt.message)
			outage := tt.code == codes.Unavailable || tt.code == codes.DeadlineExceeded
			quiet := outage || tt.code == codes.Canceled
			if n := s.refused.Load(); outage != (n == 4) || quiet == strings.Contains(s.log.String(), `"level":"WARN"`) {
				t.Errorf("%d refusals are counted: %s", n, s.log)
			}
			if tt.code == codes.Internal && !strings.Contains(s.log.String(), "secret") {
				t.Error("the log lacks the cause")
			}
		})
	}
}

func TestLock_SaysThatTheDatabaseIsAwayWhenTheTimeEndsDuringAnAttempt(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	_, c := startHooked(t, 300*time.Millisecond, func(ctx context.Context) error {
		if calls.Add(1) == 1 {
			return fault.New(fault.Unavailable, "the server restarts")
		}
		<-ctx.Done()
		return fault.New(fault.Timeout, "timed out")
	})
	_, err := c.Lock(t.Context(), lockFor(15, resource("k", "a")))
	wantStatus(t, err, codes.Unavailable, "the database is not available: try again")
}

func TestLock_SurvivesAShortOutage(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	_, c := startHooked(t, 10*time.Second, func(context.Context) error {
		if calls.Add(1) <= 2 {
			return fault.New(fault.Unavailable, "the server restarts")
		}
		return nil
	})
	mustLock(t, c, resource("k", "a"))
	wantOwner(t, c, "k", "a")
}

// lostRelease loses the answer to a release. Another owner has the lock when it is repeated.
type lostRelease struct {
	*enginetest.Store
	lost atomic.Bool
}

func (s *lostRelease) Release(ctx context.Context, key engine.Key, owner string) (engine.Result, error) {
	r, err := s.Store.Release(ctx, key, owner)
	if err != nil || s.lost.Swap(true) {
		return r, err
	}
	if _, err := s.Acquire(ctx, engine.Acquire{Key: key, Owner: "b", Kind: "lock", TTL: time.Minute}); err != nil {
		return engine.Result{}, err
	}
	return engine.Result{}, fault.New(fault.Unavailable, "the connection is lost")
}

func TestRelease_ThatTookPlaceIsNoCollision(t *testing.T) {
	t.Parallel()
	s := newHarness(plaintext(), &lostRelease{Store: enginetest.NewStore()})
	s.start(t)
	c := s.client(t)
	mustLock(t, c, resource("k", "a"))
	if _, err := c.Release(t.Context(), &locketpb.ReleaseRequest{Resource: resource("k", "a")}); err != nil {
		t.Error(err)
	}
	wantOwner(t, c, "k", "b")
	_, err := c.Release(t.Context(), &locketpb.ReleaseRequest{Resource: resource("k", "a")})
	wantStatus(t, err, codes.AlreadyExists, "lock-collision")
}

func TestLock_WorkDoesNotEndWithItsClient(t *testing.T) {
	t.Parallel()
	begun, proceed := make(chan struct{}), make(chan struct{})
	s, c := startHooked(t, 10*time.Second, func(ctx context.Context) error {
		close(begun)
		<-proceed
		return ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := c.Lock(ctx, lockFor(15, resource("k", "a")))
		left <- err
	}()
	<-begun
	cancel()
	wantStatus(t, <-left, codes.Canceled, "")
	wantOwner(t, c, "k", "") // the server has read the cancel before this call
	close(proceed)
	waitFor(t, func() bool { return s.countLocks(t) == 1 })
	waitFor(t, func() bool { return strings.Contains(s.metricsText(t), `RequestsCancelled{request_type="Lock"} 1`) })
}

// waitingStore lists nothing until proceed is closed.
type waitingStore struct {
	*enginetest.Store
	begun, proceed chan struct{}
}

func (s *waitingStore) List(ctx context.Context, f engine.Filter) ([]engine.Lock, error) {
	s.begun <- struct{}{}
	<-s.proceed
	return s.Store.List(ctx, f)
}

func TestFetchAll_ClientThatLeavesWhileOthersAreUnderWay(t *testing.T) {
	t.Parallel()
	store := &waitingStore{enginetest.NewStore(), make(chan struct{}), make(chan struct{})}
	s := newHarness(plaintext(), store)
	s.store = store.Store
	s.start(t)
	c := s.client(t)
	defer close(store.proceed)
	all := &locketpb.FetchAllRequest{TypeCode: locketpb.TypeCode_LOCK}
	for range locket.MaxLists {
		go func() { _, _ = c.FetchAll(context.WithoutCancel(t.Context()), all) }()
		<-store.begun
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := c.FetchAll(ctx, all)
		left <- err
	}()
	inFlight := fmt.Sprintf(`RequestsInFlight{request_type="FetchAll"} %d`, locket.MaxLists+1)
	waitFor(t, func() bool { return strings.Contains(s.metricsText(t), inFlight) })
	cancel()
	wantStatus(t, <-left, codes.Canceled, "")
	waitFor(t, func() bool { return strings.Contains(s.log.String(), `"msg":"call"`) })
	if n, log := s.refused.Load(), s.log.String(); n != 0 || !strings.Contains(log, `"code":"Canceled"`) {
		t.Errorf("%d refusals are counted, want a line of a client that left: %s", n, log)
	}
}

func TestLock_WorkHasATimeOut(t *testing.T) {
	t.Parallel()
	s, c := startHooked(t, 100*time.Millisecond, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	_, err := c.Lock(t.Context(), lockFor(15, resource("k", "a")))
	wantStatus(t, err, codes.DeadlineExceeded, "")
	if n := s.countLocks(t); n != 0 {
		t.Errorf("%d locks are stored", n)
	}
}

func TestPanic_EndsOneCall(t *testing.T) {
	t.Parallel()
	s, c := startHooked(t, 10*time.Second, func(context.Context) error { panic("a bug") })
	_, err := c.Lock(t.Context(), lockFor(15, resource("k", "a")))
	wantStatus(t, err, codes.Internal, "internal error")
	wantOwner(t, c, "k", "")
	if log := s.log.String(); !strings.Contains(log, "a bug") || !strings.Contains(log, "faults_test.go") {
		t.Errorf("the log lacks the panic or its stack:\n%s", log)
	}
}

func TestLog_HasTheFirstRequestID(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "uuid", "3f0c6a6e-0000-4000-8000-000000000001", "uuid", "second")
	if _, err := c.Lock(ctx, lockFor(15, resource("bbs", "cell-1"))); err != nil {
		t.Fatal(err)
	}
	_, err := c.Lock(metadata.AppendToOutgoingContext(t.Context(), "uuid", ""), lockFor(0, resource("bbs", "cell-1")))
	wantStatus(t, err, codes.InvalidArgument, "invalid-ttl")
	waitFor(t, func() bool { return strings.Count(s.log.String(), `"msg":"call"`) == 2 })
	lines := strings.Split(s.log.String(), "\n")
	for _, part := range []string{
		`"level":"DEBUG"`, `"method":"Lock"`, `"code":"OK"`, `"key":"bbs"`, `"owner":"cell-1"`,
		`"request_id":"3f0c6a6e-0000-4000-8000-000000000001"`,
	} {
		if !strings.Contains(strings.Join(lines[:len(lines)-2], "\n"), part) {
			t.Errorf("the lines lack %s: %s", part, lines)
		}
	}
	if last := lines[len(lines)-2]; !strings.Contains(last, `"level":"WARN"`) || strings.Contains(last, "request_id") {
		t.Errorf("got the last line %s", last)
	}
}

// metricsText returns all metrics as Prometheus reads them.
func (s *harness) metricsText(t *testing.T) string {
	t.Helper()
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}).ServeHTTP(rec,
		httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return rec.Body.String()
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	mustLock(t, c, resource("a", "o"))
	mustLock(t, c, resource("b", "o"))
	mustLock(t, c, &locketpb.Resource{Key: "cell", Owner: "o", TypeCode: locketpb.TypeCode_PRESENCE})
	_, err := c.Lock(t.Context(), lockFor(15, resource("a", "other")))
	wantStatus(t, err, codes.AlreadyExists, "")
	_, err = c.Lock(t.Context(), lockFor(0, resource("a", "o")))
	wantStatus(t, err, codes.InvalidArgument, "")
	want := []string{
		"ActiveLocks 2", "ActivePresences 1", "LocksExpired 0", "PresenceExpired 0",
		`RequestsStarted{request_type="Lock"} 5`, `RequestsSucceeded{request_type="Lock"} 4`,
		`RequestsFailed{request_type="Lock"} 1`, `RequestsInFlight{request_type="Lock"} 0`,
		`RequestsCancelled{request_type="Lock"} 0`, `RequestsStarted{request_type="FetchAll"} 0`,
		`locket_requests_total{code="AlreadyExists",method="Lock"} 1`,
		`locket_request_duration_seconds_count{method="Lock"} 5`,
	}
	for _, line := range want {
		if text := s.metricsText(t); !strings.Contains(text, line+"\n") {
			t.Errorf("the metrics lack %s:\n%s", line, text)
		}
	}
}

func TestMetrics_LatencyStartsAnewAtEachScrape(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	mustLock(t, c, resource("a", "o"))
	const idle = `RequestLatencyMax{request_type="Lock"} 0` + "\n"
	if text := s.metricsText(t); strings.Contains(text, idle) ||
		!strings.Contains(text, `RequestLatencyMax{request_type="Lock"}`) {
		t.Errorf("got %s", text)
	}
	if text := s.metricsText(t); !strings.Contains(text, idle) {
		t.Errorf("got %s", text)
	}
}

func TestMetrics_CountExpiries(t *testing.T) {
	t.Parallel()
	s := startHarness(t, plaintext())
	for _, e := range []engine.Event{
		{Kind: engine.EventExpired, Namespace: "locket", LockKind: "lock"},
		{Kind: engine.EventExpired, Namespace: "locket", LockKind: "presence"},
		{Kind: engine.EventExpired, Namespace: "locket", LockKind: "presence"},
		{Kind: engine.EventExpired, Namespace: "mutex", LockKind: "lock"},
		{Kind: engine.EventReleased, Namespace: "locket", LockKind: "lock"},
	} {
		s.events.Observe(e)
	}
	text := s.metricsText(t)
	if !strings.Contains(text, "LocksExpired 1\n") || !strings.Contains(text, "PresenceExpired 2\n") {
		t.Errorf("got %s", text)
	}
	s.store.Fail(fault.New(fault.Unavailable, "gone"))
	if text := s.metricsText(t); strings.Contains(text, "ActiveLocks") {
		t.Errorf("a number is shown without the store: %s", text)
	}
}

// waitFor polls, because the server works on after its client has left.
func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(10 * time.Second)
	for !condition() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatal("the condition stays false")
		}
	}
}
