package locktopus

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
)

// breakingStore panics in the calls of connections while it is broken. It has stored a new
// claim then.
type breakingStore struct {
	*enginetest.Store

	broken atomic.Bool
	stored func(q engine.Claim) // is called for each new claim before its caller goes on; may be nil
}

func (s *breakingStore) panicIfBroken() {
	if s.broken.Load() {
		panic("a bug in the store")
	}
}

func (s *breakingStore) OpenNamespace(ctx context.Context, ns string) error {
	s.panicIfBroken()
	return s.Store.OpenNamespace(ctx, ns)
}

func (s *breakingStore) Stats(ctx context.Context, ns string) (engine.NamespaceStats, error) {
	s.panicIfBroken()
	return s.Store.Stats(ctx, ns)
}

func (s *breakingStore) Enqueue(ctx context.Context, q engine.Claim) (engine.Place, error) {
	place, err := s.Store.Enqueue(ctx, q)
	s.panicIfBroken()
	if s.stored != nil {
		s.stored(q)
	}
	return place, err
}

func (s *breakingStore) Withdraw(ctx context.Context, caller uuid.UUID, ns string, id uuid.UUID) ([]uuid.UUID, error) {
	s.panicIfBroken()
	return s.Store.Withdraw(ctx, caller, ns, id)
}

func (s *breakingStore) Disconnect(ctx context.Context, by uuid.UUID, ns string, id uuid.UUID) ([]uuid.UUID, error) {
	s.panicIfBroken()
	return s.Store.Disconnect(ctx, by, ns, id)
}

// breakingLog panics at one line with a text, unless that is empty.
type breakingLog struct {
	slog.Handler

	text atomic.Value
}

func (l *breakingLog) Handle(ctx context.Context, r slog.Record) error {
	text, _ := l.text.Load().(string)
	if text != "" && strings.Contains(r.Message, text) && l.text.CompareAndSwap(text, "") {
		panic("a bug in the log")
	}
	return l.Handler.Handle(ctx, r)
}

func TestConnection_PanicEndsItAlone(t *testing.T) {
	for name, tt := range map[string]struct {
		provoke func(f *harness, c *client)
		text    string // of the panic
	}{
		"while a lock is taken": {
			provoke: func(f *harness, c *client) {
				f.store.broken.Store(true)
				c.lock("w new")
				c.wantsError("Internal server error", websocket.CloseInternalServerErr)
			}, text: "a bug in the store",
		},
		"while a lock is released": {
			provoke: func(f *harness, c *client) {
				c.lock("w new")
				c.wants("2", "lock", "acquired")
				f.store.broken.Store(true)
				c.release()
				c.wantsError("Internal server error", websocket.CloseInternalServerErr)
			}, text: "a bug in the store",
		},
		"while its end is noted": {
			provoke: func(f *harness, c *client) {
				c.lock("w new")
				c.wants("2", "lock", "acquired")
				f.store.broken.Store(true)
				f.engineLog.text.Store("ending claims failed")
				c.drop()
			}, text: "a bug in the log",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *harness) {
				holder, c := f.connect(""), f.connect("&abandon-timeout-ms=0")
				holder.lock("w a")
				holder.wants("1", "lock", "acquired")
				tt.provoke(f, c)
				synctest.Wait()
				f.store.broken.Store(false)
				if log := f.log.String(); !strings.Contains(log, tt.text) || !strings.Contains(log, "panic_test.go") {
					t.Errorf("the log lacks the panic or its stack: %s", log)
				}
				if n := f.countPanics(); n != 1 {
					t.Errorf("%d panics are counted, want 1", n)
				}
				other := f.connect("")
				<-time.After(2 * time.Second) // the end is sent again
				other.lock("w new")
				if text := other.next(); !strings.Contains(text, "acquired") {
					t.Errorf("got %s, want the lock of the ended connection", text)
				}
				holder.release()
				holder.wants("1", "release", "ready")
			})
		})
	}
}

func TestServer_AnswersAPanic(t *testing.T) {
	inBubble(t, func(f *harness) {
		f.store.broken.Store(true)
		if _, status, err := f.dial("namespace=library"); err == nil || status != http.StatusInternalServerError {
			t.Errorf("a new connection: %d, %v", status, err)
		}
		if n := f.server.connections(); n != 0 {
			t.Errorf("%d connections are open, want 0", n)
		}
		if status, body := f.get("/stats_v1?namespace=library"); status != http.StatusInternalServerError ||
			strings.Contains(body, "bug") {
			t.Errorf("the statistics are %d %s", status, body)
		}
		if n := f.countPanics(); n != 2 {
			t.Errorf("%d panics are counted, want 2", n)
		}
	})
}

// countPanics returns how many panics of connections are counted.
func (f *harness) countPanics() int {
	f.t.Helper()
	families, err := f.registry.Gather()
	if err != nil || len(families) != 1 {
		f.t.Fatalf("gathered %v, %v", families, err)
	}
	return int(families[0].GetMetric()[0].GetCounter().GetValue())
}
