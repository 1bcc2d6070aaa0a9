package app

import (
	"log/slog"
	"net/http"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/web"
)

// All routes of the service have what documents for programs need.
func TestRoutes_DescribeThemselves(t *testing.T) {
	t.Parallel()
	db, _ := pgtest.New(t)
	m := newMetrics(prometheus.NewRegistry())
	front, err := httpapi.New(endpoints(Config{}, db, nil,
		newStores(Config{}, db, m, slog.New(slog.NewTextHandler(t.Output(), nil)))))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range front.Routes {
		name := r.Method + " " + r.Path
		writes := r.Method == http.MethodPost || r.Method == http.MethodPut
		switch r.Path {
		// FOLIO sends no body.
		case "/scheduled-request-expiration", "/tlr-feature-toggle-job/start", "/loan-storage/loans/anonymize/:id",
			"/loan-storage/check-outs/:id/settlement": // the path says it all
			writes = false
		case "/patron-pin": // also its DELETE, as in FOLIO
			writes = true
		}
		if writes != (r.Body != nil) {
			t.Errorf("%s: the body is %v", name, r.Body)
		}
		if len(r.Endpoint.Answers) == 0 {
			t.Errorf("%s names no answer", name)
		}
		for _, p := range r.Query.Parameters {
			if p.Name == "" || p.Meaning == "" {
				t.Errorf("%s: the parameter %q has no meaning", name, p.Name)
			}
		}
		bodies := []any{r.Body}
		for _, a := range r.Endpoint.Answers {
			bodies = append(bodies, a.Body)
		}
		for _, body := range bodies {
			if schema, ok := body.(web.Schema); ok && !slices.Contains(jsonschema.Names(), string(schema)) {
				t.Errorf("%s: there is no schema %s", name, schema)
			}
		}
	}
}
