package auth_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// wantRefusedScript checks that a script without a session gets 401 and no way to the sign-in.
func wantRefusedScript(v *visitor) {
	v.t.Helper()
	got := v.get("/desk/diku/list")
	wantStatus(v.t, got, http.StatusUnauthorized, "")
	if to := got.Header().Get("Location"); to != "" {
		v.t.Errorf("a script is sent to %s", to)
	}
}

// A script cannot go to the provider and back. Its requests begin no flow, whose cookie would evict another.
func TestOIDC_SendsNoScriptToTheProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t)
		_, v := visitWith(t, p, byProvider())
		v.signInAt(p)
		v.header.Set("X-Requested-With", "fetch")
		pass(6 * time.Minute)
		v.wantSignedIn("ann")
		pass(9 * time.Minute)
		wantRefusedScript(v)
		if names, _ := v.flows(); len(names) > 0 {
			t.Errorf("a script has the cookies %v", names)
		}
		v.header.Del("X-Requested-With")
		v.signInAt(p)
		v.wantSignedIn("ann")
	})
}

// The script of a form asks while a person types, which keeps the session.
func TestPages_KeepASessionWhileAPersonTypes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := newSite(byPassword()).visit(t)
		v.signIn("Ann", password, "")
		v.header.Set("X-Requested-With", "fetch")
		for range 3 {
			pass(20 * time.Minute)
			v.wantSignedIn("Ann")
		}
		pass(30 * time.Minute)
		wantRefusedScript(v)
	})
}

// Browsers inside apps send the header too, with a name of their own.
func TestPages_SendBrowsersInsideAppsToTheSignIn(t *testing.T) {
	t.Parallel()
	v := newSite(byPassword()).visit(t)
	v.header.Set("X-Requested-With", "org.example.kiosk")
	if w := v.get("/desk/diku/list"); w.Code != http.StatusSeeOther {
		t.Errorf("got %d %s, want %d", w.Code, w.Body, http.StatusSeeOther)
	}
}
