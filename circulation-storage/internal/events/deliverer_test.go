package events_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/events"
	"checkoutlock/schemas/okapi"
)

func TestDeliverer_InOrderForEachPatron(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const patrons, each = 20, 30
	ids := make([]uuid.UUID, patrons)
	for i := range ids {
		ids[i] = uuid.New()
	}
	for n := range each {
		for i, id := range ids {
			h.add(id, fmt.Sprintf("p%d/%d", i, n))
		}
	}
	// A third of the messages fails, each time anew.
	h.sink.refuse = func(string) bool { return rand.N(3) == 0 }
	h.start(h.sink)
	h.awaitNone()
	next := map[string]int{}
	for _, got := range h.await(patrons * each) {
		patron, number, _ := strings.Cut(got, "/")
		if number != fmt.Sprint(next[patron]) {
			t.Fatalf("%s comes after %d events of its patron", got, next[patron])
		}
		next[patron]++
	}
	if h.sink.failed(events.NotReceived) == 0 {
		t.Error("no failure was counted")
	}
}

// A patron whose event cannot be delivered keeps no other patron waiting, not even until the next turn.
func TestDeliverer_GoesOnBesideARefusedEvent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	poor, other := uuid.New(), uuid.New()
	h.add(poor, "bad")
	h.add(poor, "behind")
	h.add(other, "one")
	h.add(other, "two")
	turns, turnOfTwo := 0, 0
	h.sink.refuse = func(n string) bool {
		switch n {
		case "bad": // it begins each turn
			turns++
		case "two":
			turnOfTwo = turns
		}
		return n == "bad"
	}
	h.start(h.sink)
	if got := h.await(2); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("got %q, want those of the other patron", got)
	}
	h.sink.set(func() { h.sink.refuse = nil })
	if turnOfTwo != 1 {
		t.Errorf("the other patron's second event was sent in turn %d, want the first", turnOfTwo)
	}
	if got := h.await(4); !slices.Equal(got[2:], []string{"bad", "behind"}) {
		t.Errorf("got %q, want the rest in order", got)
	}
}

// More events fail than are read at once. The others behind them are sent in the same turn, but none of a
// patron who waits.
func TestDeliverer_GoesOnBehindManyThatFail(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const failing = 450 // more than two batches
	h.add(uuid.New(), "first")
	poor, other := uuid.New(), uuid.New()
	h.add(poor, "bad")
	h.addMany("bad", failing)
	h.add(poor, "behind")
	h.add(other, "one")
	h.add(other, "two")
	turns := 0
	h.sink.refuse = func(n string) bool {
		if n == "first" {
			turns++
		}
		return n == "first" || n == "bad"
	}
	h.start(h.sink)
	if got := h.await(2); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("got %q, want those of the other patron", got)
	}
	h.sink.set(func() {
		if turns != 1 {
			t.Errorf("they were sent in turn %d, want the first", turns)
		}
		h.sink.refuse = nil
	})
	got := h.await(failing + 5)
	if behind := slices.Index(got, "behind"); behind < slices.Index(got, "bad") {
		t.Errorf("%q is sent as number %d, before its patron's first event", "behind", behind)
	}
	h.awaitNone()
}

// An event that is no JSON object has no message.
func TestDeliverer_GoesOnBesideAnEventWithoutAMessage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	poor, other := uuid.New(), uuid.New()
	h.add(poor, "before")
	h.exec(`INSERT INTO {schema}.outbox (event_type, patron_id, payload) VALUES ('LOAN_CLOSED', $1, '[]')`, poor)
	h.add(poor, "behind")
	h.add(other, "one")
	h.start(h.sink)
	got := h.await(2)
	slices.Sort(got)
	if !slices.Equal(got, []string{"before", "one"}) {
		t.Errorf("got %q, want what is not behind the event", got)
	}
	h.exec(`UPDATE {schema}.outbox SET payload = '{}' WHERE payload = '[]'`)
	h.awaitNone()
	if got := h.sink.all(); len(got) != 4 || got[3] != "behind" {
		t.Errorf("got %q, want the rest in order", got)
	}
}

