package staff_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/web/auth"
)

func TestCSRF_AcceptsFormsOfOurPagesOnly(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		cookie, token string
	}{
		"without anything":      {"", ""},
		"with a token alone":    {"", strings.Repeat("A", 26)},
		"with a cookie alone":   {strings.Repeat("A", 26), ""},
		"with another token":    {strings.Repeat("A", 26), strings.Repeat("B", 26)},
		"with both, but short":  {"A", "A"},
		"with both, but empty":  {" ", ""},
		"with part of a cookie": {strings.Repeat("A", 26), strings.Repeat("A", 25)},
	}
	for name, tt := range tests {
		for path, form := range map[string]url.Values{
			"/staff/diku/switch": {"to": {"on"}, "reason": {"because"}},
			"/staff/diku/timing": {"lockTtlMs": {"4000"}, "reason": {"because"}},
		} {
			t.Run(name+" "+path, func(t *testing.T) {
				t.Parallel()
				l := &library{view: own(false, 3000)}
				v := visit(t, l)
				if tt.cookie != "" {
					v.cookies["staff_token"] = tt.cookie
				}
				form := url.Values{"to": form["to"], "lockTtlMs": form["lockTtlMs"], "reason": form["reason"], "token": {tt.token}}
				v.postBare(t, path, form).want(t, 403, "This form did not come from a page that was opened here",
					"Nothing was changed")
				if len(l.changed) > 0 {
					t.Errorf("changed %+v", l.changed)
				}
			})
		}
	}
}

func TestCSRF_RefusesFormsOfANeighbourBehindAGateway(t *testing.T) {
	t.Parallel()
	for site, status := range map[string]int{
		"same-site": 403, "cross-site": 403, "same-origin": 303, "none": 303, "": 303,
	} {
		header := granted(admin.MaySeeSettings, admin.MayChangeSettings)
		header.Set("Sec-Fetch-Site", site)
		l := &library{view: own(false, 3000)}
		p := visitAs(t, l, auth.Gateway, header).post(t, "/staff/diku/switch", url.Values{
			"to": {"on"}, "reason": {"because"},
		})
		if p.want(t, status); (len(l.changed) > 0) != (status == 303) {
			t.Errorf("%q: changed %+v", site, l.changed)
		}
	}
}

func TestCSRF_HidesTheTokenFromOtherSites(t *testing.T) {
	t.Parallel()
	v := visit(t, &library{view: own(false, 3000)})
	first := v.get(t, "/staff/diku/")
	cookie := first.header.Get("Set-Cookie")
	for _, part := range []string{"staff_token=", "Path=/", "HttpOnly", "SameSite=Lax"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("Set-Cookie is %q, want %s", cookie, part)
		}
	}
	if again := v.get(t, "/staff/diku/").header.Get("Set-Cookie"); again != "" {
		t.Errorf("who has a token got another: %q", again)
	}
	form := v.get(t, "/staff/diku/timing")
	form.has(t, `name="token" value="`+v.cookies["staff_token"]+`"`)
}

// originUnder is the Origin of a form of a page with the referrer policy, sent to the
// same site over plain http (Fetch, section "append a request Origin header").
func originUnder(policy, site string) string {
	switch policy {
	case "same-origin", "strict-origin", "strict-origin-when-cross-origin", "no-referrer-when-downgrade", "origin",
		"origin-when-cross-origin", "unsafe-url":
		return site
	}
	return "null" // no-referrer, and unknown policies
}

// Browsers send Sec-Fetch-Site over https and to the computer itself only.
func TestCSRF_AcceptsFormsOverPlainHTTPByTheirOrigin(t *testing.T) {
	t.Parallel()
	const host = "library.example:9801"
	tests := map[string]struct {
		origin func(policy string) string
		status int
	}{
		"a page of ours": {
			func(policy string) string { return originUnder(policy, "http://"+host) }, http.StatusSeeOther,
		},
		"a page of another site":  {func(string) string { return "http://evil.example" }, http.StatusForbidden},
		"another port of ours":    {func(string) string { return "http://library.example" }, http.StatusForbidden},
		"a page that hides its":   {func(string) string { return "null" }, http.StatusForbidden},
		"a browser that is older": {func(string) string { return "" }, http.StatusSeeOther}, // the token alone decides
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &library{view: own(false, 3000)}
			r := &http.Request{Header: http.Header{}}
			r.SetBasicAuth("Ada", "correct horse")
			v := visitAs(t, l, auth.Basic, r.Header)
			v.host = host
			form := v.get(t, "/staff/diku/switch?to=on")
			if origin := tt.origin(form.header.Get("Referrer-Policy")); origin != "" {
				v.header.Set("Origin", origin)
			}
			p := v.post(t, "/staff/diku/switch", url.Values{"to": {"on"}, "reason": {"exams"}})
			if p.want(t, tt.status); (len(l.changed) > 0) != (tt.status == http.StatusSeeOther) {
				t.Errorf("changed %+v", l.changed)
			}
		})
	}
}
