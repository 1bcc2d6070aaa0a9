package integration_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

func TestStaffSignIn(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: append(disableLock(), requirePassword()...)}, 1)
	tab := chromium.Open(t)
	tab.Goto(p.staffURL(0, "/timing"))
	tab.See("Sign in", "Your name", "Password")
	tab.Gone("Timing")
	tab.CheckAxe()
	tab.CheckWidth()
	tab.Fill("Your name", clerk)
	tab.Fill("Password", "wrong horse battery")
	tab.Click("Sign in")
	tab.See("The password is wrong")
	if tab.Status() != http.StatusUnprocessableEntity || tab.Find("Your name").Value != clerk {
		t.Errorf("status %d, the name is %q", tab.Status(), tab.Find("Your name").Value)
	}
	tab.CheckAxe()
	tab.Fill("Password", clerkPassword)
	tab.Press("Enter")
	tab.See("Signed in as "+clerk, "Sign out", "Save the times")
	if tab.URL() != p.staffURL(0, "/timing") {
		t.Errorf("the sign-in leads to %s", tab.URL())
	}
	tab.Goto(p.staffURL(1, "/")) // browsers send cookies to all ports of a host
	tab.See("Signed in as " + clerk)
	turnLock(tab, "on", "The new self-checks open today")
	tab.In("The new self-checks open today").See(clerk + " Lock: on")

	tab.Click("Sign out")
	tab.See("You are signed out")
	for i := range p.Circulations {
		tab.Goto(p.staffURL(i, "/locks"))
		tab.See("Your name", "Password")
	}
}

// A person who is signed out while a form is open sees no sign-in inside the page.
func TestStaffSignIn_IsNotShownInsideAPage(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: append(disableLock(), requirePassword()...)}, 1)
	to, err := url.Parse(p.Circulations[0])
	if err != nil {
		t.Fatal(err)
	}
	var signedOut atomic.Bool
	refused := make(chan struct{}, 10)
	desk := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
			if signedOut.Load() {
				r.Out.Header.Del("Cookie")
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if signedOut.Load() {
				refused <- struct{}{}
			}
			return nil
		},
	})
	t.Cleanup(desk.Close)
	tab := chromium.Open(t)
	tab.Goto(desk.URL + "/staff/" + p.Storage.Tenant + "/timing")
	tab.Fill("Your name", clerk)
	tab.Fill("Password", clerkPassword)
	tab.Click("Sign in")
	sums := tab.In("What the times in the form mean")
	tab.Fill(ttlLabel, "8 s")
	sums.See("its patron waits at most 8 s")
	signedOut.Store(true)
	tab.ExpectError("401")
	tab.Fill(ttlLabel, "9 s")
	select {
	case <-refused:
	case <-time.After(time.Minute):
		t.Fatal("the page asks for no sums")
	}
	sums.See("its patron waits at most 8 s")
	tab.Gone("Your name")
	signedOut.Store(false)
	tab.Fill(ttlLabel, "10 s")
	sums.See("its patron waits at most 10 s")

	// A form that is sent then says how to send it again, and what was typed is still there.
	tab.Goto(desk.URL + "/staff/" + p.Storage.Tenant + "/switch?to=on")
	tab.Fill("Reason", "Exam week")
	signedOut.Store(true)
	tab.Click("Turn on")
	tab.See("Nothing was changed: sign in in another tab first, then go back in this one")
	signedOut.Store(false) // as after that
	tab.Back()
	tab.Click("Turn on")
	tab.See("The check-out lock is on now.", "Exam week")
}

func TestStaffSignIn_WithoutScriptOnAPhone(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: append(disableLock(), requirePassword()...)}, 1)
	tab := p.openStaffPage(t, 0, browser.WithoutScript(), browser.Size(390, 800))
	name := strings.Repeat("ann", 20) + "@library.test"
	tab.Fill("Your name", name)
	tab.Fill("Password", clerkPassword)
	tab.Click("Sign in")
	tab.See("Signed in as " + name)
	tab.CheckWidth()
	tab.Click("Sign out")
	tab.See("You are signed out")
	tab.CheckWidth()
}