// Events that the reader refuses for themselves keep no others waiting, however many they are.
func TestDeliverer_SetsRefusedEventsAside(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const refused = 250 // more than a batch
	h.addMany("bad", refused)
	patron := uuid.New()
	h.add(patron, "bad")
	h.add(patron, "behind")
	h.sink.never = func(n string) bool { return n == "bad" }
	stop := h.start(h.sink)
	if got := h.await(1); !slices.Equal(got, []string{"behind"}) {
		t.Errorf("got %q, want the event behind the refused ones", got)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for h.aside() < h.left() {
		<-tick.C
	}
	stop() // after the last one is counted
	if aside, n := h.aside(), h.sink.failed(events.Refused); aside != refused+1 || n != refused+1 {
		t.Errorf("%d events are set aside and %d counted, want %d", aside, n, refused+1)
	}
	if n := h.sink.failed(events.NotReceived); n > 0 {
		t.Errorf("%d events count as not received, want none", n)
	}
}

// The id of an event is given before its transaction commits. One that commits late has a smaller id
// than events that were delivered long ago.
func TestDeliverer_DeliversWhatCommitsLate(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	late, err := h.db.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.Exec(t.Context(), h.sql(addSQL), uuid.New(), "late"); err != nil {
		t.Fatal(err)
	}
	h.start(h.sink)
	for i := range 3 {
		h.add(uuid.New(), fmt.Sprint(i))
		h.await(i + 1)
	}
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.await(4); got[3] != "late" {
		t.Errorf("got %q, want the late one at last", got)
	}
	h.awaitNone()
}

func TestDeliverer_KeepsEventsWhileTheReaderIsAway(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.sink.down = true
	for i := range 5 {
		h.add(uuid.New(), fmt.Sprint(i))
	}
	h.start(h.sink)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for asked := false; !asked; <-tick.C {
		h.sink.set(func() { asked = h.sink.pings > 0 && h.sink.lag > 0 })
	}
	if n := h.left(); n != 5 {
		t.Errorf("%d events are left, want all 5", n)
	}
	var before time.Duration
	var pings int
	h.sink.set(func() { before, pings = h.sink.lag, h.sink.pings })
	for asked := false; !asked; <-tick.C { // a turn ends before the second ping
		h.sink.set(func() { asked = h.sink.pings > pings+1 })
	}
	h.sink.set(func() {
		if h.sink.lag <= before {
			t.Errorf("the lag is %s after two pings and was %s, want a longer one", h.sink.lag, before)
		}
		h.sink.down = false
	})
	h.await(5)
	h.awaitNone()
	for {
		var lag time.Duration
		h.sink.set(func() { lag = h.sink.lag })
		if lag == 0 {
			return
		}
		<-tick.C
	}
}

// The events of a tenant that was purged no longer count as late.
func TestDeliverer_ForgetsATenantThatIsGone(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.sink.down = true
	h.add(uuid.New(), "1")
	var gone atomic.Bool
	tenants := func(context.Context) ([]okapi.Tenant, error) {
		if gone.Load() {
			return nil, nil
		}
		return []okapi.Tenant{h.id}, nil
	}
	d := events.New(h.store, h.sink, events.Names{}, tenants, h.sink, slog.New(slog.DiscardHandler))
	d.SetInterval(20 * time.Millisecond)
	go d.Run(t.Context())
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	wait := func(want bool) {
		for late := !want; late != want; h.sink.set(func() { late = h.sink.lag > 0 }) {
			<-tick.C
		}
	}
	wait(true)
	gone.Store(true)
	wait(false)
}

// A process that died still has its lease.
func TestDeliverer_TakesOverWithinSeconds(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if _, leased, err := h.store.Lease(h.ctx(), uuid.New(), 2*time.Second); err != nil || !leased {
		t.Fatal(leased, err)
	}
	h.add(uuid.New(), "left")
	begun := time.Now()
	h.start(h.sink)
	h.await(1)
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("taken over after %s, want seconds", took)
	}
}

