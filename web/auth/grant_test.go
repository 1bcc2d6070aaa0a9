package auth_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
	"checkoutlock/web/auth"
)

const actor = "9ad09b01-7429-455f-9f64-e3897027db61"

// desk answers a POST and keeps the call that its handler sees.
type desk struct {
	reached bool
	seen    okapi.Call
}

func (d *desk) post(mode auth.Mode, header http.Header) *httptest.ResponseRecorder {
	log := slog.New(slog.DiscardHandler)
	handle := func(c echo.Context) error {
		d.reached, d.seen = true, okapi.FromContext(c.Request().Context())
		return c.NoContent(http.StatusNoContent)
	}
	handler := web.New(web.Options{
		Log: log, Registry: prometheus.NewRegistry(), RequestTimeout: time.Minute, BodyLimit: 10, JSONFaults: true,
		BelievePermissions: mode == auth.Gateway, Ready: func(context.Context) error { return nil },
	}, auth.NewGuard(auth.Settings{Auth: mode, Password: password}, granted(), log).Grant([]web.Route{
		{Method: http.MethodPost, Path: "/x", Endpoint: web.Handle(handle), NoTenant: true},
	}))
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/x", http.NoBody)
	r.Header = header
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func TestGuard_GrantsPermissionsByGatewayOrPasswordOnly(t *testing.T) {
	t.Parallel()
	all := granted()
	sent := `["` + strings.Join(all, `","`) + `"]`
	tests := []struct {
		name    string
		mode    auth.Mode
		header  http.Header
		status  int
		granted []string
		says    string
	}{
		{
			name: "a gateway's header", mode: auth.Gateway, header: http.Header{okapi.PermissionsHeader: {sent}}, status: 204,
			granted: all,
		},
		{name: "a gateway without a header", mode: auth.Gateway, header: http.Header{}, status: 204},
		{
			name: "a password is nothing behind a gateway", mode: auth.Gateway,
			header: http.Header{"Authorization": {basic("ann:" + password)}}, status: 204,
		},
		{
			name: "a header is nothing without a gateway", mode: auth.Basic,
			header: http.Header{okapi.PermissionsHeader: {sent}}, status: 204,
		},
		{
			name: "the password grants all", mode: auth.Basic, header: http.Header{"Authorization": {basic("ann:" + password)}},
			status: 204, granted: all,
		},
		{
			name: "the password grants no more than all", mode: auth.Basic, status: 204, granted: all,
			header: http.Header{"Authorization": {basic("ann:" + password)}, okapi.PermissionsHeader: {`["x"]`}},
		},
		{
			name: "a wrong password", mode: auth.Basic, status: 401, says: "The password is wrong",
			header: http.Header{"Authorization": {basic("ann:wrong horse battery")}, okapi.PermissionsHeader: {sent}},
		},
		{
			name: "a password without a name", mode: auth.Basic, header: http.Header{"Authorization": {basic(":" + password)}},
			status: 401, says: "user name",
		},
		{
			name: "a token is no password", mode: auth.Basic,
			header: http.Header{"Authorization": {"Bearer x"}, okapi.PermissionsHeader: {sent}}, status: 204,
		},
		{
			name: "the password from a page of another site", mode: auth.Basic, status: 403, says: "another site",
			header: http.Header{"Authorization": {basic("ann:" + password)}, "Sec-Fetch-Site": {"cross-site"}},
		},
		{
			name: "a header on this machine", mode: auth.None, header: http.Header{okapi.PermissionsHeader: {sent}}, status: 204,
		},
		{
			name: "a password that nothing asked for", mode: auth.None,
			header: http.Header{"Authorization": {basic("ann:" + password)}}, status: 204,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var d desk
			tt.header.Set(okapi.UserIDHeader, actor)
			got := d.post(tt.mode, tt.header)
			if got.Code != tt.status || !strings.Contains(got.Body.String(), tt.says) {
				t.Errorf("got %d %s, want %d with %q", got.Code, got.Body, tt.status, tt.says)
			}
			if served := tt.status == http.StatusNoContent; d.reached != served || (served && d.seen.UserID != actor) {
				t.Errorf("the handler was reached: %t, by user %q", d.reached, d.seen.UserID)
			}
			if !slices.Equal(d.seen.Permissions, tt.granted) {
				t.Errorf("the handler sees the permissions %q, want %q", d.seen.Permissions, tt.granted)
			}
			if tt.status == http.StatusUnauthorized &&
				(got.Header().Get("WWW-Authenticate") == "" || got.Header().Get(fault.Header) != string(fault.Unauthorized)) {
				t.Errorf("the headers are %v", got.Header())
			}
		})
	}
}
