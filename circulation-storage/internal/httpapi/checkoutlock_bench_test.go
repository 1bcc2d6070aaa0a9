package httpapi_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

// instantStore grants and releases each lock at once.
type instantStore struct{ lock.Store }

func (instantStore) Acquire(_ context.Context, r lock.Request) (lock.Lock, lock.Outcome, error) {
	return lock.Lock{ID: uuid.New(), UserID: r.UserID, CreatedAt: time.Now(), TTL: r.TTL}, lock.Granted, nil
}

func (instantStore) Peek(context.Context, lock.Request) (lock.Peek, error) {
	return lock.Peek{Free: true}, nil
}

func (instantStore) Release(_ context.Context, id uuid.UUID) (lock.Lock, error) {
	return lock.Lock{ID: id}, nil
}

// discard is a ResponseWriter that keeps the status alone.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }

// BenchmarkCheckoutLockRoutes measures the edge and the lock's service without a store.
func BenchmarkCheckoutLockRoutes(b *testing.B) {
	log := slog.New(slog.NewTextHandler(b.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	handler := web.New(web.Options{
		Log: log, Registry: prometheus.NewRegistry(), RequestTimeout: time.Minute, BodyLimit: bodyLimit,
	}, httpapi.CheckoutLockRoutes(lock.NewService(instantStore{}, newWaitingLine(), log), defaultTTL))
	for name, tt := range map[string]struct {
		method, target, body string
		status               int
	}{
		"acquire": {
			method: http.MethodPost, target: locksPath, body: `{"userId":"` + uuid.NewString() + `","ttlMs":3000}`,
			status: http.StatusCreated,
		},
		"release": {
			method: http.MethodDelete, target: locksPath + "/" + uuid.NewString(), body: "", status: http.StatusNoContent,
		},
	} {
		b.Run(name, func(b *testing.B) {
			body := strings.NewReader(tt.body)
			r := httptest.NewRequest(tt.method, tt.target, body)
			r.Header.Set(okapi.TenantHeader, "diku")
			r.Header.Set("Content-Type", "application/json")
			b.ReportAllocs()
			for b.Loop() {
				body.Reset(tt.body)
				r.Body = io.NopCloser(body)
				w := &discard{header: http.Header{}}
				handler.ServeHTTP(w, r)
				if w.status != tt.status {
					b.Fatalf("got status %d, want %d", w.status, tt.status)
				}
			}
		})
	}
}
