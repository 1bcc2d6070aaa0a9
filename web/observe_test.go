package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/config"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// debugLog writes every line to w.
func debugLog(w io.Writer) *slog.Logger { return config.Log{Level: "debug"}.New(w, "") }

// requestLine is the line of one request that a handler answered with err.
func requestLine(t *testing.T, err error) (line map[string]any) {
	t.Helper()
	var log bytes.Buffer
	h := service(func(c echo.Context) error {
		if err != nil {
			return err
		}
		return c.NoContent(http.StatusNoContent)
	}, func(o *web.Options) { o.Log = debugLog(&log) })
	post(t, h, "{}")
	if err := json.Unmarshal(log.Bytes(), &line); err != nil {
		t.Fatalf("logged %q, want one line: %v", log.String(), err)
	}
	return line
}

func TestRequestLine_HasALevelByCode(t *testing.T) {
	t.Parallel()
	levels := map[string][]fault.Code{
		"DEBUG": {
			"", fault.NotFound, fault.Invalid, fault.Conflict, fault.InUse, fault.LockHeld, fault.LockQueueFull, fault.LockLost,
			fault.LockNotAcquired, fault.SettingsChanged, fault.ItemChanged, fault.RequestChanged, fault.LoanChanged,
			fault.KeyLeaseLost, fault.GivenUp,
			fault.RequestRunning, fault.LimitReached,
		},
		"INFO": {
			fault.Malformed, fault.MethodNotAllowed, fault.Unauthorized, fault.Forbidden, fault.TooLarge, fault.KeyReused,
			fault.LoginRefused, fault.TooManyTries, fault.UnknownTenant,
		},
		"WARN":  {fault.Overloaded, fault.TenantNotReady, fault.Unavailable},
		"ERROR": {fault.Internal, fault.Timeout, fault.OutcomeUnknown},
	}
	tested := map[fault.Code]bool{}
	for level, codes := range levels {
		for _, code := range codes {
			tested[code] = true
			var err error
			if code != "" {
				err = fault.New(code, "why")
			}
			if line := requestLine(t, err); line["level"] != level {
				t.Errorf("a request that ends with %q is %v, want %s", code, line["level"], level)
			}
		}
	}
	for _, code := range fault.Codes() {
		if !tested[code] {
			t.Errorf("%s has no level here", code)
		}
	}
	if line := requestLine(t, errors.New("a bug")); line["level"] != "ERROR" || line["err"] != "a bug" {
		t.Errorf("an error that is no fault is %v", line)
	}
	if line := requestLine(t, fmt.Errorf("waiting: %w", context.Canceled)); line["level"] != "DEBUG" ||
		line["status"] != 499.0 {
		t.Errorf("a client that left is %v", line)
	}
}

// The mutex of resource-locks answers it without an error.
func TestRequestLine_OfALockThatAnotherHoldsIsDebug(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := service(func(c echo.Context) error { return c.NoContent(http.StatusLocked) },
		func(o *web.Options) { o.Log = debugLog(&log) })
	post(t, h, "{}")
	if !strings.Contains(log.String(), `"level":"DEBUG"`) {
		t.Errorf("logged %s, want a line of level debug", log.String())
	}
}

func TestRequestLine_OfAnUnknownPathIsInfo(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := service(echoBody, func(o *web.Options) { o.Log = config.Log{Level: "info"}.New(&log, "") })
	for _, path := range []string{"/no/such/path", "/admin/health", "/metrics"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	}
	if n := strings.Count(log.String(), "\n"); n != 1 ||
		!strings.Contains(log.String(), `"route":"unknown","status":404`) {
		t.Errorf("logged %s, want one line for the path without a route", log.String())
	}
}

