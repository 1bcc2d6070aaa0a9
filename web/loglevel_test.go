package web_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"checkoutlock/config"
	"checkoutlock/web"
)

func TestLogLevel_IsSetByCallersOnThisMachine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := config.Log{Level: "info"}.New(&out, "circulation").With("part", "of it")
	h := service(echoBody, func(o *web.Options) { o.Log = log })
	for _, tt := range []struct {
		name, method, target, peer, host string
		status                           int
		want, level                      string
	}{
		{name: "read", method: "GET", status: 200, want: `{"level":"info"}`, level: "info"},
		{name: "debug", method: "PUT", target: "?level=debug", status: 200, want: `{"level":"debug"}`, level: "debug"},
		{name: "read again", method: "GET", status: 200, want: `{"level":"debug"}`, level: "debug"},
		{
			name: "no level", method: "PUT", target: "?level=loud", status: 422,
			want: "must be debug or info or warn or error", level: "debug",
		},
		{
			name: "nothing", method: "PUT", status: 422,
			want: "is required and must be debug or info or warn or error", level: "debug",
		},
		{name: "two", method: "PUT", target: "?level=info&level=warn", status: 422, want: "given once", level: "debug"},
		{name: "another", method: "PUT", target: "?to=info", status: 422, want: "allowed are level", level: "debug"},
		{
			name: "another machine", method: "PUT", target: "?level=error", peer: "192.0.2.7:1234", status: 403,
			want: "on this machine", level: "debug",
		},
		{
			name: "a proxy on this machine", method: "PUT", target: "?level=error", host: "library.example.org", status: 403,
			want: "on this machine", level: "debug",
		},
		{
			name: "IPv6", method: "PUT", target: "?level=error", peer: "[::1]:1234", host: "[::1]:9801", status: 200,
			want: `{"level":"error"}`, level: "error",
		},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tt.method, "/admin/log-level"+tt.target, nil)
		r.RemoteAddr, r.Host = "127.0.0.1:1234", "localhost:9801"
		if tt.peer != "" {
			r.RemoteAddr = tt.peer
		}
		if tt.host != "" {
			r.Host = tt.host
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s: got %d %s, want %d with %q", tt.name, w.Code, w.Body, tt.status, tt.want)
		}
		if got := config.LevelOf(log); got != tt.level {
			t.Errorf("%s: the level is %s, want %s", tt.name, got, tt.level)
		}
	}
	out.Reset()
	log.Info("hidden")
	log.Error("shown")
	if got := out.String(); strings.Contains(got, "hidden") || !strings.Contains(got, "shown") {
		t.Errorf("logged %s, want lines of level error alone", got)
	}
}

func TestLogLevel_OfAnotherLoggerStays(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	if err := config.SetLevel(t.Context(), log, "debug"); err != nil || config.LevelOf(log) != "info" {
		t.Errorf("got %v and %s, want no effect", err, config.LevelOf(log))
	}
	if err := config.SetLevel(t.Context(), log, http.MethodGet); err == nil {
		t.Error("a level that there is not: no error")
	}
}