func TestDeliverer_AStoppedProcessGivesUp(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	stop := h.start(h.sink)
	h.add(uuid.New(), "one")
	h.await(1)
	h.awaitNone()
	stop()
	if l, leased, err := h.store.Lease(h.ctx(), uuid.New(), time.Second); err != nil || !leased || l.Fence != 2 {
		t.Errorf("got %+v, %t, %v, want the second lease at once", l, leased, err)
	}
}

// frozen is a sink that sends nothing before it goes on.
type frozen struct {
	*memory
	sending chan struct{} // one message for each Send
	goOn    chan struct{}
}

func (f frozen) Send(ctx context.Context, messages []events.Message) []error {
	f.sending <- struct{}{}
	<-f.goOn
	return f.memory.Send(ctx, messages)
}

// A process that freezes while it sends loses its lease. When it wakes, it deletes nothing and sends
// no further event.
func TestDeliverer_IsFenced(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	slow := frozen{
		memory: &memory{changed: make(chan struct{}, 1)}, sending: make(chan struct{}, 100), goOn: make(chan struct{}),
	}
	patron := uuid.New()
	h.add(patron, "1")
	h.add(patron, "2")
	h.start(slow)
	<-slow.sending
	h.exec(`UPDATE {schema}.outbox_lease SET lease_until = '-infinity'`) // its time is over
	h.start(h.sink)
	if got := h.await(2); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("got %q", got)
	}
	h.awaitNone()
	close(slow.goOn)
	h.add(patron, "3")
	if got := h.await(3); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("got %q, want each once", got)
	}
	h.awaitFailure(events.LeaseLost)
	if got := slow.all(); len(got) > 2 || slices.Contains(got, "3") {
		t.Errorf("the fenced process sent %q, want what it had read at most", got)
	}
}

// The first batch is on its way when a transaction with a smaller id commits. The patron's next event is
// within the reach of the second batch.
func TestDeliverer_KeepsTheOrderOfWhatCommitsLate(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	patron := uuid.New()
	late, err := h.db.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.Exec(t.Context(), h.sql(addSQL), patron, "earlier"); err != nil {
		t.Fatal(err)
	}
	const others = 250 // more than a batch
	h.addMany("other", others)
	slow := frozen{memory: h.sink, sending: make(chan struct{}, 100), goOn: make(chan struct{})}
	h.start(slow)
	<-slow.sending
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.add(patron, "later")
	close(slow.goOn)
	got := slices.DeleteFunc(h.await(others+2), func(n string) bool { return n == "other" })
	if !slices.Equal(got, []string{"earlier", "later"}) {
		t.Errorf("got %q, want the patron's events in order", got)
	}
}

// A process that lost its lease sets no event aside, and does not say so.
func TestDeliverer_IsFencedWhenItSetsAside(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.sink.never = func(string) bool { return true }
	slow := frozen{memory: h.sink, sending: make(chan struct{}, 100), goOn: make(chan struct{})}
	h.add(uuid.New(), "bad")
	h.start(slow)
	<-slow.sending
	h.exec(`UPDATE {schema}.outbox_lease SET lease_until = '-infinity'`) // its time is over
	if _, leased, err := h.store.Lease(h.ctx(), uuid.New(), 50*time.Second); err != nil || !leased {
		t.Fatal(leased, err)
	}
	close(slow.goOn)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for h.sink.failed(events.LeaseLost)+h.sink.failed(events.Refused) == 0 {
		<-tick.C
	}
	if lost, refused := h.sink.failed(events.LeaseLost), h.sink.failed(events.Refused); lost != 1 || refused != 0 {
		t.Errorf("%d events count as lost with the lease and %d as refused, want 1 and none", lost, refused)
	}
	if n := h.aside(); n != 0 {
		t.Errorf("%d events are set aside, want none", n)
	}
}
