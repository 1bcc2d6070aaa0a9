package httpapi_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/web/auth"
)

func TestRoutes_GiveACheckOutOnlyPermissionsThatAreBelieved(t *testing.T) {
	t.Parallel()
	all := checkout.OverridePermissions()
	both := func(password string) http.Header {
		header := granted(all...)
		maps.Copy(header, signedIn("ann", password))
		return header
	}
	tests := []struct {
		name    string
		mode    auth.Mode
		header  http.Header
		status  int
		granted []string
	}{
		{
			name: "behind a gateway the header counts", mode: auth.Gateway, header: granted(all[1]), status: 201,
			granted: all[1:2],
		},
		{
			name: "with basic the header counts for nothing", mode: auth.Basic, header: granted(all...), status: 201,
			granted: nil,
		},
		{
			name: "with basic the password grants all", mode: auth.Basic, header: signedIn("ann", staffPassword), status: 201,
			granted: all,
		},
		{
			name: "with basic a wrong password is refused", mode: auth.Basic, header: both("correct horse"), status: 401,
			granted: nil,
		},
		{
			name: "with none the header counts for nothing", mode: auth.None, header: both(staffPassword), status: 201,
			granted: nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := &backend{adminFake: adminFake{mode: tt.mode}, extra: tt.header}
			status, _, body := b.send(t, "POST", checkOutPath, checkOutBody)
			if status != tt.status || !slices.Equal(b.caller.Permissions, tt.granted) {
				t.Errorf("got %d %s with the permissions %q, want %d with %q", status, body, b.caller.Permissions, tt.status,
					tt.granted)
			}
			if reached := b.asked.ItemBarcode != ""; reached != (tt.status == http.StatusCreated) {
				t.Errorf("a check-out was made: %t", reached)
			}
		})
	}
}
