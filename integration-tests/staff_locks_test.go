package integration_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

// acquireLockAs acquires a patron's lock for a holder and, if it is not empty, an
// X-Okapi-Request-Id. It returns the lock's id.
func (p *pair) acquireLockAs(t *testing.T, userID, holder, requestID string, ttl time.Duration) string {
	t.Helper()
	c := p.Storage
	c.Header = http.Header{"X-Lock-Holder": {holder}}
	if requestID != "" {
		c.Header.Set("X-Okapi-Request-Id", requestID)
	}
	a := callEndpoint(t, c, http.MethodPost, acquirePath, record{"userId": userID, "ttlMs": ttl.Milliseconds()})
	return readObject(t, a, http.StatusCreated)["id"].(string)
}

// maskID returns a patron's id or barcode as pages show it by default.
func maskID(id string) string { return "****" + id[len(id)-4:] }

// lockRow returns the CSS selector of a lock's row.
func lockRow(id string) string { return "tr[id='lock-" + id + "'] " }

// waitForTicks waits until the page has updated the age of a lock n times.
func waitForTicks(t *testing.T, tab *browser.Page, id string, n int) {
	t.Helper()
	age := func() string { return tab.Text(lockRow(id) + "td:nth-child(3)") }
	for range n {
		was := age()
		waitUntil(t, patience, "the age of the lock changes", func() bool { return age() != was })
	}
}

// readBar returns the value of the bar in a lock's row, in milliseconds.
func readBar(t *testing.T, tab *browser.Page, id string) int {
	t.Helper()
	n, err := strconv.Atoi(tab.Attribute(lockRow(id)+"progress", "value"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestStaffLocks_ComeAndGo(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock("LOCK_TTL_MS=600000")}, 1)
	userID, _ := p.addPatron(t)
	requestID := uuid.NewString()
	tab := p.openStaffPage(t, 0)
	tab.Click("Locks now")
	tab.See("No lock is held now.", "That is normal", "No locks", "Pause Live Refresh")
	tab.Fill("Held by (an instance)", "half typed") // a reload would empty the field

	id := p.acquireLockAs(t, userID, "self-check-3", requestID, outlastsTests)
	row := tab.In(maskID(userID))
	row.See("Held", "self-check-3", requestID[:8], id[:8])
	tab.See("1 lock held")
	tab.Gone("No lock is held now.")
	tab.Gone(userID)
	before := readBar(t, tab, id)
	waitForTicks(t, tab, id, 2)
	if after := readBar(t, tab, id); after >= before || before > int(outlastsTests.Milliseconds()) {
		t.Errorf("the bar went from %d to %d, want a lower value and at most %d", before, after, outlastsTests.Milliseconds())
	}

	p.releaseLock(t, id)
	tab.Gone(maskID(userID))
	tab.See("No lock is held now.", "No locks")

	dead := p.acquireLockAs(t, userID, "self-check-4", "", 200*time.Millisecond)
	tab.Gone(maskID(userID))
	tab.See("No lock is held now.")
	if got := tab.Find("Held by (an instance)").Value; got != "half typed" {
		t.Errorf("the field has %q, want what was typed", got)
	}
	tab.Fill("Held by (an instance)", "")
	tab.Select("State", "held and expired")
	tab.Click("Filter")
	tab.In(maskID(userID)).See("Expired – blocks no check-out", "none")
	tab.See("0 locks held, 1 expired")
	if n := readBar(t, tab, dead); n != 0 {
		t.Errorf("the bar of the expired lock shows %d ms", n)
	}
}

func TestStaffLocks_Pause(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 1)
	first, second := uuid.NewString(), uuid.NewString()
	id := p.acquireLockAs(t, first, "self-check-3", "", outlastsTests)
	paused, watched := p.openStaffPage(t, 0), p.openStaffPage(t, 0)
	for _, tab := range []*browser.Page{paused, watched} {
		tab.Click("Locks now")
		tab.See(maskID(first), "Pause Live Refresh")
	}
	paused.Click("Pause")
	paused.See("Go on Paused Refresh")
	age := paused.Text(lockRow(id) + "td:nth-child(3)")
	p.acquireLockAs(t, second, "self-check-4", "", outlastsTests)
	watched.See(maskID(second))
	waitForTicks(t, watched, id, 2)
	if got := paused.Text(lockRow(id) + "td:nth-child(3)"); got != age ||
		strings.Contains(paused.Text("main"), maskID(second)) {
		t.Errorf("the age went from %s to %s on a paused page: %s", age, got, paused.Text("main"))
	}
	paused.Click("Go on")
	paused.See(maskID(second), "Pause Live Refresh", "2 locks held")
	waitForTicks(t, paused, id, 1)
	paused.Find("Pause")
}

