package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"checkoutlock/schemas/okapi"
	"checkoutlock/web/auth"
)

// guarded are staff's endpoints with their permissions, as docs/api.md has them.
var guarded = []struct{ method, path, body, permission string }{
	{
		method: "GET", path: "/circulation/check-out-lock-settings", body: ``,
		permission: "circulation.check-out-lock-settings.item.get",
	},
	{
		method: "PUT", path: "/circulation/check-out-lock-settings", body: `{}`,
		permission: "circulation.check-out-lock-settings.item.put",
	},
	{
		method: "GET", path: "/circulation/check-out-lock-changes", body: ``,
		permission: "circulation.check-out-lock-changes.collection.get",
	},
	{
		method: "GET", path: "/circulation/check-out-locks", body: ``,
		permission: "circulation.check-out-locks.collection.get",
	},
	{
		method: "POST", path: "/circulation/check-out-locks/" + lockID + "/release", body: `{"reason":"x"}`,
		permission: "circulation.check-out-locks.item.release.post",
	},
	{
		method: "GET", path: "/circulation/check-out-history", body: ``,
		permission: "circulation.check-out-history.collection.get",
	},
	{method: "GET", path: "/circulation/check-out-figures", body: ``, permission: "circulation.check-out-figures.get"},
	{
		method: "POST", path: "/circulation/check-out-explanation", body: `{"itemBarcode":"i","userBarcode":"u"}`,
		permission: "circulation.check-out-explanation.post",
	},
}

func TestAdminRoutes_RequirePermissions(t *testing.T) {
	t.Parallel()
	others := []string{}
	for _, g := range guarded {
		others = append(others, g.permission)
	}
	for i, g := range guarded {
		allOthers := append(append([]string{}, others[:i]...), others[i+1:]...)
		tests := map[string]struct {
			b      backend
			status int
			want   string
		}{
			"granted": {
				b: backend{adminFake: adminFake{mode: auth.Gateway}, extra: granted(g.permission)}, status: 200, want: "",
			},
			"granted all else": {
				b: backend{adminFake: adminFake{mode: auth.Gateway}, extra: granted(allOthers...)}, status: 403,
				want: "Access requires permission: " + g.permission,
			},
			"granted nothing": {
				b: backend{adminFake: adminFake{mode: auth.Gateway}}, status: 403,
				want: "Access requires permission: " + g.permission,
			},
			"the password": {
				b: backend{adminFake: adminFake{mode: auth.Basic}, extra: signedIn("ann", staffPassword)}, status: 200, want: "",
			},
			"a wrong password": {
				b: backend{adminFake: adminFake{mode: auth.Basic}, extra: signedIn("ann", "correct horse")}, status: 401,
				want: "The password is wrong",
			},
			"no password": {
				b: backend{adminFake: adminFake{mode: auth.Basic}, extra: granted(g.permission)}, status: 401, want: "Sign in",
			},
			"this machine": {b: backend{}, status: 200, want: ""},
			"another host name": {
				b: backend{adminFake: adminFake{host: "rebound.example"}}, status: 403, want: "STAFF_AUTH=none",
			},
		}
		for name, tt := range tests {
			t.Run(g.permission+" "+name, func(t *testing.T) {
				t.Parallel()
				status, header, answer := tt.b.send(t, g.method, g.path, g.body)
				if status != tt.status || !strings.Contains(answer, tt.want) {
					t.Errorf("got %d %s, want %d with %s", status, answer, tt.status, tt.want)
				}
				if challenged := header.Get("WWW-Authenticate") != ""; challenged != (tt.status == http.StatusUnauthorized) {
					t.Errorf("asked to sign in: %t with status %d", challenged, status)
				}
				if reached := tt.b.adminFake.asked != ""; reached != (tt.status == http.StatusOK) {
					t.Errorf("the service was asked for %q with status %d", tt.b.adminFake.asked, status)
				}
				if name == "the password" && tt.b.by != "ann" {
					t.Errorf("done by %q, want ann", tt.b.by)
				}
			})
		}
	}
}

func TestAdminRoutes_RefusePagesOfOtherSites(t *testing.T) {
	t.Parallel()
	for _, g := range guarded {
		if g.method == http.MethodGet {
			continue
		}
		for _, mode := range []auth.Mode{auth.Basic, auth.None} {
			extra := signedIn("ann", staffPassword)
			extra["Sec-Fetch-Site"] = []string{"cross-site"}
			b := &backend{adminFake: adminFake{mode: mode}, extra: extra}
			status, _, answer := b.send(t, g.method, g.path, g.body)
			if status != http.StatusForbidden || !strings.Contains(answer, "another site") || b.adminFake.asked != "" {
				t.Errorf("%s %s, %s: got %d %s, want 403", g.method, g.path, mode, status, answer)
			}
		}
	}
}

func granted(permissions ...string) http.Header {
	list, _ := json.Marshal(permissions) // strings can always be written
	return http.Header{okapi.PermissionsHeader: {string(list)}}
}

func signedIn(name, password string) http.Header {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(name, password)
	return r.Header
}
