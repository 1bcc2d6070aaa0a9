package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// refuser refuses before and after the handler.
type refuser struct{ before, after error }

func (r refuser) Check(context.Context) error { return r.before }

func (r refuser) Explain(_ context.Context, err error) error { return errors.Join(r.after, err) }

func TestForServedTenants(t *testing.T) {
	t.Parallel()
	notReady := fault.New(fault.TenantNotReady, "Tenant diku has migration 14")
	for name, tt := range map[string]struct {
		refuser  refuser
		noTenant bool
		fails    error
		want     int
	}{
		"a tenant that is served": {refuser: refuser{}, noTenant: false, fails: nil, want: http.StatusNoContent},
		"a tenant that is not served": {
			refuser: refuser{before: notReady}, noTenant: false, fails: nil, want: http.StatusServiceUnavailable,
		},
		"an endpoint of the platform": {
			refuser: refuser{before: notReady}, noTenant: true, fails: nil, want: http.StatusNoContent,
		},
		"a failure that has an explanation": {
			refuser: refuser{after: notReady}, noTenant: false, fails: fault.New(fault.UnknownTenant, "none"),
			want: http.StatusServiceUnavailable,
		},
		"no failure needs no explanation": {
			refuser: refuser{after: notReady}, noTenant: false, fails: nil, want: http.StatusNoContent,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler := func(c echo.Context) error {
				if tt.fails != nil {
					return tt.fails
				}
				return c.NoContent(http.StatusNoContent)
			}
			routes := []web.Route{{Method: http.MethodGet, Path: "/thing", Endpoint: web.Handle(handler), NoTenant: tt.noTenant}}
			got := newAPI(t, httpapi.ForServedTenants(tt.refuser, routes)).call(http.MethodGet, "/thing", "", nil)
			if got.Code != tt.want {
				t.Errorf("got %d %s, want %d", got.Code, got.Body, tt.want)
			}
		})
	}
}
