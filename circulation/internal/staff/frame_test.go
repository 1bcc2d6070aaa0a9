package staff_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/auth"
	"checkoutlock/schemas/okapi"
)

const actorID = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"

// granted are the headers of a gateway for a user of diku with these permissions.
func granted(permissions ...string) http.Header {
	list, err := json.Marshal(append([]string{}, permissions...))
	if err != nil {
		panic(err)
	}
	return http.Header{okapi.TenantHeader: {"diku"}, okapi.PermissionsHeader: {string(list)}, okapi.UserIDHeader: {actorID}}
}

func TestPages_CheckTheGatewaysPermissions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		path   string
		header http.Header
		status int
		words  string
	}{
		"who may see":                  {"/staff/diku/", granted(admin.MaySeeSettings), 200, "The lock is off"},
		"who may see the form only":    {"/staff/diku/timing", granted(admin.MaySeeSettings), 200, "You may look at this, but not change it."},
		"who may do nothing":           {"/staff/diku/", granted(), 403, "Access requires permission: " + admin.MaySeeSettings + " The person who grants permissions"},
		"who may see but not change":   {"/staff/diku/switch?to=on", granted(admin.MaySeeSettings), 403, "Access requires permission: " + admin.MayChangeSettings},
		"who may not see the history":  {"/staff/diku/check-outs", granted(admin.MaySeeSettings), 403, admin.MaySeeCheckOuts},
		"who may not try":              {"/staff/diku/try", granted(admin.MaySeeSettings), 403, admin.MayExplain},
		"who may not see the sums":     {"/staff/diku/timing/sums", granted(admin.MaySeeLocks), 403, admin.MaySeeSettings},
		"who is of another tenant":     {"/staff/other/", granted(admin.MaySeeSettings), 403, "You are signed in to the tenant diku, not to other"},
		"without a gateway":            {"/staff/diku/", nil, 403, "set STAFF_AUTH to basic or none"},
		"a tenant that there is not":   {"/staff/Robert'%29--/", granted(admin.MaySeeSettings), 404, "There is no such tenant"},
		"a page that there is not":     {"/staff/-/nothing.js", nil, 404, "There is no such file"},
		"a permission as a part of it": {"/staff/diku/", granted(admin.MaySeeSettings + ".more"), 403, "Access requires permission"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := visitAs(t, &library{view: own(false, 3000)}, auth.Gateway, tt.header).get(t, tt.path)
			p.want(t, tt.status, tt.words)
		})
	}
}

func TestNavigation_HasThePagesThatAreAllowed(t *testing.T) {
	t.Parallel()
	l := &library{view: own(true, 3000)}
	p := visitAs(t, l, auth.Gateway, granted(admin.MaySeeSettings, admin.MayExplain)).get(t, "/staff/diku/timing")
	p.has(t, `<a href="/staff/diku/">Feature</a>`, `<a href="/staff/diku/timing" aria-current="page">Timing</a>`, `<a href="/staff/diku/try">`)
	p.lacks(t, "/staff/diku/locks", "/staff/diku/check-outs", "/staff/diku/contention")
	p.want(t, 200, "Signed in as Lovelace, Ada")
	p.lacks(t, actorID)
	// Without the permission for the first page, the navigation has the allowed pages.
	p = visitAs(t, l, auth.Gateway, granted(admin.MaySeeLocks)).get(t, "/staff/diku/")
	p.want(t, 403, "Access requires permission")
	p.has(t, `<a href="/staff/diku/locks">Live locks</a>`)
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
	stranger := visitAs(t, l, auth.Basic, nil).get(t, "/staff/diku/")
	stranger.want(t, 401, "Please sign in")
	if got := stranger.header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Basic ") {
		t.Errorf("WWW-Authenticate is %q", got)
	}
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth("Ada", "correct horse")
	v := visitAs(t, l, auth.Basic, r.Header)
	v.get(t, "/staff/diku/").want(t, 200, "Signed in as Ada")
	v.post(t, "/staff/diku/switch", url.Values{"to": {"on"}, "reason": {"exams"}}).want(t, 303)
	if l.by.UserName != "Ada" || l.where != "diku" {
		t.Errorf("changed by %q in %q, want Ada in diku", l.by.UserName, l.where)
	}
}

func TestPages_WithoutSignInWarnAndServeThisComputerOnly(t *testing.T) {
	t.Parallel()
	l := &library{view: own(false, 3000)}
	v := visit(t, l)
	v.get(t, "/staff/diku/").want(t, 200, "Sign-in is off (STAFF_AUTH=none)")
	v.header = granted() // a user's id without a gateway in front
	v.get(t, "/staff/diku/").lacks(t, "Signed in as")
	v.get(t, "/staff/diku/nothing").lacks(t, "Signed in as")
	v.host = "evil.example:9801" // a name that leads to this computer too
	v.get(t, "/staff/diku/").want(t, 403, "only addresses of this computer itself are served")
}

func TestFirstPage_RedirectsToATenant(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		path     string
		header   http.Header
		status   int
		location string
	}{
		"by the gateway": {"/staff/", granted(), 303, "/staff/diku/"},
		"by name":        {"/staff/?tenant=diku", nil, 303, "/staff/diku/"},
		"no slash":       {"/staff?tenant=diku", nil, 303, "/staff/diku/"},
		"by the address": {"/staff/diku", nil, 303, "/staff/diku/"},
		"a page of none": {"/staff/diku/nothing", nil, 404, ""},
		"a slash more":   {"/staff/diku/locks/", nil, 404, ""},
		"none":           {"/staff/", nil, 200, ""},
		"no such name":   {"/staff/?tenant=%3Cscript%3E//evil", nil, 422, ""},
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
