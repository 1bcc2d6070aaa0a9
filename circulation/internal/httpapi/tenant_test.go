package httpapi_test

import (
	"net/http"
	"testing"
)

// A gateway installs, upgrades and removes circulation by these calls, with bodies of its own.
func TestTenant_IsInstalledAndRemovedWithoutWork(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method, body string
		status       int
	}{
		{method: http.MethodPost, body: `{"module_to":"mod-x-0.1.0","parameters":[]}`, status: http.StatusNoContent},
		{method: http.MethodPost, body: "", status: http.StatusNoContent},
		{method: http.MethodDelete, body: "", status: http.StatusNoContent},
		{method: http.MethodPut, body: "{}", status: http.StatusMethodNotAllowed},
	} {
		if status, _, body := (&backend{}).send(t, tt.method, "/_/tenant", tt.body); status != tt.status {
			t.Errorf("%s %s: got %d %s, want %d", tt.method, tt.body, status, body, tt.status)
		}
	}
}
