package integration_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

// The rows with counts in the page's tables.
var (
	countsRow = regexp.MustCompile(`\d\d:\d\d (\d+) (\d+) (\d+)`)
	waitsRow  = regexp.MustCompile(`\d\d:\d\d (\d+)`)
)

func TestStaffContention(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: enableLock("LOCK_TTL_MS=60000")}, 2)
	_, patron := p.addPatron(t)
	var burst []stack.CheckOut
	for _, book := range p.addBooks(t, 7) {
		burst = append(burst, p.newCheckOut(book, patron))
	}
	burst = append(burst, p.newCheckOut(burst[0].ItemBarcode, "P-unknown"))
	sent := stack.Summarize(stack.SendBurst(t.Context(), p.machines, burst))
	if sent.Lent != 2 || sent.Refused["ITEM_LIMIT_MATERIAL_TYPE"] != 5 || sent.Failed != 0 {
		t.Fatalf("the burst ended in %+v", sent)
	}

	tab := p.openStaffPage(t, 1)
	tab.Click("Waiting times")
	figures := tab.In("Figures of the last hour")
	figures.See("Check-outs waiting now 0 Locks held now 0 Check-outs 8 Lent 2")
	figures.See("8 check-outs in the last hour, 2 lent and 6 not.")
	figures.See("6 check-outs were not lent in the last hour. Most often: Limit reached")

	tab.Click("Check-outs a minute as a table")
	if got, want := sumRows(tab, "count-rows", countsRow), []int{8, 2, 6}; !slices.Equal(got, want) {
		t.Errorf("the minutes' check-outs, lent and not lent are %v in all, want %v", got, want)
	}
	tab.In("ITEM_LIMIT_MATERIAL_TYPE").See("5", "Patron has reached maximum limit of 2 items for material type")
	tab.Gone(patron)
	// A check-out that finds the limit reached before the lock does not ask for it.
	now := readObject(t, callEndpoint(t, p.machines[1], http.MethodGet, "/circulation/check-out-figures?minutes=60", nil),
		http.StatusOK)
	locked := readPart(now, "total.locked").(float64)
	figures.See(fmt.Sprintf("%v check-outs asked for a lock in the last hour", locked))
	tab.Click("Waits for a lock as a table")
	if got := sumRows(tab, "wait-rows", waitsRow)[0]; locked < 2 || locked > 7 || got != int(locked) {
		t.Errorf("%d check-outs of the table and %v of the figures asked for a lock, want the same number from 2 to 7", got,
			locked)
	}

	// The open page shows new check-outs without a reload.
	id, other := p.addPatron(t)
	held := p.acquireLock(t, id, outlastsTests)
	later := p.startLending(t.Context(), t, 0, p.addBooks(t, 1)[0], other)
	figures.See("Check-outs waiting now 1 Locks held now 1")
	p.releaseLock(t, held)
	if a := later.awaitAnswer(); a.Status != http.StatusCreated {
		t.Errorf("the check-out after the burst was answered %d %s", a.Status, a.Body)
	}
	figures.See("Check-outs waiting now 0 Locks held now 0 Check-outs 9 Lent 3")
	if got, want := sumRows(tab, "count-rows", countsRow), []int{9, 3, 6}; !slices.Equal(got, want) {
		t.Errorf("then the minutes' check-outs, lent and not lent are %v in all, want %v", got, want)
	}
}

// The charts of longer times need no script, mark when the lock was turned, and lead to the rows of a cause.
func TestStaffContention_LongerTimes(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: disableLock()}, 1)
	tab := p.openStaffPage(t, 0, browser.WithoutScript(), browser.Size(390, 844))
	turnLock(tab, "on", "The new self-checks open today")
	_, patron := p.addPatron(t)
	books := p.addBooks(t, 2)
	readObject(t, p.lendBook(t, 0, books[0], patron), http.StatusCreated)
	readRefusals(t, p.lendBook(t, 0, books[1], patron), http.StatusUnprocessableEntity)
	p.waitForHistory(t, 0, books[1])
	for _, span := range []struct{ link, words, each string }{
		{link: "24 hours", words: "last 24 hours", each: "Check-outs in 15 minutes"},
		{link: "7 days", words: "last 7 days", each: "Check-outs an hour"},
		{link: "30 days", words: "last 30 days", each: "Check-outs in 4 hours"},
	} {
		tab.Click("Waiting times")
		tab.Click(span.link)
		tab.See("2 check-outs in the "+span.words+", 1 lent and 1 not.", span.each, ": on, by")
		tab.CheckNear("[data-live=counts] rect.bar")
		tab.CheckWidth()
	}
	tab.Select("Service point", "Desk")
	tab.Click("Show")
	tab.See("2 check-outs in the last 30 days")
	tab.Click("Limit reached: Patron has reached maximum limit of 1 items for material type")
	tab.In(books[1]).See("Limit reached")
	tab.See("1 check-out.")
	tab.Gone(books[0])
}

// sumRows adds up the numbers that the expression matches in the rows of a part of the
// page.
func sumRows(tab *browser.Page, part string, row *regexp.Regexp) []int {
	total := make([]int, row.NumSubexp())
	for _, found := range row.FindAllStringSubmatch(tab.Text("[data-live="+part+"]"), -1) {
		for i, number := range found[1:] {
			n, _ := strconv.Atoi(number) // the expression matches digits only
			total[i] += n
		}
	}
	return total
}
