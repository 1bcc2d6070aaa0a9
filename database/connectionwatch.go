package database

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// connectionWatch logs the loss and the return of the database, once each. It watches
// attempts to connect: the loss of a server breaks the pool's connections, and then the
// pool makes new ones.
type connectionWatch struct {
	hosts   string
	servers *servers
	log     *slog.Logger
	// settle is how long after a return failed attempts count for nothing. A proxy may still lead
	// some of them to the old primary.
	settle time.Duration

	mu       sync.Mutex
	made     time.Time // when the last connection was made; zero before the first
	returned time.Time // when the last outage ended
	lost     bool
	refused  int // calls while it is lost
}

// settleTime is longer than a proxy takes to see that a server is no primary any more
// (docs/scale.md).
const settleTime = time.Second

// attemptBegun is the key of an attempt's begin in its context.
type attemptBegun struct{}

// TraceConnectStart implements pgx.ConnectTracer.
func (w *connectionWatch) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return context.WithValue(ctx, attemptBegun{}, time.Now())
}

// TraceConnectEnd implements pgx.ConnectTracer. An attempt that began before the last connection was
// made proves nothing when it fails: a silent server lets it wait until long after the return.
func (w *connectionWatch) TraceConnectEnd(ctx context.Context, data pgx.TraceConnectEndData) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begun, _ := ctx.Value(attemptBegun{}).(time.Time)
	switch {
	case data.Err == nil:
		if w.lost {
			w.log.InfoContext(ctx, "the database is back", "database", w.hosts, "refused", w.refused)
			w.returned = time.Now()
		}
		w.made, w.lost, w.refused = time.Now(), false, 0
		w.servers.noteConnected(data.Conn)
	case w.made.IsZero(), begun.Before(w.made), !isOutage(data.Err):
	default:
		w.servers.leaveLast() // it may be the silent one
		if !w.lost && time.Since(w.returned) >= w.settle {
			w.lost = true
			w.log.ErrorContext(ctx, "the database is lost", "database", w.hosts, "err", strings.Join(listCauses(data.Err), "; "))
		}
	}
}

// countRefusal counts a call that was refused while the database is lost. It reports whether it is.
func (w *connectionWatch) countRefusal() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost {
		w.refused++
	}
	return w.lost
}

// isConnected reports whether the last attempt to connect that counts succeeded.
func (w *connectionWatch) isConnected() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.made.IsZero() && !w.lost
}

// isOutage reports whether an attempt failed because the server is lost. It is not if
// the pool gave up, or if the server has too many connections and serves those.
func isOutage(err error) bool {
	code, _ := SQLState(err)
	return code != tooManyConnections && !errors.Is(err, context.Canceled)
}
