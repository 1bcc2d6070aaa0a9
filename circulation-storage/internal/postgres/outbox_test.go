package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas/fault"
)

// recordEvents turns on the events of records, as the first process does that delivers them, and
// drops those so far.
func (l harness) recordEvents() {
	l.t.Helper()
	if _, leased, err := postgres.NewOutboxStore(l.db).Lease(l.ctx(), uuid.New(), 0); err != nil || !leased {
		l.t.Fatal(leased, err)
	}
	l.exec(`DELETE FROM {schema}.outbox`)
}

// recorded counts the events of loans.
func (l harness) recorded() int {
	l.t.Helper()
	return l.count(`SELECT count(*) FROM {schema}.outbox WHERE topic = 'loan'`)
}

const addLoanSQL = `INSERT INTO {schema}.loan (id, jsonb) VALUES ($1::uuid, jsonb_build_object('id', $1::uuid))`

func TestOutbox_HasNoEventsOfRecordsBeforeAReader(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.exec(`UPDATE {schema}.outbox_lease SET fence = 0`)
	l.lend(l.withLock(uuid.New(), l.addItem("Available", "")))
	if n := l.count(`SELECT count(*) FROM {schema}.outbox`); n != 0 {
		t.Errorf("without a reader there are %d events", n)
	}
	l.recordEvents()
	l.lend(l.withLock(uuid.New(), l.addItem("Available", "")))
	if n := l.recorded(); n != 1 {
		t.Errorf("after the first lease there are %d events, want 1", n)
	}
	if err := l.db.Purge(l.ctx(), l.id); err != nil {
		t.Fatal(err)
	}
	if err := l.db.Install(l.ctx(), l.id); err != nil {
		t.Fatal(err)
	}
	l.exec(addLoanSQL, uuid.New())
	if n := l.recorded(); n != 0 {
		t.Errorf("a tenant that is installed anew has %d events", n)
	}
	l.recordEvents()
	l.exec(addLoanSQL, uuid.New())
	if n := l.recorded(); n != 1 {
		t.Errorf("after the first lease on the new tenant there are %d events, want 1", n)
	}
}

// Refused events wait for nothing.
func TestGauges_LeaveOutRefusedEvents(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.recordEvents()
	l.exec(addLoanSQL, uuid.New())
	l.exec(`UPDATE {schema}.outbox SET refused = 'bad'`)
	l.exec(addLoanSQL, uuid.New())
	if g, err := l.db.ReadGauges(l.ctx()); err != nil || g.Events != 1 {
		t.Errorf("got %+v, %v, want 1 event that waits", g, err)
	}
}

// One transaction has written when the lease comes, another has only read and writes later.
func TestOutboxStore_LeaseWaitsForWritersBriefly(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	written := l.begin(addLoanSQL, uuid.New())
	read := l.begin(`SELECT FROM {schema}.loan`)
	store, holder := postgres.NewOutboxStore(l.db), uuid.New()
	wantQuickest(t, 5*time.Second, func() {
		if _, leased, err := store.Lease(l.ctx(), holder, time.Second); leased || !fault.Is(err, fault.InUse) {
			t.Errorf("beside a writer: got %t, %v, want it refused", leased, err)
		}
	})
	if err := written.Commit(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if _, leased, err := store.Lease(l.ctx(), holder, time.Second); !leased || err != nil {
		t.Fatal(leased, err)
	}
	if _, err := read.Exec(l.ctx(), l.sql(addLoanSQL), uuid.New()); err != nil {
		t.Fatal(err)
	}
	if err := read.Commit(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if n := l.recorded(); n != 1 {
		t.Errorf("got %d events, want that of the later writer", n)
	}
}

// Each of them is the first to have the lease, or finds the triggers on.
func TestOutboxStore_ManyProcessesTurnEventsOn(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	store := postgres.NewOutboxStore(l.db)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			holder := uuid.New()
			if _, _, err := store.Lease(l.ctx(), holder, time.Second); err != nil {
				t.Error(err)
			}
			if err := store.GiveUp(l.ctx(), holder); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	l.exec(addLoanSQL, uuid.New())
	if n := l.recorded(); n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
}
