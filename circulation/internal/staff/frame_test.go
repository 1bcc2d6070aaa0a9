package staff_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web/auth"
)

const actorID = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"

// granted are the headers of a gateway for a user of diku with these permissions.
func granted(permissions ...string) http.Header {
	list, err := json.Marshal(append([]string{}, permissions...))
	if err != nil {
		panic(err)
	}
	return http.Header{
		okapi.TenantHeader: {"diku"}, okapi.PermissionsHeader: {string(list)}, okapi.UserIDHeader: {actorID},
	}
}

func TestPages_CheckTheGatewaysPermissions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		path   string
		header http.Header
		status int
		words  string
	}{
		"with the permission": {
			path: "/staff/diku/", header: granted(admin.MaySeeSettings), status: 200, words: "The lock is off",
		},
		"with the permission of the form only": {
			path: "/staff/diku/timing", header: granted(admin.MaySeeSettings), status: 200,
			words: "You may look at this, but not change it.",
		},
		"without permissions": {
			path: "/staff/diku/", header: granted(), status: 403,
			words: "Access requires permission: " + admin.MaySeeSettings + " The person who grants permissions",
		},
		"with the permission to look only": {
			path: "/staff/diku/switch?to=on", header: granted(admin.MaySeeSettings), status: 403,
			words: "Access requires permission: " + admin.MayChangeSettings,
		},
		"without the history": {
			path: "/staff/diku/check-outs", header: granted(admin.MaySeeSettings), status: 403, words: admin.MaySeeCheckOuts,
		},
		"without explanations": {
			path: "/staff/diku/try", header: granted(admin.MaySeeSettings), status: 403, words: admin.MayExplain,
		},
		"without the sums": {
			path: "/staff/diku/timing/sums", header: granted(admin.MaySeeLocks), status: 403, words: admin.MaySeeSettings,
		},
		"of another tenant": {
			path: "/staff/other/", header: granted(admin.MaySeeSettings), status: 403,
			words: "You are signed in to the library diku, not to other",
		},
		"without a gateway": {path: "/staff/diku/", status: 403, words: "are not known. Please tell your operator"},
		"no such tenant": {
			path: "/staff/Robert'%29--/", header: granted(admin.MaySeeSettings), status: 404, words: "There is no such library",
		},
		"no such page": {path: "/staff/-/nothing.js", status: 404, words: "There is no such file"},
		"part of a permission": {
			path: "/staff/diku/", header: granted(admin.MaySeeSettings + ".more"), status: 403,
			words: "Access requires permission",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := visitAs(t, &library{view: own(false, 3000)}, auth.Gateway, tt.header).get(t, tt.path)
			p.want(t, tt.status, tt.words)
		})
	}
}

func TestPages_NameTheBuild(t *testing.T) {
	t.Parallel()
	p := visitAs(t, &library{view: own(false, 3000)}, auth.Gateway, granted(admin.MaySeeSettings)).get(t, "/staff/diku/")
	p.has(t, `<footer class="foot">Version devel`)
}

func TestNavigation_HasThePagesThatAreAllowed(t *testing.T) {
	t.Parallel()
	l := &library{view: own(true, 3000)}
	p := visitAs(t, l, auth.Gateway, granted(admin.MaySeeSettings, admin.MayExplain)).get(t, "/staff/diku/timing")
	p.has(t, `<a href="/staff/diku/">On / off</a>`, `<a href="/staff/diku/timing" aria-current="page">Timing</a>`,
		`<a href="/staff/diku/try">`)
	p.lacks(t, "/staff/diku/locks", "/staff/diku/check-outs", "/staff/diku/contention")
	p.want(t, 200, "Signed in as Lovelace, Ada")
	p.lacks(t, actorID)
	// Without the permission for the first page, the navigation has the allowed pages.
	p = visitAs(t, l, auth.Gateway, granted(admin.MaySeeLocks)).get(t, "/staff/diku/")
	p.want(t, 403, "Access requires permission")
	p.has(t, `<a href="/staff/diku/locks">Locks now</a>`)
	p.lacks(t, "/staff/diku/timing")
}

func TestFeaturePage_HidesChangesWithoutThePermission(t *testing.T) {
	t.Parallel()
	l := &library{view: own(true, 3000)}
	p := visitAs(t, l, auth.Gateway, granted(admin.MaySeeSettings)).get(t, "/staff/diku/")
	p.want(t, 200, "The lock is on")
	p.lacks(t, "Who changed what", "No change of")
	p = visitAs(t, l, auth.Gateway, granted(admin.MaySeeSettings, admin.MaySeeChanges)).get(t, "/staff/diku/?offset=20")
	p.want(t, 200, "Who changed what", "There are no older changes.", "Newer")
	p.lacks(t, "No change of")
}

