package database

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// connectionWatch logs the loss and the return of the database, once each. It watches
// attempts to connect: the loss of a server breaks the pool's connections, and then the
// pool makes new ones.
type connectionWatch struct {
	hosts string
	log   *slog.Logger

	mu   sync.Mutex
	seen bool // a connection was made before
	lost bool
}

// TraceConnectStart implements pgx.ConnectTracer.
func (w *connectionWatch) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return ctx
}

// TraceConnectEnd implements pgx.ConnectTracer.
func (w *connectionWatch) TraceConnectEnd(ctx context.Context, data pgx.TraceConnectEndData) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case data.Err == nil:
		if w.lost {
			w.log.InfoContext(ctx, "the database is back", "database", w.hosts)
		}
		w.seen, w.lost = true, false
	case w.seen && !w.lost && isOutage(data.Err):
		w.lost = true
		w.log.ErrorContext(ctx, "the database is lost", "database", w.hosts, "err", strings.Join(listCauses(data.Err), "; "))
	}
}

// isOutage reports whether an attempt failed because the server is lost. It is not if
// the pool gave up, or if the server has too many connections and serves those.
func isOutage(err error) bool {
	code, _ := SQLState(err)
	return code != tooManyConnections && !errors.Is(err, context.Canceled)
}
