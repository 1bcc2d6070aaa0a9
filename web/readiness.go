package web

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"
)

// readiness answers /admin/health/ready. Probes come every few seconds, so it logs
// only what changes.
type readiness struct {
	ready func(context.Context) error
	log   *slog.Logger

	mu   sync.Mutex
	last string // why the service was not ready; "" when it was
}

func newReadiness(o Options) *readiness { return &readiness{ready: o.Ready, log: o.Log} }

func (r *readiness) answer(c echo.Context) error {
	ctx := c.Request().Context()
	err := r.ready(ctx)
	reason := ""
	if err != nil {
		reason = publicText(err)
	}
	r.logChange(ctx, reason)
	if err != nil {
		return c.String(http.StatusServiceUnavailable, "not ready: "+reason)
	}
	return c.String(http.StatusOK, "ready")
}

func (r *readiness) logChange(ctx context.Context, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch reason {
	case r.last:
	case "":
		r.log.InfoContext(ctx, "ready again")
	default:
		r.log.WarnContext(ctx, "not ready", "reason", reason)
	}
	r.last = reason
}

func publicText(err error) string {
	if f, ok := asFault(err); ok {
		return f.Msg
	}
	return err.Error()
}
