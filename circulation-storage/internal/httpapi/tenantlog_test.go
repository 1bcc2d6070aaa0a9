package httpapi_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

// linesOf is a log that keeps the tenant of each line.
type linesOf struct {
	slog.Handler
	tenants []string
}

func (l *linesOf) Handle(ctx context.Context, _ slog.Record) error {
	l.tenants = append(l.tenants, okapi.FromContext(ctx).Tenant.String())
	return nil
}

func TestTenantRoutes_LogTheTenantOfAFailure(t *testing.T) {
	t.Parallel()
	lines := &linesOf{Handler: slog.NewTextHandler(t.Output(), nil)}
	handler := web.New(
		web.Options{
			Log: slog.New(lines), Registry: prometheus.NewRegistry(), RequestTimeout: time.Minute, BodyLimit: bodyLimit,
		},
		httpapi.TenantRoutes(&platform{failAt: "purge diku"}, nil, time.Minute, time.Minute),
	)
	r := httptest.NewRequest(http.MethodPost, "/_/tenant", strings.NewReader(`{"purge":true}`))
	r.Header.Set(okapi.TenantHeader, "diku")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code != http.StatusInternalServerError || len(lines.tenants) != 1 || lines.tenants[0] != "diku" {
		t.Errorf("got %d and lines of tenants %q, want 500 and one of diku", w.Code, lines.tenants)
	}
}
