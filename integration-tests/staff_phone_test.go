package integration_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

// What a page is for lies on the first two screens of a phone, a tablet and a desk.
func TestStaffPages_ShowAnswersFirst(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock("RETRY_INTERVAL_MS=300", "LOCK_TTL_MS=600000")}, 1)
	_, patron := p.addPatron(t)
	stuckID, stuck := p.addPatron(t)
	books := p.addBooks(t, 3)
	readObject(t, p.lendBook(t, 0, books[0], patron), http.StatusCreated)
	readRefusals(t, p.lendBook(t, 0, books[1], patron), http.StatusUnprocessableEntity)
	p.acquireLock(t, stuckID, outlastsTests)
	if !isRefusedForLock(t, p.lendBook(t, 0, books[2], stuck)) {
		t.Fatal("a check-out acquired a held lock")
	}
	for _, book := range books {
		p.waitForHistory(t, 0, book)
	}
	const firstRow = "tbody tr:first-child "
	for _, width := range []int{390, 640, 1280} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			tab := p.openStaffPage(t, 0, browser.Size(width, 844))
			for page, answers := range map[string][]string{
				"/check-outs": {firstRow + ".badge", firstRow + ".prose", firstRow + "time", `nav a[aria-current="page"]`},
				"/locks":      {firstRow + ".patron", firstRow + "a[href*=release]", firstRow + ".number"},
				"/contention": {"[data-live=counts] rect.bar", `nav a[aria-current="page"]`},
			} {
				tab.Goto(p.staffURL(0, page))
				for _, answer := range answers {
					tab.CheckNear(answer)
				}
			}
		})
	}
}

// German, Spanish and longer texts fit a phone.
func TestStaffPages_FitAPhoneInEachLanguage(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock("LOCK_TTL_MS=250")}, 1)
	userID, _ := p.addPatron(t)
	lock := p.acquireLock(t, userID, outlastsTests) // its state is the longest one
	for language, tab := range map[string]string{"de": "Sperren jetzt", "es": "Cerrojos ahora", "en-XA": "⟦Lóócks nóów⟧"} {
		t.Run(language, func(t *testing.T) {
			phone := p.openStaffPage(t, 0, browser.Size(320, 844))
			phone.Goto(p.staffURL(0, "/?language="+language))
			for _, page := range []string{
				"/", "/switch?to=off", "/timing", "/locks", "/contention", "/try", "/machines", "/rules", "/drill",
				"/locks/" + lock + "/release", "/check-outs", "/check-outs?around=" + strings.Repeat("M", 60),
			} {
				phone.Goto(p.staffURL(0, page))
				phone.CheckWidth()
				if got := phone.Attribute("html", "lang"); got != language {
					t.Errorf("%s is in %s, want %s", page, got, language)
				}
				phone.See(tab)
			}
		})
	}
}
