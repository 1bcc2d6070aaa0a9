package httpapi_test

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"checkoutlock/resource-locks/internal/httpapi"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web/auth"
)

func TestPages_ChecksPermissions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, granted      string
		see, ask, released int
	}{
		{name: "nothing granted", granted: `[]`, see: 403, ask: 403, released: 403},
		{name: "viewers see only", granted: `["` + httpapi.MaySee + `"]`, see: 200, ask: 403, released: 403},
		{
			name: "staff release", granted: `["` + httpapi.MaySee + `","` + httpapi.MayRelease + `"]`, see: 200, ask: 200,
			released: 303,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newHarness(t, auth.Gateway)
			d.header.Set(okapi.PermissionsHeader, tt.granted)
			l := d.acquire("mutex", "draft-1", "7")
			page := d.send(http.MethodGet, "/locks/", nil)
			want(t, page, tt.see)
			if shown := strings.Contains(page.Body.String(), "/locks/release"); shown != (tt.ask == 200) {
				t.Errorf("the link to release is shown: %t", shown)
			}
			path := "/locks/release?namespace=mutex&name=draft-1&lock=" + l.ID.String()
			want(t, d.send(http.MethodGet, path, nil), tt.ask)
			d.cookie = "staff_token=" + rand.Text()
			want(t, d.send(http.MethodPost, path, url.Values{"reason": {"stuck"}, "token": {d.token()}}), tt.released)
		})
	}
}
