package integration_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"checkoutlock/integration-tests/stack"
)

// A link in a mail or on another site must not make forms worthless that are open
// in other tabs.
func TestStaffForm_AfterALinkFromAnotherSite(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: disableLock()}, 1)
	tab := p.openStaffPage(t, 0)
	tab.Click("Turn on …")
	form := tab.URL()
	token := tab.Attribute("input[name=token]", "value")

	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `<!DOCTYPE html><html lang="en"><title>A mail</title><p>Look at <a href="%s">the lock</a>`, form)
	}))
	t.Cleanup(elsewhere.Close)
	tab.Goto(strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)) // another site than 127.0.0.1
	tab.Click("the lock")
	tab.See("Turn the check-out lock on?")
	if got := tab.Attribute("input[name=token]", "value"); got != token || token == "" {
		t.Errorf("the token is %q, that of the form which is open is %q", got, token)
	}
}
