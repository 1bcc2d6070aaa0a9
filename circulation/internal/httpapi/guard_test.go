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
	{"GET", "/circulation/check-out-lock-settings", ``, "circulation.check-out-lock-settings.item.get"},
	{"PUT", "/circulation/check-out-lock-settings", `{}`, "circulation.check-out-lock-settings.item.put"},
	{"GET", "/circulation/check-out-lock-changes", ``, "circulation.check-out-lock-changes.collection.get"},
	{"GET", "/circulation/check-out-locks", ``, "circulation.check-out-locks.collection.get"},
	{"POST", "/circulation/check-out-locks/" + lockID + "/release", `{"reason":"x"}`, "circulation.check-out-locks.item.release.post"},
	{"GET", "/circulation/check-out-history", ``, "circulation.check-out-history.collection.get"},
	{"GET", "/circulation/check-out-figures", ``, "circulation.check-out-figures.get"},
	{"POST", "/circulation/check-out-explanation", `{"itemBarcode":"i","userBarcode":"u"}`, "circulation.check-out-explanation.post"},
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
			"granted":           {backend{adminFake: adminFake{mode: auth.Gateway}, extra: granted(g.permission)}, 200, ""},
			"granted all else":  {backend{adminFake: adminFake{mode: auth.Gateway}, extra: granted(allOthers...)}, 403, "Access requires permission: " + g.permission},
			"granted nothing":   {backend{adminFake: adminFake{mode: auth.Gateway}}, 403, "Access requires permission: " + g.permission},
			"the password":      {backend{adminFake: adminFake{mode: auth.Basic}, extra: signedIn("ann", staffPassword)}, 200, ""},
			"a wrong password":  {backend{adminFake: adminFake{mode: auth.Basic}, extra: signedIn("ann", "correct horse")}, 401, "The password is wrong"},
			"no password":       {backend{adminFake: adminFake{mode: auth.Basic}, extra: granted(g.permission)}, 401, "Sign in"},
			"this machine":      {backend{}, 200, ""},
			"another host name": {backend{adminFake: adminFake{host: "rebound.example"}}, 403, "STAFF_AUTH=none"},
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