func TestStaffLocks_Filter(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 1)
	stuck, barcode := p.addPatron(t)
	other, otherBarcode := p.addPatron(t)
	p.acquireLockAs(t, stuck, "self-check-3", "", 100*time.Millisecond)
	p.acquireLockAs(t, other, "self-check-4", "", outlastsTests)
	tab := p.openStaffPage(t, 0)
	tab.Click("Locks now")
	tab.See(maskID(other), "1 lock held")
	tab.Gone(maskID(stuck)) // its lock is expired
	tab.Select("State", "held and expired")
	tab.Click("Filter")
	tab.See(maskID(stuck), maskID(other), "1 lock held, 1 expired")
	tab.Gone(barcode)

	tab.Click("Show the patrons")
	tab.In("self-check-3").See(barcode + " " + barcode + " Reader")
	tab.In("self-check-4").See(otherBarcode)
	tab.In("self-check-4").Click("Release …") // the next pages show the patron too
	tab.See("Release this lock?", otherBarcode+" "+otherBarcode+" Reader")
	tab.Click("Cancel")
	tab.In("self-check-4").See(otherBarcode)

	tab.Fill("Patron's barcode or id", barcode)
	tab.Select("State", "held and expired")
	tab.Click("Filter")
	tab.See("0 locks held, 1 expired", "Patrons are written out.")
	tab.In("self-check-3").See(barcode)
	tab.Gone("self-check-4")
	p.acquireLockAs(t, uuid.NewString(), "self-check-5", "", outlastsTests)
	fresh := p.acquireLockAs(t, stuck, "self-check-6", "", outlastsTests) // takes over the outdated lock
	tab.See("self-check-6", "1 lock held")
	tab.Gone("self-check-5") // the page had it when the row above was read
	tab.Gone("self-check-3")

	tab.Click("Mask the patrons")
	tab.In("self-check-6").See(maskID(stuck))
	p.releaseLock(t, fresh)
	tab.See("No lock is like this now.")

	tab.Fill("Patron's barcode or id", "unknown")
	tab.Click("Filter")
	if e := tab.FindField("Patron's barcode or id"); !e.Invalid ||
		!strings.Contains(e.Description, "No patron has this barcode.") || e.Value != "unknown" {
		t.Errorf("the field is %+v, want an error message", e)
	}
	tab.Click("Show all")
	tab.Select("State", "expired")
	tab.Click("Filter")
	tab.See("No lock is like this now.")
	tab.Select("State", "held")
	tab.Fill("Held by (an instance)", "self-check-5")
	tab.Click("Filter")
	tab.See("self-check-5", "1 lock held")
	tab.Gone("self-check-4")
}

func TestStaffLocks_ShowWhoWaits(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: enableLock(
		"RETRY_INTERVAL_MS=10000|10000|5000", "LOCK_TTL_MS=60000", "MACHINE_PATIENCE=60s",
	)}, 1)
	userID, barcode := p.addPatron(t)
	books := p.addBooks(t, 2)
	id := p.acquireLockAs(t, userID, "self-check-3", "", outlastsTests)
	waitsRow := "[id='waits-" + id + "'] "
	tabs := map[int]*browser.Page{}
	for _, width := range []int{390, 1280} {
		tabs[width] = p.openStaffPage(t, 0, browser.Size(width, 844))
		tabs[width].Click("Locks now")
	}
	tab := chromium.Open(t)
	tab.Goto(p.staffURL(1, "/locks"))
	var ended sync.WaitGroup
	for i, book := range books { // the pages are open, because the check-outs wait for 25 s only
		ended.Go(func() { p.lendBook(t, i, book, barcode) })
	}
	tab.See("2 check-outs wait for this lock:")
	for width, tab := range tabs {
		tab.See("2 check-outs wait for this lock:")
		if text := tab.Text(waitsRow + "li"); !strings.Contains(text, "machine Desk") {
			t.Errorf("at %d px the wait says %q, want the machine", width, text)
		}
		tab.CheckAxe()
		tab.CheckWidth()
		tab.CheckNear(waitsRow + "li")
		tab.Screenshot("locks-waits-" + strconv.Itoa(width))
	}
	p.releaseLock(t, id)
	ended.Wait()
	tab.Gone("wait for this lock")
	tab.See("The longest waits of the last five minutes")
	tab.Click("On / off")
	tab.See("Patrons over their limit now 0", "2 instances lend in this library")
	tab.Click("2 instances lend in this library")
	tab.See("Last sign of life")
	tab.CheckAxe()
	tab.Screenshot("trust")
}
