package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/schemas/okapi"
)

// platform writes down what the tenant API asks for, and fails at one of them.
type platform struct {
	done   []string
	failAt string
}

func (p *platform) note(what string) error {
	p.done = append(p.done, what)
	if what == p.failAt {
		return errors.New("password=secret in SELECT 1")
	}
	return nil
}

func (p *platform) Install(_ context.Context, id okapi.Tenant) error {
	return p.note("install " + id.String())
}

func (p *platform) Purge(_ context.Context, id okapi.Tenant) error {
	return p.note("purge " + id.String())
}
func (p *platform) LoadReference(ctx context.Context) error { return p.load(ctx, "reference") }
func (p *platform) LoadSample(ctx context.Context) error    { return p.load(ctx, "sample") }

func (p *platform) load(ctx context.Context, what string) error {
	id, err := okapi.TenantFrom(ctx)
	if err != nil {
		return err
	}
	return p.note(what + " " + id.String())
}

func TestTenantRoutes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body   string
		failAt string
		status int
		done   []string
	}{
		"install": {body: `{"module_to":"mod-x-1.0.0"}`, failAt: "", status: 204, done: []string{"install diku"}},
		"upgrade": {
			body: `{"module_to":"mod-x-1.1.0","module_from":"mod-x-1.0.0"}`, failAt: "", status: 204,
			done: []string{"install diku"},
		},
		"with records": {
			body: `{"module_to":"mod-x-1.0.0","parameters":[{"key":"loadSample","value":"true"},{"key":"loadReference",` +
				`"value":"true"}]}`, failAt: "",
			status: 204,
			done:   []string{"install diku", "reference diku", "sample diku"},
		},
		"without records": {
			body:   `{"module_to":"m","parameters":[{"key":"loadSample","value":"false"},{"key":"other","value":"true"}]}`,
			failAt: "", status: 204, done: []string{"install diku"},
		},
		"disable": {body: `{"module_from":"mod-x-1.0.0"}`, failAt: "", status: 204, done: nil},
		"purge": {
			body: `{"module_from":"mod-x-1.0.0","purge":true}`, failAt: "", status: 204, done: []string{"purge diku"},
		},
		"purge alone": {body: `{"purge":true}`, failAt: "", status: 204, done: []string{"purge diku"}},

		"install and purge at once": {body: `{"module_to":"mod-x-1.0.0","purge":true}`, failAt: "", status: 422, done: nil},
		"nothing asked for":         {body: `{}`, failAt: "", status: 422, done: nil},
		"null":                      {body: `null`, failAt: "", status: 422, done: nil},
		"purge is no boolean":       {body: `{"purge":"yes"}`, failAt: "", status: 400, done: nil},
		"parameters are no list": {
			body: `{"module_to":"m","parameters":{"loadSample":"true"}}`, failAt: "", status: 400, done: nil,
		},
		"no object": {body: `[]`, failAt: "", status: 400, done: nil},
		"no JSON":   {body: `{"module_to":`, failAt: "", status: 400, done: nil},
		"no body":   {body: ``, failAt: "", status: 400, done: nil},
		"install fails": {
			body: `{"module_to":"m","parameters":[{"key":"loadSample","value":"true"}]}`, failAt: "install diku", status: 500,
			done: []string{"install diku"},
		},
		"reference fails": {
			body: `{"module_to":"m","parameters":[{"key":"loadReference","value":"true"},` +
				`{"key":"loadSample","value":"true"}]}`,
			failAt: "reference diku", status: 500, done: []string{"install diku", "reference diku"},
		},
		"sample fails": {
			body: `{"module_to":"m","parameters":[{"key":"loadSample","value":"true"}]}`, failAt: "sample diku", status: 500,
			done: []string{"install diku", "sample diku"},
		},
		"purge fails": {body: `{"purge":true}`, failAt: "purge diku", status: 500, done: []string{"purge diku"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &platform{failAt: tt.failAt}
			a := newAPI(t, httpapi.TenantRoutes(p, p, time.Minute))
			got := a.call(http.MethodPost, "/_/tenant", tt.body, nil)
			if got.Code != tt.status || !slices.Equal(p.done, tt.done) {
				t.Errorf("got %d %s after %q, want %d after %q", got.Code, got.Body, p.done, tt.status, tt.done)
			}
			if strings.Contains(got.Body.String(), "secret") {
				t.Errorf("the answer shows the cause: %s", got.Body)
			}
		})
	}
}

func TestTenantRoutes_RequireATenant(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "Diku", "di ku", `d"; DROP SCHEMA x`, strings.Repeat("d", 32)} {
		p := &platform{}
		a := newAPI(t, httpapi.TenantRoutes(p, p, time.Minute))
		got := a.call(http.MethodPost, "/_/tenant", `{"module_to":"m"}`, map[string]string{okapi.TenantHeader: name})
		if got.Code != http.StatusBadRequest || len(p.done) > 0 {
			t.Errorf("tenant %q: got %d after %q, want 400 and nothing done", name, got.Code, p.done)
		}
	}
}

// An installation on a slow machine outlasts REQUEST_TIMEOUT.
func TestTenantRoutes_HaveATimeoutOfTheirOwn(t *testing.T) {
	t.Parallel()
	if got := httpapi.TenantRoutes(&platform{}, &platform{}, time.Hour)[0]; got.Method != http.MethodPost ||
		got.Timeout != time.Hour {
		t.Errorf("%s %s has the time-out %s, want that of installations", got.Method, got.Path, got.Timeout)
	}
}

func TestTenantRoutes_HaveNoJobs(t *testing.T) {
	t.Parallel()
	a := newAPI(t, httpapi.TenantRoutes(&platform{}, &platform{}, time.Minute))
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if got := a.call(method, "/_/tenant/0bab56e5-1ab6-4ac2-afdf-8b2df0434378", "", nil); got.Code != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", method, got.Code)
		}
	}
}
