package enginetest

import (
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
)

func testWithdraw(c *claimTest) {
	writer := c.enqueue("w a", true)
	left, right := c.enqueue("r a/b", false), c.enqueue("r a", false)
	last := c.enqueue("w a/b, w c", false)
	apart := c.enqueue("w d", true)
	behind := c.enqueue("w c", false) // a waiting claim has its place
	c.withdraw(engine.Claim{ID: uuid.New()})
	c.withdraw(writer, left, right)
	c.withdraw(left)
	c.withdraw(right, last)
	c.withdraw(apart)
	c.withdraw(last, behind)
	c.withdraw(behind)
}

func testDisconnect(c *claimTest) {
	disconnect := func(q engine.Claim, granted ...engine.Claim) {
		c.Helper()
		got, err := c.store.Disconnect(c.ctx, c.instance, c.namespace, q.ID)
		c.wantGranted("Disconnect", got, err, granted...)
	}
	held := c.enqueue("w a", true)
	waiting, next := c.enqueue("w a", false), c.enqueue("w a", false)
	disconnect(engine.Claim{ID: uuid.New()})
	disconnect(waiting)
	disconnect(held)
	c.advance(abandonTime - time.Minute)
	disconnect(held) // a repeat does not start the time anew
	c.settle(nil, nil)
	if states, err := c.store.ClaimsOf(c.ctx, c.instance, uuid.Nil, make([]engine.ClaimState, 10)); err != nil || len(states) != 1 || states[0].ID != next.ID {
		c.Errorf("claims with a connection: %+v, %v, want the waiting one", states, err)
	}
	all, err := c.store.ListClaims(c.ctx, "", 10)
	if err != nil || len(all) != 2 || all[0].EndsAt.IsZero() || !all[1].EndsAt.IsZero() {
		c.Errorf("got %+v, %v, want the first with its end", all, err)
	}
	c.advance(time.Minute)
	c.settle([]engine.Claim{held}, []engine.Claim{next})
	c.settle(nil, nil)

	brief := c.claim("w b")
	brief.Abandon = 0
	c.enqueueClaim(brief, true)
	after := c.enqueue("w b", false)
	disconnect(brief, after)
	disconnect(brief)
}

// other returns a test of another instance on the same store.
func (c *claimTest) other() *claimTest {
	o := *c
	o.instance = uuid.New()
	if err := c.store.StartLease(c.ctx, o.instance, leaseTime); err != nil {
		c.Fatal(err)
	}
	return &o
}

// keepLease keeps the lease of c's instance while d passes.
func (c *claimTest) keepLease(d time.Duration) {
	c.Helper()
	for d > 0 {
		step := min(d, leaseTime/2)
		c.advance(step)
		if err := c.store.KeepLease(c.ctx, c.instance, leaseTime); err != nil {
			c.Fatal(err)
		}
		d -= step
	}
}

func testEndedLease(c *claimTest) {
	dead := c.other()
	held, disconnected := dead.enqueue("w a", true), dead.enqueue("w b", true)
	waiting := dead.enqueue("w a/x", false)
	next, behind, free := c.enqueue("w a", false), c.enqueue("r b", false), c.enqueue("w c", true)
	c.keepLease(leaseTime - time.Minute)
	granted, err := c.store.Disconnect(c.ctx, dead.instance, "ns", disconnected.ID)
	c.wantGranted("Disconnect", granted, err)
	c.settle(nil, nil)
	c.keepLease(time.Minute)
	c.settle([]engine.Claim{waiting}, nil) // a waiting claim has no Abandon
	c.keepLease(abandonTime - time.Minute)
	c.settle([]engine.Claim{disconnected}, []engine.Claim{behind}) // its time began with its end
	c.keepLease(time.Minute)
	c.settle([]engine.Claim{held}, []engine.Claim{next})
	c.settle(nil, nil)
	c.withdraw(free)
	if err := c.store.KeepLease(c.ctx, dead.instance, leaseTime); !fault.Is(err, fault.NotFound) {
		c.Errorf("an ended lease is kept: %v", err)
	}
}

// testLateDisconnect ends a lease before the end of the connection is noted.
func testLateDisconnect(c *claimTest) {
	for _, stop := range []func(*claimTest) error{
		func(o *claimTest) error { return o.store.EndLease(o.ctx, o.instance) },
		func(*claimTest) error { c.advance(leaseTime); return nil },
	} {
		late := c.other()
		held := late.enqueue("w a", true)
		if err := stop(late); err != nil {
			c.Fatal(err)
		}
		c.advance(abandonTime - time.Minute)
		granted, err := c.store.Disconnect(c.ctx, late.instance, "ns", held.ID)
		c.wantGranted("Disconnect", granted, err)
		c.advance(time.Minute)
		c.settle([]engine.Claim{held}, nil)
	}
}

func testStoppedInstance(c *claimTest) {
	stopped := c.other()
	held, waiting := stopped.enqueue("w a", true), stopped.enqueue("w a", false)
	next := c.enqueue("w a", false)
	if err := c.store.EndLease(c.ctx, stopped.instance); err != nil {
		c.Fatal(err)
	}
	c.settle([]engine.Claim{waiting}, nil)
	c.advance(time.Minute)
	if err := c.store.EndLease(c.ctx, stopped.instance); err != nil { // a repeat does not start the time anew
		c.Fatal(err)
	}
	c.advance(abandonTime - time.Minute)
	c.settle([]engine.Claim{held}, []engine.Claim{next})
}

