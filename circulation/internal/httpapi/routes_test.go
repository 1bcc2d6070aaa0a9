package httpapi_test

import (
	"log/slog"
	"net/http"
	"slices"
	"testing"

	"checkoutlock/circulation/internal/httpapi"
	"checkoutlock/circulation/internal/worklist"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/web"
	"checkoutlock/web/auth"
)

func TestRoutes_DescribeThemselves(t *testing.T) {
	t.Parallel()
	b := &backend{}
	guard := auth.NewGuard(auth.Settings{Auth: auth.None}, nil, slog.New(slog.DiscardHandler))
	front, err := httpapi.New(httpapi.Options{
		Storage: b, Requests: b, LoanChanges: b, Admin: &b.adminFake, Guard: guard,
		Worklists: &worklist.Service{},
	})
	if err != nil {
		t.Fatal(err)
	}
	checkDescribed(t, front.Routes)
}

// checkDescribed checks that the table has what documents for programs need.
func checkDescribed(t *testing.T, routes []web.Route) {
	t.Helper()
	for _, r := range routes {
		name := r.Method + " " + r.Path
		writes := r.Method == http.MethodPost || r.Method == http.MethodPut
		switch r.Path {
		case "/loan-anonymization/by-user/:id", "/circulation/scheduled-anonymize-processing",
			"/circulation/notice-session-expiration-by-timeout", // FOLIO sends no body
			"/_/tenant": // what it says does not matter
			writes = false
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
