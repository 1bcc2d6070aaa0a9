package web_test

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// serveRoutes runs a server with a text at GET /text/:size, the same uncompressed at
// /raw/:size, a refusal at GET /refused and a POST. Its metrics are so long
// that gzip would take them a second time.
func serveRoutes(t *testing.T, jsonFaults bool) *httptest.Server {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector())
	text := func(c echo.Context) error {
		size, err := time.ParseDuration(c.Param("size") + "ns")
		if err != nil {
			return err
		}
		return c.JSONBlob(http.StatusOK, []byte(`"`+strings.Repeat("x", int(size)-2)+`"`))
	}
	s := httptest.NewServer(web.New(web.Options{
		Log: slog.New(slog.DiscardHandler), Registry: registry, RequestTimeout: time.Minute, BodyLimit: 100,
		JSONFaults: jsonFaults,
		Ready:      func(context.Context) error { return nil },
	}, []web.Route{
		{Method: http.MethodGet, Path: "/text/:size", Endpoint: web.Handle(text), NoTenant: true},
		{Method: http.MethodGet, Path: "/raw/:size", Endpoint: web.Handle(text), NoTenant: true, Uncompressed: true},
		{Method: http.MethodGet, Path: "/refused", Endpoint: web.Handle(func(echo.Context) error {
			return fault.New(fault.NotFound, "%s", strings.Repeat("no ", 1000))
		}), NoTenant: true},
		{Method: http.MethodGet, Path: "/tenants", Endpoint: web.Handle(text)},
		{Method: http.MethodPost, Path: "/text/:size", Endpoint: web.Handle(text), NoTenant: true},
		{Method: http.MethodPut, Path: "/put", Endpoint: web.Handle(text), NoTenant: true},
	}))
	t.Cleanup(s.Close)
	return s
}

// answer is one as it came, without decompressing it.
type answer struct {
	StatusCode int
	Header     http.Header
}

// ask returns an answer and its body.
func ask(t *testing.T, s *httptest.Server, method, path string, header ...string) (answer, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header}, string(body)
}

func TestNew_AnswersHeadAsGetWithoutABody(t *testing.T) {
	t.Parallel()
	s := serveRoutes(t, true)
	for _, path := range []string{
		"/admin/health", "/admin/health/ready", "/metrics", "/text/10", "/text/5000", "/refused", "/tenants", "/nothing",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			for _, accepted := range []string{"", "gzip"} {
				get, getBody := ask(t, s, http.MethodGet, path, "Accept-Encoding", accepted)
				head, headBody := ask(t, s, http.MethodHead, path, "Accept-Encoding", accepted)
				empty := getBody == "" && path != "/metrics" // which has nothing before the first request ended
				if head.StatusCode != get.StatusCode || headBody != "" || empty {
					t.Errorf("HEAD got %d with %d bytes, GET %d with %d", head.StatusCode, len(headBody), get.StatusCode, len(getBody))
				}
				for _, name := range []string{"Content-Type", "Content-Encoding", "Vary", fault.Header} {
					if !slices.Equal(head.Header.Values(name), get.Header.Values(name)) {
						t.Errorf("HEAD has the %s %q, GET %q", name, head.Header.Values(name), get.Header.Values(name))
					}
				}
			}
		})
	}
}

func TestNew_NamesTheMethodsOfAPath(t *testing.T) {
	t.Parallel()
	tests := []struct{ method, path, allow string }{
		{method: "DELETE", path: "/text/10", allow: "OPTIONS, GET, HEAD, POST"},
		{method: "PATCH", path: "/put", allow: "OPTIONS, PUT"},
		{method: "HEAD", path: "/put", allow: "OPTIONS, PUT"},
		{method: "POST", path: "/admin/health", allow: "OPTIONS, GET, HEAD"},
		{method: "NONSENSE", path: "/metrics", allow: "OPTIONS, GET, HEAD"},
	}
	for _, jsonFaults := range []bool{true, false} {
		s := serveRoutes(t, jsonFaults)
		for _, tt := range tests {
			resp, body := ask(t, s, tt.method, tt.path)
			allow := strings.Split(resp.Header.Get("Allow"), ", ")
			want := strings.Split(tt.allow, ", ")
			slices.Sort(allow)
			slices.Sort(want)
			if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get(fault.Header) != "METHOD_NOT_ALLOWED" ||
				!slices.Equal(allow, want) {
				t.Errorf("%s %s: got %d %s, allowed %q, want 405 and %q", tt.method, tt.path, resp.StatusCode,
					resp.Header.Get(fault.Header), allow, want)
			}
			says := "The path " + tt.path + " does not take the method " + tt.method + ", allowed are " +
				resp.Header.Get("Allow")
			if exact := `{"errors":[{"message":"` + says +
				`","code":"METHOD_NOT_ALLOWED","parameters":[]}]}`; tt.method != "HEAD" && strings.TrimSpace(body) != exact {
				t.Errorf("%s %s: got %s, want %s", tt.method, tt.path, body, exact)
			}
		}
		resp, _ := ask(t, s, http.MethodOptions, "/put")
		if resp.StatusCode != http.StatusNoContent || resp.Header.Get("Allow") != "OPTIONS, PUT" {
			t.Errorf("OPTIONS: got %d, allowed %q", resp.StatusCode, resp.Header.Get("Allow"))
		}
	}
}

