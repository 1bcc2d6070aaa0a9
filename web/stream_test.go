package web_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// streaming serves write by StreamJSON.
func streaming(t *testing.T, write func(io.Writer) error) (*httptest.Server, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	handler := func(c echo.Context) error { return web.StreamJSON(c, write) }
	server := httptest.NewServer(service(handler,
		func(o *web.Options) { o.Registry, o.RequestTimeout = registry, time.Minute }))
	t.Cleanup(server.Close)
	return server, registry
}

func openStream(t *testing.T, server *httptest.Server) (*http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/thing/1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Okapi-Tenant", "diku")
	r.Header.Set("Accept-Encoding", "identity") // gzip would hold the beginning back
	return server.Client().Do(r)
}

// counted lists the values of a label of the requests that were counted.
func counted(t *testing.T, registry *prometheus.Registry, label string) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if family.GetName() == "http_requests_total" && l.GetName() == label {
					found = append(found, l.GetValue())
				}
			}
		}
	}
	return strings.Join(found, " ")
}

// long is more than is held back before an answer begins.
func long() string { return strings.Repeat("[1],", 100<<10) }

func TestStreamJSON(t *testing.T) {
	t.Parallel()
	t.Run("sends the beginning before the end is written", func(t *testing.T) {
		t.Parallel()
		seen := make(chan struct{})
		show := sync.OnceFunc(func() { close(seen) })
		defer show() // also after a failure, so that the server can close
		server, _ := streaming(t, func(w io.Writer) error {
			if _, err := io.WriteString(w, "["+long()); err != nil {
				return err
			}
			<-seen
			_, err := io.WriteString(w, "1]")
			return err
		})
		a, err := openStream(t, server)
		if err != nil {
			t.Fatalf("got %v, want the beginning", err)
		}
		defer a.Body.Close()
		if _, err := io.ReadFull(a.Body, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		show()
		rest, err := io.ReadAll(a.Body)
		if err != nil || !strings.HasSuffix(string(rest), ",1]") || a.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %d bytes of %s, %v, want the whole", len(rest), a.Header.Get("Content-Type"), err)
		}
	})
	t.Run("answers an error in the beginning with its status", func(t *testing.T) {
		t.Parallel()
		server, _ := streaming(t, func(w io.Writer) error {
			_, _ = io.WriteString(w, `{"users":[`)
			return fault.New(fault.Malformed, "no such list")
		})
		a, err := openStream(t, server)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		if body, err := io.ReadAll(a.Body); a.StatusCode != http.StatusBadRequest || string(body) != "no such list" ||
			err != nil {
			t.Errorf("got %d %s, %v, want 400 no such list", a.StatusCode, body, err)
		}
		if got := a.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/plain") {
			t.Errorf("the content type is %s, want text", got)
		}
	})
	for name, tt := range map[string]struct {
		fail         func() error
		status, code string
	}{
		"an error": {func() error { return fault.New(fault.Unavailable, "the database is gone") }, "503", "UNAVAILABLE"},
		"a panic":  {func() error { panic("a bug") }, "500", "INTERNAL"},
	} {
		t.Run("cuts the connection after that at "+name, func(t *testing.T) {
			t.Parallel()
			server, registry := streaming(t, func(w io.Writer) error {
				_, _ = io.WriteString(w, "["+long())
				return tt.fail()
			})
			a, err := openStream(t, server)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Body.Close()
			if _, err := io.ReadAll(a.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %v, want a broken answer", err)
			}
			server.Close() // waits for the request
			if got := counted(t, registry, "status"); got != tt.status {
				t.Errorf("counted as %s, want %s", got, tt.status)
			}
			if got := counted(t, registry, "code"); got != tt.code {
				t.Errorf("counted with the code %q, want %s", got, tt.code)
			}
		})
	}
}

// The end of the connection ends any answer of HTTP/1.0, which is what some proxies speak to services.
func TestStreamJSON_BreaksAnAnswerOfHTTP10Off(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]error{"whole": nil, "half": errors.New("the database is gone")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, _ := streaming(t, func(w io.Writer) error {
				_, _ = io.WriteString(w, "["+long())
				return fail
			})
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "POST /thing/1 HTTP/1.0\r\nX-Okapi-Tenant: diku\r\n\r\n")
			if _, err := io.ReadAll(conn); (err == nil) != (fail == nil) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// leavingClient reads a part of an answer.
type leavingClient struct {
	*httptest.ResponseRecorder
	takes int
}

func (w *leavingClient) Write(p []byte) (int, error) {
	if w.takes--; w.takes < 0 {
		return 0, errors.New("broken pipe")
	}
	return w.ResponseRecorder.Write(p)
}

func TestStreamJSON_StopsWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	h := service(func(c echo.Context) error {
		return web.StreamJSON(c, func(w io.Writer) error {
			for {
				if _, err := io.WriteString(w, long()); err != nil {
					return fmt.Errorf("writing: %w", err)
				}
			}
		})
	}, func(o *web.Options) { o.Registry = registry })
	defer func() {
		if r := recover(); r != http.ErrAbortHandler { //nolint:errorlint // a panic's value
			t.Errorf("panic with %v, want %v", r, http.ErrAbortHandler)
		}
		if got := counted(t, registry, "status"); got != "499" {
			t.Errorf("counted as %s, want 499", got)
		}
	}()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/thing/1", nil)
	r.Header.Set("X-Okapi-Tenant", "diku")
	h.ServeHTTP(&leavingClient{httptest.NewRecorder(), 3}, r)
}