// testLeaseEndsOnce stops an instance before and after the time of its lease. The Abandon of its claims begins
// with what comes first.
func testLeaseEndsOnce(c *claimTest) {
	const abandon = 3 * leaseTime
	for name, late := range map[string]time.Duration{"before": 0, "after": leaseTime + time.Minute} {
		stopped := c.other()
		q := stopped.claim("w a")
		q.Abandon = abandon
		held := stopped.enqueueClaim(q, true)
		c.keepLease(late)
		if err := c.store.EndLease(c.ctx, stopped.instance); err != nil {
			c.Fatal(err)
		}
		if err := c.store.KeepLease(c.ctx, stopped.instance, leaseTime); !fault.Is(err, fault.NotFound) {
			c.Errorf("%s the time of the lease: an ended lease is kept: %v", name, err)
		}
		c.settle(nil, nil)
		c.keepLease(abandon + min(late, leaseTime) - late - time.Minute)
		c.settle(nil, nil)
		c.keepLease(time.Minute)
		c.settle([]engine.Claim{held}, nil)
	}
}

// testGrantAfterTheLease withdraws a claim that one of an ended lease waits for. That one is granted
// before Settle ends it, and has no connection.
func testGrantAfterTheLease(c *claimTest) {
	for _, stop := range []func(*claimTest) error{
		func(o *claimTest) error { return o.store.EndLease(o.ctx, o.instance) },
		func(*claimTest) error { c.keepLease(leaseTime); return nil },
	} {
		stopped := c.other()
		held := c.enqueue("w a", true)
		waiting, next := stopped.enqueue("w a", false), c.enqueue("w a", false)
		if err := stop(stopped); err != nil {
			c.Fatal(err)
		}
		c.withdraw(held, waiting)
		c.settle([]engine.Claim{waiting}, []engine.Claim{next})
		c.withdraw(next)
	}
}

func testForceWithdraw(c *claimTest) {
	note := engine.Note{By: "eve", Reason: "stuck"}
	held, next := c.enqueue("w a, r b/c", true), c.enqueue("w a", false)
	if _, err := c.store.ForceWithdraw(c.ctx, c.instance, "other", held.ID, note); !fault.Is(err, fault.NotFound) {
		c.Errorf("of another namespace: %v", err)
	}
	granted, err := c.store.ForceWithdraw(c.ctx, c.instance, "ns", held.ID, note)
	c.wantGranted("ForceWithdraw", granted, err, next)
	if _, err := c.store.ForceWithdraw(c.ctx, c.instance, "ns", held.ID, note); !fault.Is(err, fault.NotFound) {
		c.Errorf("twice: %v", err)
	}
	all, err := c.locks.Releases(c.ctx, 10)
	if err != nil || len(all) != 1 {
		c.Fatalf("Releases = %+v, %v, want one", all, err)
	}
	want := engine.Release{Note: note, Namespace: "ns", Name: "write /a, read /b/c", Owner: "client", Fence: 1, At: all[0].At}
	if all[0] != want || all[0].At.IsZero() {
		c.Errorf("kept %+v, want %+v", all[0], want)
	}
}

func testNewGrants(c *claimTest) {
	o := c.other()
	wantNew := func(when string, of *claimTest, want ...engine.Claim) {
		c.Helper()
		got, err := c.store.NewGrants(c.ctx, of.instance)
		c.wantGranted("NewGrants "+when, got, err, want...)
	}
	writer := c.enqueue("w a", true)
	mine, theirs, gone := c.enqueue("r a", false), o.enqueue("r a", false), o.enqueue("r a", false)
	wantNew("before", o)
	c.withdraw(writer, mine, theirs, gone)
	wantNew("of the caller", c)
	wantNew("of the other", o, theirs, gone)
	wantNew("again", o, theirs, gone)
	o.withdraw(gone)
	wantNew("without one that has gone", o, theirs)
	wantNoted := func(id uuid.UUID, want ...engine.Claim) {
		c.Helper()
		got, err := c.store.NoteGrants(c.ctx, []uuid.UUID{id, uuid.New()})
		c.wantGranted("NoteGrants", got, err, want...)
	}
	wantNoted(theirs.ID, theirs)
	wantNew("noted", o)
	wantNoted(theirs.ID, theirs)

	first, second := c.enqueue("w b", true), c.enqueue("w c", true)
	both := o.enqueue("w b, w c", false)
	c.withdraw(second)
	wantNew("of one that waits for another now", o)
	wantNoted(both.ID)
	c.withdraw(first, both)
	wantNew("of one that waits no more", o, both)

	if _, err := o.store.Disconnect(c.ctx, o.instance, both.Namespace, both.ID); err != nil {
		c.Fatal(err)
	}
	wantNoted(both.ID)
}

func testStats(c *claimTest) {
	if _, err := c.store.Stats(c.ctx, "ns"); !fault.Is(err, fault.NotFound) {
		c.Errorf("a namespace without a client: %v", err)
	}
	wantStats := func(want engine.NamespaceStats) {
		c.Helper()
		if got, err := c.store.Stats(c.ctx, "ns"); err != nil || got != want {
			c.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	for range 2 {
		if err := c.store.OpenNamespace(c.ctx, "ns"); err != nil {
			c.Fatal(err)
		}
	}
	wantStats(engine.NamespaceStats{})
	held := c.enqueue("w a, w b", true)
	first, second := c.enqueue("w a", false), c.enqueue("r a", false)
	wantStats(engine.NamespaceStats{LastNumber: 3, Waiting: 2, Held: 1, WaitingResources: 2, HeldResources: 2, Paths: 2})
	if err := c.store.OpenNamespace(c.ctx, "ns"); err != nil {
		c.Fatal(err)
	}
	for _, q := range []engine.Claim{second, first, held} {
		c.withdraw(q)
	}
	wantStats(engine.NamespaceStats{LastNumber: 3})
	if _, err := c.store.Stats(c.ctx, "NS"); !fault.Is(err, fault.NotFound) {
		c.Errorf("a namespace in another case: %v", err)
	}
}