func TestNew_AnswersAnUnknownPathInOneForm(t *testing.T) {
	t.Parallel()
	for _, jsonFaults := range []bool{true, false} {
		resp, body := ask(t, serveRoutes(t, jsonFaults), http.MethodGet, "/no/such/path")
		const want = `{"errors":[{"message":"There is no endpoint with the path /no/such/path","code":"NOT_FOUND",` +
			`"parameters":[]}]}`
		if resp.StatusCode != http.StatusNotFound || strings.TrimSpace(body) != want ||
			!strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
			t.Errorf("got %d %s as %s, want %s", resp.StatusCode, body, resp.Header.Get("Content-Type"), want)
		}
	}
}

func TestNew_CompressesLargeAnswersIfAccepted(t *testing.T) {
	t.Parallel()
	s := serveRoutes(t, true)
	tests := []struct {
		name, path, accepted string
		status               int
		compressed           bool
		method               string // GET unless it says otherwise
	}{
		{name: "a large answer", path: "/text/100000", accepted: "gzip", status: 200, compressed: true},
		{
			name: "among other codings", path: "/text/100000", accepted: "br;q=1.0, gzip;q=0.8, *;q=0.1", status: 200,
			compressed: true,
		},
		{name: "the least size", path: "/text/1400", accepted: "deflate,gzip", status: 200, compressed: true},
		{name: "below the least size", path: "/text/1399", accepted: "gzip", status: 200},
		{name: "nothing is accepted", path: "/text/100000", accepted: "", status: 200},
		{name: "gzip is refused", path: "/text/100000", accepted: "gzip;q=0, br", status: 200},
		{name: "a weight that is none", path: "/text/100000", accepted: "gzip;q=x", status: 200},
		{name: "another coding", path: "/text/100000", accepted: "br", status: 200},
		{name: "a route that is left as it is", path: "/raw/100000", accepted: "gzip", status: 200},
		{name: "an answer to POST", path: "/text/100000", accepted: "gzip", status: 200, method: http.MethodPost},
		{name: "a refusal", path: "/refused", accepted: "gzip", status: 404},
		{name: "the metrics compress by themselves", path: "/metrics", accepted: "gzip", status: 200, compressed: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			method := cmp.Or(tt.method, http.MethodGet)
			resp, body := ask(t, s, method, tt.path, "Accept-Encoding", tt.accepted)
			codings := resp.Header.Values("Content-Encoding")
			if resp.StatusCode != tt.status || slices.Equal(codings, []string{"gzip"}) != tt.compressed ||
				(!tt.compressed && len(codings) > 0) {
				t.Fatalf("got %d with the codings %q, want compressed: %t", resp.StatusCode, codings, tt.compressed)
			}
			_, plain := ask(t, s, method, tt.path)
			if !tt.compressed {
				if body != plain {
					t.Error("the answer is not the same")
				}
				return
			}
			zipped, err := gzip.NewReader(strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			unzipped, err := io.ReadAll(zipped)
			if err != nil || (tt.path != "/metrics" && string(unzipped) != plain) ||
				strings.HasPrefix(string(unzipped), "\x1f\x8b") {
				t.Errorf("%d bytes became %d, want those of the plain answer, %d (%v)", len(body), len(unzipped), len(plain), err)
			}
		})
	}
}

func TestNew_BreaksOffACompressedAnswerThatFailsHalfWay(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(web.New(web.Options{
		Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), RequestTimeout: time.Minute, BodyLimit: 100,
		Ready: func(context.Context) error { return nil },
	}, []web.Route{{
		Method: http.MethodGet, Path: "/half", NoTenant: true,
		Endpoint: web.Handle(func(c echo.Context) error {
			if _, err := c.Response().Write([]byte(strings.Repeat("x", 5000))); err != nil {
				return err
			}
			panic(http.ErrAbortHandler)
		}),
	}}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.Start()
	t.Cleanup(s.Close)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/half", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(req)
	if err == nil {
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
	}
	if err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want an answer that is not whole", err)
	}
}

func TestWithGuard_RunsBeforeParametersAreRead(t *testing.T) {
	t.Parallel()
	route := web.Route{
		Method: http.MethodGet, Path: "/", NoTenant: true, Query: web.Strict(),
		Endpoint: web.Empty(http.StatusNoContent, func(echo.Context) error { return nil }),
	}
	guard := func(code fault.Code) func(web.Route) echo.MiddlewareFunc {
		return func(web.Route) echo.MiddlewareFunc {
			return func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c echo.Context) error {
					if c.Request().Header.Get(string(code)) != "" {
						return fault.New(code, "refused")
					}
					return next(c)
				}
			}
		}
	}
	routes := web.WithGuard(web.WithGuard([]web.Route{route}, guard(fault.Forbidden)), guard(fault.Unauthorized))
	h := web.New(web.Options{
		Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), RequestTimeout: time.Minute, BodyLimit: 100,
	}, routes)
	for _, tt := range []struct {
		name    string
		refuses []fault.Code
		want    int
	}{
		{
			name: "the outer guard first", refuses: []fault.Code{fault.Unauthorized, fault.Forbidden},
			want: http.StatusUnauthorized,
		},
		{name: "then the inner guard", refuses: []fault.Code{fault.Forbidden}, want: http.StatusForbidden},
		{name: "then the parameters", refuses: nil, want: http.StatusUnprocessableEntity},
	} {
		r := httptest.NewRequest(http.MethodGet, "/?unknown=1", nil)
		for _, code := range tt.refuses {
			r.Header.Set(string(code), "yes")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, w.Code, tt.want)
		}
	}
}
