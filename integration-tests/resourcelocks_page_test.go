package integration_test

import (
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"checkoutlock/devpostgres/testserver"
	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

func TestResourceLocksPage(t *testing.T) {
	t.Parallel()
	locks, err := stack.StartResourceLocks(t.Context(), testserver.Start(t, nil).URL(), []string{
		"SUNBIRD_ADDR=127.0.0.1:0", "SUNBIRD_AUTH=header", "SUNBIRD_LOCK_TTL=1h", "SUNBIRD_ADMINS=ann",
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locks.Stop(); err != nil {
			t.Error(err)
		}
	})
	sunbird := stack.Client{Base: locks.URL("sunbird"), Header: http.Header{
		"X-Authenticated-Userid": {"ann"}, "X-Device-Id": {"desk"},
	}}
	create := func(content string) {
		t.Helper()
		a := callEndpoint(t, sunbird, http.MethodPost, "/v1/lock/create", record{"request": record{
			"resourceId": content, "resourceType": "Content", "resourceInfo": "{}", "createdBy": "ann",
			"creatorInfo": `{"name":"Ann"}`,
		}})
		readObject(t, a, http.StatusOK)
	}
	create("do_1")
	for _, width := range []int{390, 1280} {
		tab := chromium.Open(t, browser.Size(width, 844))
		tab.Goto(locks.URL("operators") + "/locks/")
		tab.See("do_1 Content under edit (Sunbird) ann")
		for _, answer := range []string{"tbody td.id", "tbody a[href*=release]"} {
			tab.CheckNear(answer)
		}
		tab.CheckAxe()
		tab.CheckWidth()
		tab.Screenshot("resource-locks-" + strconv.Itoa(width))
		tab.Click("Details")
		tab.See("Fence 1")
	}
	tab := chromium.Open(t)
	tab.Goto(locks.URL("operators") + "/locks/")
	tab.Select("Kind of lock", "Drafts (mutex)")
	tab.Click("Filter")
	tab.See("No lock is like this now.")
	tab.Click("Show all")
	tab.Fill("Name or owner", "DO_2")
	tab.Click("Filter")
	tab.See("No lock is like this now.")
	create("do_2")
	tab.See("do_2 Content under edit (Sunbird) ann")
	tab.Click("Details")
	tab.Click("Pause")
	create("do_22")
	tab.Click("Go on") // takes the focus away from the details, which stay open
	tab.See("do_22 Content under edit (Sunbird) ann")
	tab.See("Fence 2")

	long := strings.Repeat("x", 200)
	create(long)
	readObject(t, callEndpoint(t, sunbird, http.MethodDelete, "/v1/lock/force", record{"request": record{
		"resourceId": long, "resourceType": "Content", "reason": long,
	}}), http.StatusOK)
	phone := chromium.Open(t, browser.Size(390, 844))
	phone.Goto(locks.URL("operators") + "/locks/")
	phone.See(long)
	phone.CheckWidth()
}