func TestRequestLine_HasTheErrorOfAFailureAlone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		code fault.Code
		want any
	}{
		"a refusal": {
			err: fault.Validation(fault.Detail{Message: "not to Reader, Ann"}), code: fault.Invalid, want: nil,
		},
		"a malformed input": {
			err:  fault.New(fault.Malformed, "userBarcode must be of type string, not number 21234567890123"),
			code: fault.Malformed, want: nil,
		},
		"a failure": {
			err:  &fault.Error{Code: fault.Timeout, Msg: "too long", Details: []fault.Detail{{Message: "loan 1"}}},
			code: fault.Timeout, want: "TIMEOUT: too long",
		},
		"an outage": {
			err: fault.New(fault.Unavailable, "storage is away"), code: fault.Unavailable, want: "UNAVAILABLE: storage is away",
		},
	} {
		if line := requestLine(t, tt.err); line["code"] != string(tt.code) || line["err"] != tt.want {
			t.Errorf("%s: logged %v", name, line)
		}
	}
}

// A client can send any header, so no header counts as its address.
func TestRequestLine_HasTheAddressOfTheConnection(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded"} {
		var log bytes.Buffer
		h := service(echoBody, func(o *web.Options) { o.Log = config.Log{Level: "info"}.New(&log, "") })
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/no/such/path", nil)
		r.RemoteAddr = "[2001:db8::7]:41000"
		r.Header.Set(header, "203.0.113.9")
		h.ServeHTTP(httptest.NewRecorder(), r)
		if !strings.Contains(log.String(), `"address":"2001:db8::7"`) || strings.Contains(log.String(), "203.0.113.9") {
			t.Errorf("with %s: logged %s, want the address of the connection", header, log.String())
		}
	}
}

func TestMetrics_CountRequestsByCode(t *testing.T) {
	t.Parallel()
	for err, labels := range map[error]string{
		nil:                                  `code="",method="POST",route="/thing/:id",status="204"`,
		fault.New(fault.LockHeld, "held"):    `code="LOCK_HELD",method="POST",route="/thing/:id",status="503"`,
		fault.New(fault.Unavailable, "gone"): `code="UNAVAILABLE",method="POST",route="/thing/:id",status="503"`,
		fmt.Errorf("reading: %w", errors.New("a bug")):   `code="INTERNAL",method="POST",route="/thing/:id",status="500"`,
		fault.New("21234567890123", "a code of no list"): `code="other",method="POST",route="/thing/:id",status="500"`,
	} {
		registry := prometheus.NewRegistry()
		h := service(func(c echo.Context) error {
			if err != nil {
				return err
			}
			return c.NoContent(http.StatusNoContent)
		}, func(o *web.Options) { o.Registry = registry })
		post(t, h, "{}")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		if want := "http_requests_total{" + labels + "} 1\n"; !strings.Contains(w.Body.String(), want) {
			t.Errorf("a request that ends with %v is not counted as %s", err, want)
		}
	}
}

func TestMetrics_HaveTheBuild(t *testing.T) {
	t.Parallel()
	h := service(func(c echo.Context) error { return c.NoContent(http.StatusNoContent) }, func(*web.Options) {})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	want := `build_info{goversion="` + runtime.Version() + `",modified="false",revision="",version="devel"} 1` + "\n"
	if !strings.Contains(w.Body.String(), want) {
		t.Errorf("%s is missing in:\n%s", want, w.Body)
	}
}

func TestRequestLine_OfAPanicNamesNoPatron(t *testing.T) {
	t.Parallel()
	const id = "77477611-ab44-4082-a0d8-42f7acdfde11"
	var log bytes.Buffer
	h := service(func(echo.Context) error { panic("no blocks of " + id) }, func(o *web.Options) { o.Log = debugLog(&log) })
	post(t, h, "{}")
	if strings.Contains(log.String(), id) || strings.Count(log.String(), "no blocks of ****de11") != 2 ||
		!strings.Contains(log.String(), "observe_test.go") {
		t.Errorf("logged %s, want the masked id and where it was", log.String())
	}
}

func TestRequestLine_OfAFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := service(func(echo.Context) error { return fault.New(fault.Overloaded, "too many") },
			func(o *web.Options) { o.Log = debugLog(&log) })
		for range 50 {
			post(t, h, "{}")
		}
		<-time.After(10 * time.Millisecond)
		post(t, h, "{}")
		if warn, all := strings.Count(log.String(), `"level":"WARN"`), strings.Count(log.String(),
			`"msg":"request"`); warn != 2 || all != 51 {
			t.Errorf("%d of %d lines are WARN, want 2 of 51: one in 10 ms", warn, all)
		}
	})
}
