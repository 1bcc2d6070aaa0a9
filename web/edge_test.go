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
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

// service runs one handler behind the edge, at POST /thing/:id.
func service(handler echo.HandlerFunc, change func(*web.Options)) http.Handler {
	o := web.Options{
		Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), RequestTimeout: time.Second, BodyLimit: 100,
		Ready: func(context.Context) error { return nil },
	}
	if change != nil {
		change(&o)
	}
	return web.New(o, []web.Route{{Method: http.MethodPost, Path: "/thing/:id", Endpoint: web.Handle(handler)}})
}

// post sends body for tenant diku.
func post(t *testing.T, h http.Handler, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/thing/1", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Okapi-Tenant", "diku")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func echoBody(c echo.Context) error {
	var v struct {
		N int    `json:"n"`
		S string `json:"s"`
	}
	if err := web.Decode(c, &v); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, v)
}

func TestDecode_DescribesABadBody(t *testing.T) {
	t.Parallel()
	h := service(echoBody, nil)
	tests := map[string]struct {
		body, contentType string
		status            int
		want              string
	}{
		"good": {
			body: `{"n":1,"s":"x","more":true}`, contentType: "application/json; charset=utf-8", status: 200, want: `"n":1`,
		},
		"not JSON": {body: `{"n":1`, contentType: "application/json", status: 400, want: "not valid JSON"},
		"two values": {
			body: `{"n":1}{"n":2}`, contentType: "application/json", status: 400, want: "not valid JSON",
		},
		"empty": {body: " ", contentType: "application/json", status: 400, want: "The body is empty"},
		"a string for a number": {
			body: `{"n":"1"}`, contentType: "application/json", status: 400, want: "n must be of type integer, not string",
		},
		"a fraction": {
			body: `{"n":1.5}`, contentType: "application/json", status: 400, want: "n must be of type integer, not number 1.5",
		},
		"too large a number": {
			body: `{"n":99999999999999999999}`, contentType: "application/json", status: 400, want: "n must be of type integer",
		},
		"a number for a string": {
			body: `{"s":1}`, contentType: "application/json", status: 400, want: "s must be of type string, not number",
		},
		"an array": {
			body: `[1]`, contentType: "application/json", status: 400, want: "the body must be of type object, not array",
		},
		"another content type": {
			body: `n=1`, contentType: "application/x-www-form-urlencoded", status: 400, want: "Content-type header must be",
		},
		"a broken content type": {
			body: `{}`, contentType: "application/json;;;=", status: 400, want: "Content-type header must be",
		},
		"an announced huge body": {
			body: `{"s":"` + strings.Repeat("x", 200) + `"}`, contentType: "application/json", status: 413,
			want: "at most 100 bytes",
		},
		"deeper than Go goes": {
			body: strings.Repeat("[", 99), contentType: "application/json", status: 400, want: "not valid JSON",
		},
		"no content type at all": {body: `{"n":2}`, contentType: "", status: 200, want: `"n":2`},
		"no UTF-8": {
			body: "{\"s\":\"\xff\"}", contentType: "application/json", status: 400, want: "not valid UTF-8",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := post(t, h, tt.body, "Content-Type", tt.contentType)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("got %d %s, want %d with %q", w.Code, w.Body, tt.status, tt.want)
			}
		})
	}
}

func TestReadBody_RefusesAHugeBodyOfUnknownLength(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/thing/1",
		io.MultiReader(strings.NewReader(`{"s":"`), strings.NewReader(strings.Repeat("x", 1000))))
	r.ContentLength = -1
	r.Header.Set("X-Okapi-Tenant", "diku")
	w := httptest.NewRecorder()
	service(echoBody, nil).ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge || w.Header().Get("X-Fault-Code") != "BODY_TOO_LARGE" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestNew_RefusesABadQueryString(t *testing.T) {
	t.Parallel()
	h := service(func(c echo.Context) error { return c.String(http.StatusOK, c.QueryParam("query")) }, nil)
	for query, want := range map[string]int{
		"": 200, "query=a%20b": 200, "query=a+b&x": 200, "query=%zz": 400, "query=%": 400, "query=a;b": 400,
		"limit=1&query=%e": 400,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/thing/1", nil)
		r.URL.RawQuery = query
		r.Header.Set("X-Okapi-Tenant", "diku")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want || want != http.StatusOK && !strings.Contains(w.Body.String(), "The query string cannot be read") {
			t.Errorf("?%s: got %d %s, want %d", query, w.Code, w.Body, want)
		}
	}
}

