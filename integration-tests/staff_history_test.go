package integration_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

// historyLimit is the longest wait for a check-out in the history. Reports are sent after
// half a second; the rest suits slow machines.
const historyLimit = 20 * time.Second

// waitForHistory waits until circulation instance i lists a check-out of the book.
func (p *pair) waitForHistory(t *testing.T, i int, book string) {
	t.Helper()
	waitUntil(t, historyLimit, "the history lists "+book, func() bool {
		a := callEndpoint(t, p.machines[i], http.MethodGet, "/circulation/check-out-history?itemBarcode="+
			url.QueryEscape(book), nil)
		list, _ := readObject(t, a, http.StatusOK)["checkOuts"].([]any)
		return len(list) > 0
	})
}

// lockWait is how long a check-out waits for a held lock in the tests of the history.
const lockWait = 300 * time.Millisecond

func TestStaffHistory_ShowsCauses(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{
		Circulations: 2, CirculationEnv: enableLock("RETRY_INTERVAL_MS=300", "LOCK_TTL_MS=600000"),
	}, 1)
	greedyID, greedy := p.addPatron(t)
	stuckID, stuck := p.addPatron(t)
	books := p.addBooks(t, 6)
	began := time.Now()

	// The check-outs: a burst of four through both instances, one with a held lock, and one of
	// an unknown patron.
	checkOuts := make([]stack.CheckOut, 4)
	for i := range checkOuts {
		checkOuts[i] = p.newCheckOut(books[i], greedy)
	}
	outcomes := stack.SendBurst(t.Context(), p.machines, checkOuts)
	p.acquireLock(t, stuckID, 10*time.Minute)
	if !isRefusedForLock(t, p.lendBook(t, 0, books[4], stuck)) {
		t.Fatal("a check-out acquired a held lock")
	}
	const stranger = "u-unknown-reader"
	readRefusals(t, p.lendBook(t, 1, books[5], stranger), http.StatusUnprocessableEntity)

	ended := time.Now()
	for _, book := range books {
		p.waitForHistory(t, 0, book)
	}
	tab := p.openStaffPage(t, 0)
	tab.Click("Check-out history")
	find := func(label, barcode string) {
		tab.Click("Check-out history") // resets the filters
		tab.Fill(label, barcode)
		tab.Click("Search")
	}
	lent := 0
	for i, o := range outcomes {
		find("Item's barcode", books[i])
		row := tab.In(books[i])
		row.Click(row.Text("summary")) // unfolds details for operators
		row.See(maskID(greedy), []string{"Instance circulation-1", "Instance circulation-2"}[i%2])
		if o.Lent() {
			lent++
			row.See("Lent", "Loan")
			continue
		}
		if o.Code == "LOCK_NOT_ACQUIRED" { // the wait may be too short on a slow machine
			row.See("Had to wait too long", "LOCK_NOT_ACQUIRED")
			continue
		}
		row.See("Limit reached", "Patron has reached maximum limit of 1 items for material type", "ITEM_LIMIT_MATERIAL_TYPE")
	}
	if lent != 1 {
		t.Errorf("%d were lent, want the limit of 1", lent)
	}

	find("Patron's barcode", strings.ToUpper(stuck)) // case does not matter
	row := tab.In(books[4])
	row.See("Had to wait too long", "Another check-out of this patron was under way", "unable to acquire lock",
		"LOCK_NOT_ACQUIRED", maskID(stuck))
	tab.Gone(books[0])
	checkWaited(t, row)
	checkDate(t, row, began, ended)

	find("Patron's barcode", stranger)
	tab.In(books[5]).See("Refused", "Could not find user with matching barcode", maskID(stranger))

	find("Patron's barcode", greedy)
	for _, book := range books[:4] {
		tab.See(book)
	}
	for _, hidden := range []string{greedy, greedyID, stuck} {
		tab.Gone(hidden)
	}
	tab.Click("Show the patrons")
	tab.In(books[0]).See(greedy)
	tab.Gone(books[4]) // the filter stays
}

// checkWaited fails the test unless the row's check-out waited for its lock, and took at
// least that long.
func checkWaited(t *testing.T, row *browser.Page) {
	t.Helper()
	read := func(column string) time.Duration {
		t.Helper()
		d, err := time.ParseDuration(strings.ReplaceAll(row.Text("td:nth-child("+column+")"), " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if wait, took := read("6"), read("7"); wait < lockWait || wait > took {
		t.Errorf("it waited %s and took %s, want at least %s for both and no wait above the total", wait, took, lockWait)
	}
}

// checkDate fails the test unless the row's check-out ended between the two times, with
// the precision of a second.
func checkDate(t *testing.T, row *browser.Page, from, until time.Time) {
	t.Helper()
	date := row.Attribute("time", "datetime")
	at, err := time.Parse(time.RFC3339, date)
	if err != nil || at.Before(from.Truncate(time.Second)) || at.After(until) {
		t.Errorf("it ended at %s (%v), want a time from %s to %s", date, err, from, until)
	}
	if shown := row.Text("time"); shown != at.Local().Format("2 Jan 2006, 15:04:05 MST") {
		t.Errorf("the page shows %s as %q", date, shown)
	}
}

func TestStaffHistory_SearchByTime(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 1)
	_, patron := p.addPatron(t)
	book := p.addBooks(t, 1)[0]
	tab := p.openStaffPage(t, 0)
	tab.Click("Check-out history")
	tab.See("No check-out has ended yet, or all are too old to be kept.")
	began := time.Now()
	readObject(t, p.lendBook(t, 0, book, patron), http.StatusCreated)
	p.waitForHistory(t, 0, book)

	const local = "2006-01-02T15:04"
	zone := " (" + nameZone(began.Year()) + ")"
	search := func(from, until time.Time) {
		tab.Fill("From"+zone, from.Format(local))
		tab.Fill("Until"+zone, until.Format(local))
		tab.Click("Search")
	}
	tab.Fill("Around"+zone, began.Format("15:04"))
	tab.Click("Search")
	tab.In(book).See("Lent")
	tab.Click("Yesterday")
	tab.See("No check-out that is kept was like this.")
	tab.Click("Today")
	tab.In(book).See("Lent")
	search(began.Add(-time.Minute), began.Add(time.Minute))
	tab.In(book).See("Lent")
	search(began.Add(-time.Hour), began.Add(-2*time.Minute))
	tab.See("No check-out that is kept was like this.")
	search(began.Add(time.Minute), began.Add(time.Hour))
	tab.See("No check-out that is kept was like this.")
	search(began.Add(time.Minute), began.Add(-time.Minute))
	if e := tab.FindField("Until" + zone); !e.Invalid ||
		!strings.Contains(e.Description, "This is before the time in From") {
		t.Errorf("the field is %+v, want the message at it", e)
	}
	tab.In("Check-outs").Click("Show all")
	tab.In(book).See("Lent")
}

// nameZone names this machine's time zone as labels do: with the names of winter and
// summer.
func nameZone(year int) string {
	winter := time.Date(year, time.January, 1, 0, 0, 0, 0, time.Local).Format("MST")
	if summer := time.Date(year, time.July, 1, 0, 0, 0, 0, time.Local).Format("MST"); summer != winter {
		return winter + "/" + summer
	}
	return winter
}
