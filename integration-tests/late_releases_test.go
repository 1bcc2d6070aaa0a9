package integration_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"testing"
)

// lateReleases hears in circulation's log of locks whose release was not answered
// within its second, as happens while a machine stands still. They stay until
// their TTL is over, which is no fault; tests that count locks return them first.
type lateReleases struct {
	mu    sync.Mutex
	locks []string
}

func (*lateReleases) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

func (l *lateReleases) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "lock not released; it will be outdated" {
		return nil
	}
	var lock string
	late := false
	r.Attrs(func(a slog.Attr) bool {
		switch err, _ := a.Value.Any().(error); a.Key {
		case "lock_id":
			lock = a.Value.String()
		case "err":
			late = errors.Is(err, context.DeadlineExceeded) // a link that a test cut answers otherwise
		}
		return true
	})
	if late {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.locks = append(l.locks, lock)
	}
	return nil
}

func (l *lateReleases) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *lateReleases) WithGroup(string) slog.Handler      { return l }

// take returns the locks, once.
func (l *lateReleases) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	locks := l.locks
	l.locks = nil
	return locks
}

// returnLate gives those locks back. One that is not there was released after all.
func (p *pair) returnLate(t testing.TB) {
	t.Helper()
	for _, id := range p.late.take() {
		a := do(t, p.Storage, http.MethodDelete, acquirePath+"/"+id, nil)
		t.Logf("the release of lock %s took more than a second; its repeat was answered %d", id, a.Status)
	}
}
