package locket_test

import (
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"checkoutlock/config"
	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/resource-locks/internal/locket"
	"checkoutlock/resource-locks/internal/locket/locketpb"
)

// harness is a front over a store in memory.
type harness struct {
	*locket.Listener
	store    *enginetest.Store
	events   *observers // of the locks
	registry *prometheus.Registry
	log      *logBuffer
	refused  atomic.Int32 // calls during an outage
}

// logBuffer collects the log of a front.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// observers pass events to the observer of a front that is made after the locks.
type observers struct{ front engine.Observer }

func (o *observers) Observe(e engine.Event) {
	if o.front != nil {
		o.front.Observe(e)
	}
}

func plaintext() locket.Settings {
	return locket.Settings{Addr: "127.0.0.1:0", Plaintext: true, OperationTimeout: 10 * time.Second}
}

func newHarness(settings locket.Settings, store engine.LockStore) *harness {
	s := &harness{events: &observers{}, registry: prometheus.NewRegistry(), log: &logBuffer{}}
	s.Listener = locket.NewListener(locket.Options{
		Settings: settings, Locks: engine.NewLocks(store, s.events), Observe: func(o engine.Observer) { s.events.front = o },
		Log: config.Log{Level: "debug"}.New(io.Writer(s.log), ""), Registry: s.registry,
		HTTP: config.HTTP{ShutdownTimeout: 5 * time.Second}, CountRefusal: func() bool { return s.refused.Add(1) > 0 },
	})
	return s
}

// startHarness serves until the test ends.
func startHarness(t *testing.T, settings locket.Settings) *harness {
	t.Helper()
	store := enginetest.NewStore()
	s := newHarness(settings, store)
	s.store = store
	s.start(t)
	return s
}

func (s *harness) start(t *testing.T) {
	t.Helper()
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		if err := s.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// dial returns a connection that the test closes at its end.
func (s *harness) dial(t *testing.T, transport credentials.TransportCredentials,
	more ...grpc.DialOption,
) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(s.URL(), append(more, grpc.WithTransportCredentials(transport))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (s *harness) client(t *testing.T) locketpb.LocketClient {
	t.Helper()
	return locketpb.NewLocketClient(s.dial(t, insecure.NewCredentials()))
}

// start returns a server and a client of it.
func start(t *testing.T) (*harness, locketpb.LocketClient) {
	t.Helper()
	s := startHarness(t, plaintext())
	return s, s.client(t)
}

func resource(key, owner string) *locketpb.Resource {
	return &locketpb.Resource{Key: key, Owner: owner, Value: "v", TypeCode: locketpb.TypeCode_LOCK}
}

func lockFor(seconds int64, r *locketpb.Resource) *locketpb.LockRequest {
	return &locketpb.LockRequest{Resource: r, TtlInSeconds: seconds}
}

// mustLock locks for 15 s.
func mustLock(t *testing.T, c locketpb.LocketClient, r *locketpb.Resource) {
	t.Helper()
	if _, err := c.Lock(t.Context(), lockFor(15, r)); err != nil {
		t.Fatal(err)
	}
}

// wantStatus compares code and message; an empty message is any.
func wantStatus(t *testing.T, err error, code codes.Code, message string) {
	t.Helper()
	got := status.Convert(err)
	if got.Code() != code || message != "" && got.Message() != message {
		t.Errorf("got %v %q, want %v %q", got.Code(), got.Message(), code, message)
	}
}

// wantOwner compares the owner of a key; an empty owner is a free key.
func wantOwner(t *testing.T, c locketpb.LocketClient, key, owner string) {
	t.Helper()
	got, err := c.Fetch(t.Context(), &locketpb.FetchRequest{Key: key})
	if owner == "" {
		wantStatus(t, err, codes.NotFound, "resource-not-found")
	} else if err != nil || got.GetResource().GetOwner() != owner {
		t.Errorf("got %v %v, want the owner %q", got, err, owner)
	}
}
