package auth_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// begin opens a page whose session is due, and returns the way back from the provider.
func (v *visitor) begin(p *provider, list string) (back string) {
	v.t.Helper()
	return v.goOn(p, v.get("/desk/diku/sign-in?to=%2Fdesk%2Fdiku%2Flist%3Fx%3D"+list))
}

func wantWayTo(t *testing.T, got *httptest.ResponseRecorder, path string) {
	t.Helper()
	if to := got.Header().Get("Location"); got.Code != http.StatusSeeOther || to != path {
		t.Errorf("got %d %s to %q, want a way to %s", got.Code, got.Body, to, path)
	}
}

// flows returns the names of the cookies of begun flows, and the bytes of all of them.
func (v *visitor) flows() (names []string, size int) { return v.measureCookies("__Host-desk_flow_") }

// measureCookies returns the cookies whose names begin so, and the bytes of all of them.
func (v *visitor) measureCookies(begin string) (names []string, size int) {
	for name, c := range v.cookies {
		if strings.HasPrefix(name, begin) {
			names, size = append(names, name), size+len(c.Value)
		}
	}
	return names, size
}

func TestFlow_TabsSignInAtOnce(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	_, v := visitWith(t, p, byProvider())
	first, second := v.begin(p, "1"), v.begin(p, "2")
	wantWayTo(t, v.get(strings.Replace(first, "iss=", "session=", 1)), "/desk/diku/list?x=1") // of another provider
	wantWayTo(t, v.get(second), "/desk/diku/list?x=2")
	v.wantSignedIn("ann")
	if names, _ := v.flows(); len(names) > 0 {
		t.Errorf("the cookies %v are left", names)
	}
}

// A browser that begins again and again keeps a bounded number of cookies: those of the newest flows.
func TestFlow_CookiesAreBounded(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	_, v := visitWith(t, p, byProvider())
	long := strings.Repeat("x", 500)
	oldest := v.begin(p, long)
	var newest []string
	for range 10 {
		newest = append(newest, v.begin(p, long))
	}
	names, size := v.flows()
	if size > 8<<10 {
		t.Errorf("%d cookies have %d bytes, want 8 KiB at most", len(names), size)
	}
	wantStatus(t, v.get(oldest), http.StatusUnauthorized, "did not begin in this browser")
	for _, back := range newest[len(newest)-len(names):] {
		wantWayTo(t, v.get(back), "/desk/diku/list?x="+long)
	}
}

// A person who signs in to one tenant after another keeps those that were used last.
func TestPages_SessionCookiesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := newSite(byPassword()).visit(t)
		v.signIn("Ann", password, "")
		for i := range 60 {
			pass(2 * time.Second)
			v.signInTo(fmt.Sprint("t", i), "Ann", password, "")
		}
		names, size := v.measureCookies("desk_session_")
		if size > 8<<10 || len(names) < 10 {
			t.Errorf("%d cookies have %d bytes, want 8 KiB at most", len(names), size)
		}
		for i := 60 - len(names); i < 60; i++ {
			wantStatus(t, v.get(fmt.Sprintf("/desk/t%d/", i)), http.StatusOK, "Ann sees")
		}
	})
}

// A cookie of another site under the same domain displaces no flow.
func TestFlow_ForeignCookiesAreTheOldest(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	_, v := visitWith(t, p, byProvider())
	first := v.begin(p, "1")
	foreign := &http.Cookie{Name: "desk_flow_AAAAAAAA", Value: strings.Repeat("x", 4000)}
	v.cookies[foreign.Name] = foreign
	v.begin(p, "2")
	wantWayTo(t, v.get(first), "/desk/diku/list?x=1")
}

func TestFlow_EndsWithTheSession(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	_, v := visitWith(t, p, byProvider())
	v.signInAt(p)
	other := v.begin(p, "1")
	wantWayTo(t, v.signOut(), "/desk/diku/signed-out")
	wantStatus(t, v.get(other), http.StatusUnauthorized, "did not begin in this browser")
	if names := slices.Sorted(maps.Keys(v.cookies)); len(names) != 1 {
		t.Errorf("the cookies %v are left, want the one of forms", names)
	}
	v.wantSignedOut()
}

// The page of a part of the provider that is away loads itself again, until it leads on.
func TestFlow_GoesOnOnceTheProviderIsBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, broken string }{
		{name: "its addresses", broken: "/realms/library/.well-known/openid-configuration"},
		{name: "its keys", broken: "/realms/library/keys"},
		{name: "its tokens", broken: "/realms/library/token"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			s, v := visitWith(t, p, byProvider())
			back := v.begin(p, "1")
			s.registry = nil
			v = v.at(s.start(t)) // an instance that has not asked the provider yet
			p.broken = tt.broken
			wantStatus(t, v.get(back), http.StatusServiceUnavailable, "cannot be reached")
			p.broken = ""
			wantWayTo(t, v.get(back), "/desk/diku/list?x=1")
			v.wantSignedIn("ann")
			wantStatus(t, v.get(back), http.StatusUnauthorized, "did not begin in this browser")
		})
	}
}
