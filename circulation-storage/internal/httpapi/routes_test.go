package httpapi_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/web"
)

func TestRoutes_DescribeThemselves(t *testing.T) {
	t.Parallel()
	checkDescribed(t, slices.Concat(
		httpapi.CheckoutLockRoutes(nil, time.Second), httpapi.LockChangeRoutes(nil), commitRoutes(nil), httpapi.KeyLeaseRoutes(nil),
		httpapi.RecordRoutes(nil), httpapi.RequestBatchRoutes(nil), httpapi.SessionRoutes(nil), httpapi.PatronBlockRoutes(nil), httpapi.HistoryRoutes(nil),
	))
}

// checkDescribed checks that the table has what documents for programs need.
func checkDescribed(t *testing.T, routes []web.Route) {
	t.Helper()
	for _, r := range routes {
		name := r.Method + " " + r.Path
		if writes := r.Method == http.MethodPost || r.Method == http.MethodPut; writes != (r.Body != nil) {
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
