package integration_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/okapi"
)

// A browser reaches the pages behind a gateway through HAProxy, which turns FOLIO's cookie into
// headers.
func TestStaffAccess_ByACookieBehindAGateway(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	address := "127.0.0.1:" + strconv.Itoa(findFreePort(t))
	runHAProxy(t, "../deploy/staff-pages.cfg", map[string]string{
		"bind :9800": "bind " + address, " gateway:9130": " " + hostOf(p.gateway.URL()),
		" circulation:9801": " " + hostOf(p.Circulations[0]),
	})
	pages := "/staff/" + p.Storage.Tenant
	stranger := stack.Client{Base: "http://" + address, Header: http.Header{
		okapi.TenantHeader:      {p.Storage.Tenant},
		okapi.PermissionsHeader: {`["circulation.check-out-lock-settings.item.get"]`},
		okapi.TokenHeader:       {p.gateway.AddUser(p.Storage.Tenant, uuid.NewString(), "circulation.all")},
	}, HTTP: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	ask := func(path string) (a stack.Answer) {
		t.Helper()
		waitUntil(t, patience, "HAProxy answers", func() bool {
			var err error
			a, err = stranger.Do(t.Context(), http.MethodGet, path, nil)
			return err == nil
		})
		return a
	}
	if a := ask(pages + "/"); a.Status != http.StatusSeeOther || a.Header.Get("Location") != "https://folio.example.org/" {
		t.Errorf("with headers, but without a cookie, the page is %d %s", a.Status, a.Body)
	}
	for _, path := range []string{"/circulation/loans", "/admin/health", "/staff/../circulation/loans", "/staff/%2e%2e"} {
		if a := ask(path); a.Status != http.StatusNotFound {
			t.Errorf("%s is %d %s, want 404", path, a.Status, a.Body)
		}
	}

	const see, change = "circulation.check-out-lock-settings.item.get", "circulation.check-out-lock-settings.item.put"
	open := func(permissions ...string) *browser.Page {
		token := p.gateway.AddUser(p.Storage.Tenant, uuid.NewString(), append(permissions,
			"circulation-storage.all", "circulation-storage-checkoutlock.all")...)
		url := "http://" + address + pages + "/"
		tab := chromium.Open(t, browser.Cookie(url, "folioAccessToken", token))
		tab.Goto(url)
		return tab
	}
	reader := open(see)
	reader.See("You may look at this, but not change it.")
	changer := open(see, change)
	turnLock(changer, "off", "The new self-checks open today")
}