func TestPages_AskForThePasswordAndKeepTheName(t *testing.T) {
	t.Parallel()
	l := &library{view: own(false, 3000)}
	stranger := visitAs(t, l, auth.Basic, nil)
	first := stranger.get(t, "/staff/DIKU/locks?holder=a")
	if first = stranger.get(t, first.header.Get("Location")); first.status != 303 {
		t.Errorf("the page is %d, want a way to the sign-in", first.status)
	}
	form := stranger.get(t, first.header.Get("Location"))
	form.want(t, 200, "Sign in", "Your name", "Password")
	form.has(t, `name="to" value="/staff/diku/locks?holder=a"`)
	turn := url.Values{"to": {"on"}, "reason": {"exams"}}
	stranger.post(t, "/staff/diku/switch", turn).want(t, 401, "Nothing was changed")
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth("Ada", "correct horse")
	v := visitAs(t, l, auth.Basic, r.Header)
	v.get(t, "/staff/diku/").want(t, 200, "Signed in as Ada")
	v.post(t, "/staff/diku/switch", turn).want(t, 303)
	if l.by.UserName != "Ada" || l.where != "diku" {
		t.Errorf("changed by %q in %q, want Ada in diku", l.by.UserName, l.where)
	}
}

func TestPages_WithoutSignInWarnAndServeThisComputerOnly(t *testing.T) {
	t.Parallel()
	l := &library{view: own(false, 3000)}
	v := visit(t, l)
	v.get(t, "/staff/diku/").want(t, 200, "Sign-in is off: everyone at this computer")
	v.header = granted() // a user's id without a gateway in front
	v.get(t, "/staff/diku/").lacks(t, "Signed in as")
	v.get(t, "/staff/diku/nothing").lacks(t, "Signed in as")
	v.host = "evil.example:9801" // a name that leads to this computer too
	v.get(t, "/staff/diku/").want(t, 403, "These pages are served only at addresses of this computer itself")
}

// A proxy may put a prefix before all paths, so no link begins at the root.
func TestPages_LinkRelatively(t *testing.T) {
	t.Parallel()
	l := history(schemas.PastCheckOut{Outcome: "refused", UserBarcode: "569", ItemBarcode: "036"})
	l.figures, l.history.More = busyHour(), true
	v := visit(t, l)
	root := regexp.MustCompile(`(?:href|src|action|data-stream|data-sums)="/`)
	for _, path := range []string{
		"/staff", "/staff/", "/staff/diku/", "/staff/diku/switch?to=on", "/staff/diku/timing", "/staff/diku/contention",
		"/staff/diku/check-outs?patrons=shown", "/staff/diku/try", "/staff/diku/nothing", "/staff/diku/a/b/c",
	} {
		p := v.get(t, path)
		if found := root.FindString(p.raw); found != "" || !strings.Contains(p.html, `href="/staff/-/page.css`) {
			t.Errorf("%s has the link %s, or lacks its style:\n%s", path, found, p.raw)
		}
	}
	for path, want := range map[string]string{
		"/": "staff/", "/staff/?tenant=diku": "../staff/diku/", "/staff/live": "../staff/live/",
		"/staff/DIKU/locks?state=held": "../../staff/diku/locks?state=held",
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Host = v.host
		w := httptest.NewRecorder()
		v.handler.ServeHTTP(w, r)
		if got := w.Header().Get("Location"); w.Code != http.StatusSeeOther || got != want {
			t.Errorf("%s leads to %s with %d, want %s", path, got, w.Code, want)
		}
	}
}

func TestFirstPage_RedirectsToATenant(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		path     string
		header   http.Header
		status   int
		location string
	}{
		"by the gateway": {path: "/staff/", header: granted(), status: 303, location: "/staff/diku/"},
		"by name":        {path: "/staff/?tenant=diku", status: 303, location: "/staff/diku/"},
		"in capitals":    {path: "/staff/DIKU/locks?state=held", status: 303, location: "/staff/diku/locks?state=held"},
		"typed so":       {path: "/staff/?tenant=+DIKU", status: 303, location: "/staff/diku/"},
		"no slash":       {path: "/staff?tenant=diku", status: 303, location: "/staff/diku/"},
		"by the address": {path: "/staff/diku", status: 303, location: "/staff/diku/"},
		"a page of none": {path: "/staff/diku/nothing", status: 404},
		"a slash more":   {path: "/staff/diku/locks/", status: 404},
		"none":           {path: "/staff/", status: 200},
		"no such name":   {path: "/staff/?tenant=%3Cscript%3E//evil", status: 422},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := visitAs(t, &library{}, auth.Gateway, tt.header).get(t, tt.path)
			if p.status != tt.status || p.header.Get("Location") != tt.location {
				t.Errorf("got %d to %q, want %d to %q", p.status, p.header.Get("Location"), tt.status, tt.location)
			}
			p.lacks(t, "<script>")
			if kind := p.header.Get("Content-Type"); tt.location == "" && !strings.HasPrefix(kind, "text/html") {
				t.Errorf("got %s, want a page", kind)
			}
		})
	}
}
