package storageclient

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"checkoutlock/schemas/okapi"
)

func TestClient_ReadyReturnsStoragesReason(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status      int
		contentType string
		body        string
		want        string // "" is ready
	}{
		"ready": {status: http.StatusOK, contentType: "text/plain", body: "ready", want: ""},
		"database away": {
			status: http.StatusServiceUnavailable, contentType: "text/plain; charset=UTF-8",
			body: "not ready: PostgreSQL at db:5432: connection refused",
			want: "storage is not ready: PostgreSQL at db:5432: connection refused",
		},
		"a proxy's page": {
			status: http.StatusServiceUnavailable, contentType: "text/html", body: "<html>No server is available</html>",
			want: "storage is not ready: 503 Service Unavailable",
		},
		"a proxy's text": {
			status: http.StatusBadGateway, contentType: "text/plain", body: "upstream 10.0.0.7",
			want: "storage is not ready: 502 Bad Gateway",
		},
		"no such path": {
			status: http.StatusNotFound, contentType: "text/plain", body: "Not Found",
			want: "storage is not ready: 404 Not Found",
		},
		"a tenant is asked": {
			status: http.StatusBadRequest, contentType: "application/json", body: `{"error":"no tenant"}`,
			want: "storage is not ready: 400 Bad Request",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tt.contentType)
				answer(w, tt.status, "", tt.body)
			})
			err := c.Ready(t.Context())
			if (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestClient_ReadySaysWhyStorageWasNotReached(t *testing.T) {
	t.Parallel()
	hang := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(hang.Close)
	for name, tt := range map[string]struct{ address, want string }{
		"refused": {"http://user:s3cret@127.0.0.1:1", "storage at 127.0.0.1:1 was not reached: connection refused"},
		"lost": {hang.URL, "storage at " + strings.TrimPrefix(hang.URL, "http://") +
			" was not reached: the connection ended without an answer: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := clientFor(t, tt.address).Ready(t.Context()); err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestClient_ReadyOfAProbeThatGivesUp(t *testing.T) {
	t.Parallel()
	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	err := clientFor(t, "http://127.0.0.1:1").Ready(ctx)
	if want := "storage at 127.0.0.1:1 was not reached: no answer in time"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestClient_ReadyNamesTheTenantThatIsSet(t *testing.T) {
	t.Parallel()
	diku, err := okapi.ParseTenant("diku")
	if err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]okapi.Tenant{"": {}, "diku": diku} {
		var got []string
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = r.Header.Values(okapi.TenantHeader)
		}))
		t.Cleanup(server.Close)
		u, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		c := New(Options{URL: u, Instance: "circ-1", ReadyTenant: id, Observe: func(string, string, int, time.Duration) {}})
		t.Cleanup(c.Close)
		if err := c.Ready(inTenant(t, "other")); err != nil {
			t.Error(err)
		}
		if strings.Join(got, ",") != name || name == "" && len(got) > 0 {
			t.Errorf("sent the tenants %q, want %q", got, name)
		}
	}
}
