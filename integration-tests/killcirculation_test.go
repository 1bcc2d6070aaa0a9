package integration_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas"
)

// A circulation that is killed at any call of a check-out leaves nothing that a repeat through another
// one cannot finish. The item is lent once.
func TestKill_CirculationAtEachCall(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock("LOCK_TTL_MS=1000")}, 1)
	p.storeLockEnabled(t) // so that a start announces nothing
	program := buildProgram(t, "circulation")
	for _, way := range []struct {
		name     string
		acquires bool
	}{
		{name: "the commit takes the lock"},
		{name: "the lock is acquired first", acquires: true},
	} {
		begin := func(t *testing.T) *doomed {
			t.Helper()
			d := &doomed{link: newLink(t, p.Storages[0])}
			d.link.acquires = way.acquires
			d.process = startProgram(t, program, findFreePort(t),
				append(enableLock("LOCK_TTL_MS=1000"), "STORAGE_URL="+d.link.url, "STAFF_AUTH=none", "HTTP_ADDR=127.0.0.1")...)
			d.machine = newClient(d.process.url, p.Storage.Tenant)
			return d
		}
		calls := begin(t).countCalls(t, p)
		for call := range calls {
			waits := call == calls/2 // the others save the time that the lease of the key outlives its holder
			for _, done := range []bool{false, true}[timesInTorture(1, 0):] {
				t.Run(fmt.Sprintf("%s, call %d of %d, done is %t", way.name, call+1, calls, done), func(t *testing.T) {
					t.Parallel()
					begin(t).dieAt(t, p, call, done, waits)
				})
			}
		}
	}
}

// doomed is a circulation process, which a test kills.
type doomed struct {
	link    *link
	machine stack.Client
	process process
}

// countCalls returns how many calls a check-out makes until its answer.
func (d *doomed) countCalls(t *testing.T, p *pair) int {
	t.Helper()
	_, patron := p.addPatron(t)
	before := len(d.link.listCalls())
	a, err := d.lend(t, p.newCheckOut(p.addBooks(t, 1)[0], patron))
	if err != nil || a.Status != http.StatusCreated {
		t.Fatalf("without a fault: %d %s %v", a.Status, a.Body, err)
	}
	return len(d.link.listCalls()) - before
}

// lend sends the check-out with the item's barcode as its key.
func (d *doomed) lend(t *testing.T, body stack.CheckOut) (stack.Answer, error) {
	t.Helper()
	machine := d.machine
	machine.Header = addHeader(machine.Header, schemas.IdempotencyKeyHeader, body.ItemBarcode)
	return machine.Do(t.Context(), http.MethodPost, checkOutPath, body)
}

// dieAt kills the process at a call, before or after storage has processed it, and repeats the
// check-out through another process. If waits is set, the repeat waits for the end of the key's lease.
func (d *doomed) dieAt(t *testing.T, p *pair, call int, done, waits bool) {
	t.Helper()
	id, patron := p.addPatron(t)
	books := p.addBooks(t, 2)
	die := func(_ http.ResponseWriter, _ *http.Request, forward func()) {
		if done {
			forward()
		}
		_ = d.process.system.Kill()
		panic(http.ErrAbortHandler)
	}
	d.link.addFault(linkFault{skip: call, times: always, handle: die})
	a, err := d.lend(t, p.newCheckOut(books[0], patron))
	if err == nil && a.Status != http.StatusCreated { // it may have been done before that call
		t.Fatalf("the process answered: %d %s", a.Status, a.Body)
	}
	select {
	case <-d.process.ended:
	case <-time.After(patience):
		t.Fatal("the process was not killed")
	}
	if !waits {
		p.lapseKeyLease(t, books[0])
	}
	readObject(t, p.lendWithKeyForSure(t, 0, books[0], p.newCheckOut(books[0], patron)), http.StatusCreated)
	got := p.readState(t, id, books[0])
	got.Locks = 0 // the lock of a killed process lasts for its TTL
	if got != lentOnce {
		t.Errorf("left %+v, want %+v", got, lentOnce)
	}
	checkAtTheLimit(t, p.lendBook(t, 0, books[1], patron))
}
