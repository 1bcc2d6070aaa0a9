package httpapi_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

// bodyLimit is small, so that a test of it is.
const bodyLimit = 64 << 10

// api is some of the service's routes behind the edge, as a client sees them.
type api struct{ handler http.Handler }

func newAPI(t *testing.T, routes []web.Route) api {
	t.Helper()
	return api{web.New(web.Options{
		Log:            slog.New(slog.NewTextHandler(t.Output(), nil)),
		Registry:       prometheus.NewRegistry(),
		RequestTimeout: 5 * time.Minute,
		BodyLimit:      bodyLimit,
	}, routes)}
}

// call sends one request of the tenant diku. headers are added, or replace.
func (a api) call(method, target, body string, headers map[string]string) *httptest.ResponseRecorder {
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, content)
	r.Header.Set(okapi.TenantHeader, "diku")
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	return w
}
