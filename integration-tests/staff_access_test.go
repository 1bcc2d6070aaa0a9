package integration_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/okapi"
)

func TestStaffAccess_ByPassword(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: append(disableLock(), requirePassword()...)}, 1)
	// Programs may send the password; nothing makes a browser ask for it by itself.
	stranger := callEndpoint(t, p.machines[0], http.MethodGet, "/staff/"+p.Storage.Tenant+"/sign-in", nil)
	if asks := stranger.Header.Get("WWW-Authenticate"); stranger.Status != http.StatusOK || asks != "" {
		t.Errorf("the sign-in has status %d and WWW-Authenticate %q", stranger.Status, asks)
	}
	tab := p.openStaffPage(t, 0, browser.BasicAuth(clerk, clerkPassword))
	tab.See("Signed in as " + clerk)
	tab.Gone("STAFF_AUTH")
	turnLock(tab, "on", "The new self-checks open today")
	tab.In("The new self-checks open today").See(clerk + " Lock: on, before that the default")
}

// gatewayOptions returns the headers that a gateway sends for a user with permissions.
func gatewayOptions(tenant, permissions string) []browser.Option {
	return []browser.Option{
		browser.Header(okapi.TenantHeader, tenant),
		browser.Header(okapi.UserIDHeader, "9ad09b01-7429-455f-9f64-e3897027db61"),
		browser.Header(okapi.PermissionsHeader, permissions),
	}
}

func TestStaffAccess_ByGateway(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: append(disableLock(), "STAFF_AUTH=gateway")}, 1)
	const (
		see    = `"circulation.check-out-lock-settings.item.get"`
		change = `"circulation.check-out-lock-settings.item.put"`
		locks  = `"circulation.check-out-locks.collection.get"`
	)
	own := p.Storage.Tenant
	refused := func(tab *browser.Page, page, why string) {
		t.Helper()
		tab.Goto(p.staffURL(0, page))
		tab.See(why)
		if tab.Status() != http.StatusForbidden {
			t.Errorf("%s has status %d, want 403", page, tab.Status())
		}
	}

	reader := p.openStaffPage(t, 0, gatewayOptions(own, "["+see+","+locks+"]")...)
	reader.See("The lock is off")
	reader.See("You may look at this, but not change it.")
	reader.Gone("Turn on")
	pages := reader.In("Pages")
	pages.See("On / off Timing Locks now")
	pages.Gone("Check-out history")
	reader.Click("Timing")
	reader.See("You may look at this, but not change it.")
	reader.Gone("Save the times")
	reader.Click("Locks now")
	reader.See("Live Refresh")
	refused(reader, "/switch?to=on", "Access requires permission: circulation.check-out-lock-settings.item.put")
	refused(reader, "/check-outs", "Access requires permission: circulation.check-out-history.collection.get")

	changer := p.openStaffPage(t, 0, gatewayOptions(own, "["+see+","+change+"]")...)
	turnLock(changer, "on", "The new self-checks open today")

	refused(p.openStaffPage(t, 0, gatewayOptions("elsewhere", "["+see+"]")...), "/",
		"You are signed in to the library elsewhere, not to "+own)
	refused(p.openStaffPage(t, 0), "/", "The gateway in front sent no X-Okapi-Tenant, so your permissions are not known.")
}

// On plain HTTP, a browser sends Sec-Fetch-Site only to the machine on which it runs.
func TestStaffAccess_OverPlainHTTP(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: append(disableLock(), requirePassword()...)}, 1)
	p.Circulations[0] = strings.Replace(p.Circulations[0], "127.0.0.1", browser.FarHost, 1)
	tab := p.openStaffPage(t, 0, browser.BasicAuth(clerk, clerkPassword))
	tab.ExpectError("The Cross-Origin-Opener-Policy header has been ignored") // the header protects only trusted origins
	tab.See("Signed in as " + clerk)
	turnLock(tab, "on", "The front desk has no certificate")
	tab.Click("Timing")
	tab.Fill(ttlLabel, "4000")
	tab.Fill("Reason", "Slow gates")
	tab.Click("Save the times")
	tab.See("The new times are saved.")
}

// A proxy that puts a prefix before the paths needs to rewrite no page.
func TestStaffAccess_BehindAPrefix(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: disableLock()}, 1)
	target, err := url.Parse(p.Circulations[0])
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	proxy := httptest.NewServer(http.StripPrefix("/library", pass))
	t.Cleanup(proxy.Close)
	tab := p.openStaffPage(t, 0)
	tab.Goto(proxy.URL + "/library/")
	tab.Fill("Library's id", strings.ToUpper(p.Storage.Tenant))
	tab.Click("Continue")
	tab.See("The lock is off")
	turnLock(tab, "on", "The pages have a prefix")
	if got := tab.Attribute(".note:focus", "role"); got != "status" { // after each action
		t.Errorf("the focus is on the role %q, want the note", got)
	}
	for _, page := range []string{
		"Timing", "Locks now", "Check-out history", "Waiting times", "Try a check-out", "On / off",
	} {
		tab.Click(page)
		tab.See(page)
	}
	userID, _ := p.addPatron(t)
	p.acquireLock(t, userID, outlastsTests)
	tab.Click("Locks now")
	tab.In(maskID(userID)).Click("Release …") // also in a row that the stream sends
	tab.Fill("Reason", "It stays for too long")
	tab.Click("Release the lock")
	tab.See("The lock was released.")
	if !strings.HasPrefix(tab.URL(), proxy.URL+"/library/staff/") {
		t.Errorf("the pages led to %s", tab.URL())
	}
}