func TestNew_RequiresATenant(t *testing.T) {
	t.Parallel()
	h := service(func(c echo.Context) error {
		id, err := okapi.TenantFrom(c.Request().Context())
		if err != nil {
			return err
		}
		return c.String(http.StatusOK, id.String())
	}, nil)
	for header, want := range map[string]int{
		"diku": 200, "": 400, "Diku": 400, `a";--`: 400, "../x": 400, strings.Repeat("a", 99): 400,
	} {
		if w := post(t, h, "{}", "X-Okapi-Tenant", header); w.Code != want || w.Body.Len() == 0 {
			t.Errorf("tenant %q: %d %s, want %d", header, w.Code, w.Body, want)
		}
	}
}

func TestNew_AnswersErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err    error
		json   bool
		status int
		code   string
		want   string
	}{
		"text": {
			err: fault.New(fault.LockHeld, "Unable to acquire lock"), json: false, status: 503, code: "LOCK_HELD",
			want: "Unable to acquire lock",
		},
		"text as FOLIO's JSON": {
			err: fault.New(fault.NotFound, "no loan"), json: true, status: 404, code: "NOT_FOUND",
			want: `{"errors":[{"message":"no loan","code":"NOT_FOUND","parameters":[]}]}`,
		},
		"details": {
			err: fault.Validation(fault.Detail{Message: "wrong"}), json: false, status: 422, code: "INVALID",
			want: `{"errors":[{"message":"wrong","parameters":[]}]}`,
		},
		"configuration": {
			err: fault.New(fault.Internal, "Loan policy x could not be found"), json: true, status: 500, code: "INTERNAL",
			want: "Loan policy x could not be found (request id r-1)",
		},
		"a bug keeps its secrets": {
			err: errors.New("password=secret"), json: true, status: 500, code: "INTERNAL",
			want: "Internal server error (request id r-1)",
		},
		"time-out": {
			err: context.DeadlineExceeded, json: false, status: 504, code: "TIMEOUT", want: "The request took too long",
		},
		"storage is away": {
			err: fault.New(fault.Unavailable, "storage is away"), json: false, status: 503, code: "UNAVAILABLE",
			want: "storage is away",
		},
		"the client left": {
			err: fmt.Errorf("waiting: %w", context.Canceled), json: false, status: 499, code: "TIMEOUT", want: "The client left",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := service(func(echo.Context) error { return tt.err }, func(o *web.Options) { o.JSONFaults = tt.json })
			w := post(t, h, "{}", "X-Okapi-Request-Id", "r-1")
			if got := strings.TrimSpace(w.Body.String()); w.Code != tt.status || got != tt.want ||
				w.Header().Get("X-Fault-Code") != tt.code {
				t.Errorf("got %d %s %s", w.Code, w.Header().Get("X-Fault-Code"), got)
			}
		})
	}
}

func TestNew_RoundsRetryAfterUpToSeconds(t *testing.T) {
	t.Parallel()
	h := service(func(echo.Context) error {
		return &fault.Error{Code: fault.LockHeld, Msg: "held", RetryAfter: 1100 * time.Millisecond}
	}, nil)
	if got := post(t, h, "{}").Header().Get("Retry-After"); got != "2" {
		t.Errorf("got %q", got)
	}
}

func TestNew_ClosesTheConnectionOfAnOverload(t *testing.T) {
	t.Parallel()
	for code, want := range map[fault.Code]string{fault.Overloaded: "close", fault.Unavailable: ""} {
		h := service(func(echo.Context) error { return fault.New(code, "not now") }, nil)
		if got := post(t, h, "{}").Header().Get("Connection"); got != want {
			t.Errorf("%s: got %q, want %q", code, got, want)
		}
	}
}

func TestNew_ServesRequestsAfterAPanic(t *testing.T) {
	t.Parallel()
	h := service(func(c echo.Context) error {
		if c.Request().Header.Get("X-Panic") != "" {
			panic("at the desk")
		}
		return c.NoContent(http.StatusNoContent)
	}, nil)
	if w := post(t, h, "{}", "X-Panic", "1"); w.Code != 500 || strings.Contains(w.Body.String(), "desk") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if w := post(t, h, "{}"); w.Code != 204 {
		t.Errorf("got %d", w.Code)
	}
}

func TestNew_AnswersATimeOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := service(func(c echo.Context) error {
			<-c.Request().Context().Done()
			return c.Request().Context().Err()
		}, nil)
		if w := post(t, h, "{}"); w.Code != http.StatusGatewayTimeout {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
}

func TestNew_PassesHeadersToHandlerAndLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var seen okapi.Call
	h := service(func(c echo.Context) error {
		seen = okapi.FromContext(c.Request().Context())
		return c.NoContent(http.StatusNoContent)
	}, func(o *web.Options) { o.Log, o.BelievePermissions = debugLog(&log), true })
	post(t, h, "{}", "X-Okapi-Request-Id", "a\nb", "X-Okapi-Permissions", `["x.y"]`, "X-Okapi-User-Id",
		"9AD09B01-7429-455F-9F64-E3897027DB61", "X-Okapi-Token", "t")
	if strings.ContainsAny(seen.RequestID, "\n") || len(seen.RequestID) != 36 {
		t.Errorf("request id %q was not replaced", seen.RequestID)
	}
	if !seen.HasPermission("x.y") || seen.UserID != "9ad09b01-7429-455f-9f64-e3897027db61" || seen.Token != "t" {
		t.Errorf("got %+v", seen)
	}
	var line map[string]any
	if err := json.Unmarshal(log.Bytes(), &line); err != nil || line["route"] != "/thing/:id" || line["status"] != 204.0 {
		t.Errorf("logged %s (%v)", log.String(), err)
	}
}

func TestNew_DropsPermissionsWithoutAGateway(t *testing.T) {
	t.Parallel()
	var seen okapi.Call
	h := service(func(c echo.Context) error {
		seen = okapi.FromContext(c.Request().Context())
		return c.NoContent(http.StatusNoContent)
	}, nil)
	if post(t, h, "{}", "X-Okapi-Permissions", `["x.y"]`); len(seen.Permissions) != 0 || seen.RequestID == "" {
		t.Errorf("got %+v, want no permissions", seen)
	}
}

func TestNew_ServesPlatformEndpointsWithoutATenant(t *testing.T) {
	t.Parallel()
	down := errors.New("PostgreSQL is away")
	var broken error
	h := service(echoBody, func(o *web.Options) { o.Ready = func(context.Context) error { return broken } })
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w
	}
	if w := get("/admin/health"); w.Code != 200 || strings.TrimSpace(w.Body.String()) != `"OK"` {
		t.Errorf("health: %d %s", w.Code, w.Body)
	}
	if w := get("/admin/health/ready"); w.Code != 200 {
		t.Errorf("ready: %d %s", w.Code, w.Body)
	}
	broken = down
	if w := get("/admin/health/ready"); w.Code != 503 || !strings.Contains(w.Body.String(), "PostgreSQL is away") {
		t.Errorf("not ready: %d %s", w.Code, w.Body)
	}
	get("/no/such/path/1")
	get("/no/such/path/2")
	metrics := get("/metrics").Body.String()
	if !strings.Contains(metrics, `http_requests_total{code="NOT_FOUND",method="GET",route="unknown",status="404"} 2`) {
		t.Errorf("unknown paths are not counted as one route:\n%s", metrics)
	}
	if w := get("/thing/1"); w.Code != http.StatusMethodNotAllowed ||
		w.Header().Get("X-Fault-Code") != "METHOD_NOT_ALLOWED" {
		t.Errorf("a known path with another method: %d", w.Code)
	}
}

// A route with a time-out of its own outlasts the service's, and also the server's bound on writing.
func TestRoute_Timeout(t *testing.T) {
	t.Parallel()
	const timeout = 100 * time.Millisecond
	short := web.Empty(http.StatusNoContent, func(c echo.Context) error {
		<-c.Request().Context().Done()
		return c.Request().Context().Err()
	})
	long := web.Empty(http.StatusNoContent, func(c echo.Context) error {
		<-time.After(4 * timeout)
		return c.Request().Context().Err()
	})
	handler := web.New(web.Options{
		Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), RequestTimeout: timeout, BodyLimit: 100,
	}, []web.Route{
		{Method: http.MethodPost, Path: "/short", Endpoint: short, NoTenant: true},
		{Method: http.MethodPost, Path: "/long", Endpoint: long, NoTenant: true, Timeout: time.Minute},
	})
	for path, tt := range map[string]struct {
		write time.Duration // the server's bound; 0 is none
		want  int
	}{
		"/short": {want: http.StatusGatewayTimeout},
		"/long":  {write: timeout, want: http.StatusNoContent},
	} {
		server := httptest.NewUnstartedServer(handler)
		server.Config.WriteTimeout = tt.write
		server.Start()
		t.Cleanup(server.Close)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := server.Client().Do(r)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if _ = a.Body.Close(); a.StatusCode != tt.want {
			t.Errorf("%s: got %d, want %d", path, a.StatusCode, tt.want)
		}
	}
}
