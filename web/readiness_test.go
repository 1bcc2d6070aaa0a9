package web_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

func TestReadiness_LogsOnlyWhatChanges(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var broken error
	h := service(echoBody, func(o *web.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.Ready = func(context.Context) error { return broken }
	})
	for _, err := range []error{nil, nil, errors.New("gone"), errors.New("gone"), errors.New("read-only"), nil, nil} {
		broken = err
		h.ServeHTTP(httptest.NewRecorder(),
			httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/admin/health/ready", nil))
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	want := []string{
		`level=WARN msg="not ready" reason=gone`, `level=WARN msg="not ready" reason=read-only`,
		`level=INFO msg="ready again"`,
	}
	if len(lines) != len(want) {
		t.Fatalf("logged\n%s\nwant %d lines", log.String(), len(want))
	}
	for i := range want {
		if !strings.Contains(lines[i], want[i]) {
			t.Errorf("line %d is %s, want %s", i+1, lines[i], want[i])
		}
	}
}

func TestRequestLine_HasTheLevelOfItsFault(t *testing.T) {
	t.Parallel()
	for code, want := range map[fault.Code]string{
		fault.Unavailable:    "WARN",
		fault.TenantNotReady: "WARN",
		fault.UnknownTenant:  "INFO",
		fault.Internal:       "ERROR",
		fault.Timeout:        "ERROR",
	} {
		var log bytes.Buffer
		h := service(func(echo.Context) error { return fault.New(code, "no") }, func(o *web.Options) {
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
		})
		post(t, h, "{}")
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "level="+want) {
			t.Errorf("%s: logged %s, want one line of level %s", code, log.String(), want)
		}
	}
}
