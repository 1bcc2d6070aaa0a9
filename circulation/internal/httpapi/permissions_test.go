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
		{"behind a gateway the header counts", auth.Gateway, granted(all[1]), 201, all[1:2]},
		{"with basic the header counts for nothing", auth.Basic, granted(all...), 201, nil},
		{"with basic the password grants all", auth.Basic, signedIn("ann", staffPassword), 201, all},
		{"with basic a wrong password is refused", auth.Basic, both("correct horse"), 401, nil},
		{"with none the header counts for nothing", auth.None, both(staffPassword), 201, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := &backend{adminFake: adminFake{mode: tt.mode}, extra: tt.header}
			status, _, body := b.send(t, "POST", checkOutPath, checkOutBody)
			if status != tt.status || !slices.Equal(b.caller.Permissions, tt.granted) {
				t.Errorf("got %d %s with the permissions %q, want %d with %q", status, body, b.caller.Permissions, tt.status, tt.granted)
			}
			if reached := b.asked.ItemBarcode != ""; reached != (tt.status == http.StatusCreated) {
				t.Errorf("a check-out was made: %t", reached)
			}
		})
	}
}
