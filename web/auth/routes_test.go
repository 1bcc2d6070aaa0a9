package auth_test

import (
	"log/slog"
	"net/http"
	"slices"
	"testing"

	"checkoutlock/web"
	"checkoutlock/web/auth"
)

// A gateway passes on only the permissions that a descriptor desires, and the guard checks them.
func TestGuardRoutes_DesireTheirPermission(t *testing.T) {
	t.Parallel()
	routes := []web.Route{{Method: http.MethodGet, Path: "/x", Permission: maySee, Desired: []string{mayPut}}}
	got := auth.NewGuard(auth.Settings{Auth: auth.Gateway}, nil, slog.New(slog.DiscardHandler)).Routes(routes)
	if want := []string{mayPut, maySee}; !slices.Equal(got[0].Desired, want) || len(routes[0].Desired) != 1 {
		t.Errorf("got %q of %q, want %q", got[0].Desired, routes[0].Desired, want)
	}
}
