package integration_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/devpostgres/testserver"
	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const noSpace = "the database cannot write: no space left"

// Machines go on while the database's disk is full, three times. The quickest answers count, because
// other processes slow single ones.
func TestOutage_OfAFullDisk(t *testing.T) {
	t.Parallel()
	const outages = 3
	d := testserver.NewSmallDisk(t)
	refusal, loan := time.Minute, time.Minute // the quickest, once the disk is full and once it is not
	lines := captureLog(t, "info", func(t *testing.T, o stack.Options) {
		o.DatabaseURL = d.URL
		o.CirculationEnv = append(slices.Clone(o.CirculationEnv), "CHECKOUT_LOCK_FEATURE_ENABLED=true")
		p := startPair(t, o, 10)
		p.storeLockEnabled(t)
		desk := p.startDesk(t, 4)
		for range outages {
			desk.await(t, "a loan", 1, 0)
			d.Fill(t)
			desk.await(t, "refusals", 0, 40)
			refusal = min(refusal, desk.quickestRefusal())
			p.awaitReadiness(t, http.StatusServiceUnavailable)
			checkReadinessSays(t, p, noSpace)
			freed := time.Now()
			d.Free(t)
			desk.await(t, "a loan, as there is space", 1, 0)
			loan = min(loan, time.Since(freed))
			p.awaitReadiness(t, http.StatusOK)
		}
		desk.stop()
	})
	t.Logf("the quickest refusal took %s, the first loan %s", refusal, loan)
	if refusal > time.Second || loan > 10*time.Second {
		t.Errorf("the quickest refusal took %s, the first loan %s, want at most 1s and 10s", refusal, loan)
	}
	seen := map[string]int{}
	for _, text := range lines {
		l := parseLine(t, text)
		seen[l.Level+" "+l.Msg]++
		if l.Level == "ERROR" && l.Msg != "the database cannot write" || strings.Contains(l.Msg, "sending it again") {
			t.Errorf("beside the outage: %s", text)
		}
	}
	if seen["ERROR the database cannot write"] != outages || seen["INFO the database can write again"] != outages {
		t.Errorf("logged %v, want each begin and each end of an outage once", seen)
	}
}

// checkReadinessSays fails the test unless both services name the cause.
func checkReadinessSays(t *testing.T, p *pair, cause string) {
	t.Helper()
	for base, want := range map[string]string{
		p.Storages[0]: "not ready: " + cause, p.Circulations[0]: "not ready: storage is not ready: " + cause,
	} {
		if got := checkHealth(t, base, http.StatusServiceUnavailable); got != want {
			t.Errorf("readiness of %s is %q, want %q", base, got, want)
		}
	}
}

// awaitReadiness waits until readiness of all instances has that status.
func (p *pair) awaitReadiness(t *testing.T, status int) {
	t.Helper()
	for _, base := range slices.Concat(p.Storages, p.Circulations) {
		waitUntil(t, patience, "readiness of "+base, func() bool {
			c := newClient(base, "")
			return callEndpoint(t, c, http.MethodGet, "/admin/health/ready", nil).Status == status
		})
	}
}

// desk is machines that lend and take back a book each, again and again.
type desk struct {
	p    *pair
	stop func()

	mu            sync.Mutex
	lent, refused int
	quickest      time.Duration // of the refused check-outs
}

func (p *pair) startDesk(t *testing.T, machines int) *desk {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	d := &desk{p: p, quickest: time.Minute}
	var running sync.WaitGroup
	for _, book := range p.addBooks(t, machines) {
		_, patron := p.addPatron(t)
		running.Go(func() {
			for isLent := false; ctx.Err() == nil; {
				isLent = d.move(t, book, patron, isLent)
			}
		})
	}
	d.stop = func() {
		end()
		running.Wait()
	}
	t.Cleanup(d.stop)
	return d
}

// move lends the book, or takes it back, and reports whether it is lent then.
func (d *desk) move(t *testing.T, book, patron string, isLent bool) bool {
	path, body, done := checkOutPath, any(d.p.newCheckOut(book, patron)), http.StatusCreated
	if isLent {
		path, done = "/circulation/check-in-by-barcode", http.StatusOK
		body = record{"itemBarcode": book, "servicePointId": d.p.ServicePointID, "checkInDate": "2030-10-01T09:30:00.000Z"}
	}
	staff := d.p.machines[0]
	staff.Header = http.Header{okapi.UserIDHeader: {uuid.NewString()}} // a check-in needs one
	start := time.Now()
	a, err := staff.Do(context.WithoutCancel(t.Context()), http.MethodPost, path, body)
	took := time.Since(start)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err != nil:
		t.Errorf("%s: %v", path, err)
	case a.Status == done:
		if !isLent {
			d.lent++
		}
		return !isLent
	case a.Status != http.StatusServiceUnavailable, a.Header.Get(fault.Header) != string(fault.Unavailable),
		a.Header.Get("Retry-After") == "", !strings.Contains(string(a.Body), noSpace):
		t.Errorf("%s: %d %v %s, want 503 with Retry-After and the cause", path, a.Status, a.Header, a.Body)
	default:
		d.refused++
		d.quickest = min(d.quickest, took)
	}
	return isLent
}

// await waits for so many more loans and refusals.
func (d *desk) await(t *testing.T, what string, lent, refused int) {
	t.Helper()
	count := func() (int, int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.lent, d.refused
	}
	lentBefore, refusedBefore := count()
	waitUntil(t, patience, what, func() bool {
		lentNow, refusedNow := count()
		return lentNow >= lentBefore+lent && refusedNow >= refusedBefore+refused
	})
}

func (d *desk) quickestRefusal() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.quickest
}
