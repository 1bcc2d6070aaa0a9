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
// half a second; the rest suits slow hosts.
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

func TestStaffHistory_NamesMachines(t *testing.T) {
	t.Parallel()
	p, newMachine := startSIPPair(t, 9)
	_, patron := p.addPatron(t)
	books := p.addBooks(t, 2)
	newMachine().ask(newSIPCheckOut(patron, books[0]))
	p.lendAs(t, books[1], patron, nil)
	for i, want := range []string{"desk-1", "127.0.0.1"} {
		p.waitForHistory(t, 0, books[i])
		a := callEndpoint(t, p.machines[0], http.MethodGet, "/circulation/check-out-history?itemBarcode="+books[i], nil)
		past, _ := readObject(t, a, http.StatusOK)["checkOuts"].([]any)[0].(record)
		if past["machine"] != want {
			t.Errorf("the history has %v, want the machine %s", past, want)
		}
	}
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
	p.acquireLock(t, stuckID, outlastsTests)
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
		if o.Code == "LOCK_NOT_ACQUIRED" { // the wait may be too short on a slow host
			row.See("Busy, try again", "LOCK_NOT_ACQUIRED")
			continue
		}
		row.See("Limit reached", "Patron has reached maximum limit of 1 items for material type", "ITEM_LIMIT_MATERIAL_TYPE")
	}
	if lent != 1 {
		t.Errorf("%d were lent, want the limit of 1", lent)
	}

	find("Patron", strings.ToUpper(stuck)) // case does not matter
	row := tab.In(books[4])
	row.See("Busy, try again", "Another check-out of this patron was under way", "unable to acquire lock",
		"LOCK_NOT_ACQUIRED", maskID(stuck))
	tab.Gone(books[0])
	checkWaited(t, row)
	checkDate(t, row, began, ended)

	find("Patron", stranger)
	tab.See("There is no such patron: " + stranger + ". The check-outs below named it.")
	tab.In(books[5]).See("Refused", "Could not find user with matching barcode", maskID(stranger))

	find("Patron", greedy)
	for _, book := range books[:4] {
		tab.See(book)
	}
	tab.See("Reader, " + greedy) // the name that was searched for
	for _, hidden := range []string{greedyID, stuck} {
		tab.Gone(hidden)
	}
	tab.In(books[0]).Gone(greedy)
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
	ended := time.Now()

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
	tab.See("No check-outs match.")
	tab.Click("Today")
	tab.In(book).See("Lent")
	search(began.Add(-time.Minute), ended.Add(time.Minute))
	tab.In(book).See("Lent")
	search(began.Add(-time.Hour), began.Add(-2*time.Minute))
	tab.See("No check-outs match.")
	search(ended.Add(time.Minute), ended.Add(time.Hour))
	tab.See("No check-outs match.")
	search(began.Add(time.Minute), began.Add(-time.Minute))
	if e := tab.FindField("Until" + zone); !e.Invalid ||
		!strings.Contains(e.Description, "This is before the time in From") {
		t.Errorf("the field is %+v, want the message at it", e)
	}
	tab.In("Check-outs").Click("Show all")
	tab.In(book).See("Lent")
}

// Staff who know a name find what happened, and go on from each row.
func TestStaffHistory_AnswersWhyByName(t *testing.T) {
	t.Parallel()
	p := startDemo(t)
	p.changeSettings(t, 0, record{"enabled": true, "reason": "self-checks"})
	for _, dvd := range []string{"D-2001", "D-2002", "D-2003", "D-2004"} { // one too many
		p.lendBook(t, 0, dvd, "P-1001")
		p.waitForHistory(t, 0, dvd) // a report that takes longer would date it after the next one
	}
	tab := p.openStaffPage(t, 0, browser.Size(1280, 844), browser.BasicAuth(clerk, clerkPassword))
	find := func(text string) {
		tab.Click("Check-out history")
		tab.Fill("Patron", text)
		tab.Click("Search")
	}
	for _, text := range []string{"P-1001", "lindqvist", "amara lind"} {
		find(text)
		tab.See("Lindqvist-Osei, Amara", "4 check-outs.")
		tab.In("D-2004").See("Limit reached", "Tin roof", "Front desk", "****01")
	}
	tab.In("D-2004").Click("Try it again")
	tab.See("Would be refused", "Lindqvist-Osei, Amara", "3 of 3 loans")

	find("Amarra Lindqvist") // with a typing error
	tab.See("There is no such patron: Amarra Lindqvist.", "Did you mean", "No check-outs match.")
	tab.Click("Lindqvist-Osei, Amara")
	tab.See("4 check-outs.")
	find("P-1003")
	tab.See("No check-outs match, but there is such a patron.")
	find("Zacharias")
	tab.See("There is no such patron: Zacharias.")
	tab.Gone("Did you mean")

	tab.Click("Show all")
	tab.Click("Show the patrons")
	tab.In("D-2001").Click("P-1001")
	tab.See("Lindqvist-Osei, Amara", "4 check-outs.")
	tab.In("D-2001").Click("D-2001")
	tab.See("Item is already checked out")

	tab.Goto(p.staffURL(0, "/check-outs"))
	tab.Press("Tab", "Enter", "Tab", "Tab", "Tab", "Tab") // skip, then: CSV, patrons, the table, the first row
	checkFocus(t, tab, "D-2004")
}

// nameZone names this host's time zone as labels do: with the names of winter and
// summer.
func nameZone(year int) string {
	winter := time.Date(year, time.January, 1, 0, 0, 0, 0, time.Local).Format("MST")
	if summer := time.Date(year, time.July, 1, 0, 0, 0, 0, time.Local).Format("MST"); summer != winter {
		return winter + "/" + summer
	}
	return winter
}
