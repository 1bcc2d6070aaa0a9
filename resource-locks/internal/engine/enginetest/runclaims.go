package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
)

// NewClaimStore returns an empty store of a test, the one that lists its forced releases,
// and a function that makes time pass in them.
type NewClaimStore func(t *testing.T) (store engine.ClaimStore, locks engine.LockStore, advance func(time.Duration))

// RunClaimStore runs the contract of engine.ClaimStore. It calls newStore for each case.
func RunClaimStore(t *testing.T, newStore NewClaimStore) {
	t.Helper()
	for name, test := range map[string]func(*claimTest){
		"Enqueue/a claim waits for earlier conflicting ones": testWhoWaits,
		"Enqueue/no longer than the rule":                    testNoLonger,
		"Enqueue/a claim shows what was asked for":           testWholeClaim,
		"Enqueue/numbers and repeats":                        testNumbers,
		"Enqueue/large and deep claims":                      testLargeClaims,
		"Enqueue/needs a lease":                              testNeedsLease,
		"Enqueue/of many at once one is held":                testOneHeld,
		"Withdraw/grants the next ones":                      testWithdraw,
		"Disconnect/a held claim ends after its Abandon":     testDisconnect,
		"Disconnect/after the end of the lease":              testLateDisconnect,
		"Settle/claims of an ended lease":                    testEndedLease,
		"Settle/claims of a stopped instance":                testStoppedInstance,
		"Settle/a lease ends once":                           testLeaseEndsOnce,
		"Settle/claims granted after the end of the lease":   testGrantAfterTheLease,
		"ForceWithdraw/keeps the note":                       testForceWithdraw,
		"NewGrants/grants by other instances":                testNewGrants,
		"Stats/counts a namespace":                           testStats,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, locks, advance := newStore(t)
			c := &claimTest{TB: t, ctx: t.Context(), store: store, locks: locks, advance: advance, instance: uuid.New(), namespace: "ns"}
			if err := store.StartLease(c.ctx, c.instance, leaseTime); err != nil {
				t.Fatal(err)
			}
			test(c)
		})
	}
}

const (
	leaseTime   = 10 * time.Minute
	abandonTime = 4 * time.Minute
)

// claimTest is one case. Its methods end the test at an error.
type claimTest struct {
	testing.TB
	ctx       context.Context //nolint:containedctx // of the test
	store     engine.ClaimStore
	locks     engine.LockStore
	advance   func(time.Duration)
	instance  uuid.UUID
	namespace string
}

// parsePaths reads paths like "r a/b, w c". A lone letter is the whole namespace.
func parsePaths(text string) []engine.Resource {
	var resources []engine.Resource
	for part := range strings.SplitSeq(text, ", ") {
		mode, path, _ := strings.Cut(part, " ")
		r := engine.Resource{Write: mode == "w"}
		if path != "" {
			r.Path = strings.Split(path, "/")
		}
		resources = append(resources, r)
	}
	return resources
}

func (c *claimTest) claim(paths string) engine.Claim {
	return engine.Claim{
		ID: uuid.New(), Namespace: c.namespace, Resources: parsePaths(paths), Instance: c.instance, Abandon: abandonTime, Owner: "client",
	}
}

// enqueue enqueues a claim of c's instance and checks whether it is held.
func (c *claimTest) enqueue(paths string, held bool) engine.Claim {
	c.Helper()
	return c.enqueueClaim(c.claim(paths), held)
}

func (c *claimTest) enqueueClaim(q engine.Claim, held bool) engine.Claim {
	c.Helper()
	place, err := c.store.Enqueue(c.ctx, q)
	if err != nil || place.Held != held || place.Number < 1 {
		c.Fatalf("Enqueue(%s) = %+v, %v, want held %t", engine.FormatResources(q.Resources), place, err, held)
	}
	return q
}

// withdraw withdraws a claim and checks which are granted.
func (c *claimTest) withdraw(q engine.Claim, granted ...engine.Claim) {
	c.Helper()
	got, err := c.store.Withdraw(c.ctx, c.instance, c.namespace, q.ID)
	c.wantGranted("Withdraw", got, err, granted...)
}

func (c *claimTest) wantGranted(call string, got []uuid.UUID, err error, want ...engine.Claim) {
	c.Helper()
	ids := convert.All(want, func(q engine.Claim) uuid.UUID { return q.ID })
	if err != nil || !sameIDs(got, ids) {
		c.Fatalf("%s granted %v, %v, want %v", call, got, err, ids)
	}
}

func sameIDs(a, b []uuid.UUID) bool {
	compare := func(x, y uuid.UUID) int { return slices.Compare(x[:], y[:]) }
	return slices.Equal(slices.SortedFunc(slices.Values(a), compare), slices.SortedFunc(slices.Values(b), compare))
}

// settle settles and checks what ended and what is granted instead.
func (c *claimTest) settle(ended, granted []engine.Claim) {
	c.Helper()
	got, over, err := c.store.Settle(c.ctx, c.instance)
	c.wantGranted("Settle", got, err, granted...)
	ids := convert.All(over, func(info engine.ClaimInfo) uuid.UUID { return info.ID })
	c.wantGranted("Settle: the end of the granted ones", ids, nil, ended...)
}

func testWhoWaits(c *claimTest) {
	for i, tt := range []struct {
		first, second string
		waits         bool
	}{
		{first: "w a", second: "w a", waits: true},
		{first: "w a", second: "r a", waits: true},
		{first: "r a", second: "w a", waits: true},
		{first: "r a", second: "r a", waits: false},
		{first: "w a", second: "w a/b", waits: true},
		{first: "w a", second: "r a/b/c", waits: true},
		{first: "r a", second: "w a/b", waits: true},
		{first: "w a/b", second: "r a", waits: true},
		{first: "r a/b/c", second: "w a", waits: true},
		{first: "r a/b", second: "r a", waits: false},
		{first: "w a/b", second: "w a/c", waits: false},
		{first: "w a", second: "w ab", waits: false},
		{first: "w ab", second: "w a", waits: false},
		{first: "w a", second: "w A", waits: false},
		{first: "w", second: "r x/y", waits: true},
		{first: "r x/y", second: "w", waits: true},
		{first: "r", second: "r x", waits: false},
		{first: "w", second: "w", waits: true},
		{first: "w a, w b", second: "r c, r b/x", waits: true},
		{first: "w a, w b", second: "w c, w d", waits: false},
		{first: "r a, w a", second: "r a", waits: true},
		{first: "r a/b, w a", second: "r a/b", waits: true},
		{first: "w ü/日本", second: "r ü/日本/𝕏", waits: true},
		{first: "w ü/日", second: "w ü/日本", waits: false},
	} {
		c.namespace = fmt.Sprint("ns ", i)
		c.enqueue(tt.first, true)
		c.enqueue(tt.second, !tt.waits)
	}
	for i, tt := range []struct {
		first, second []string
		waits         bool
	}{
		{first: []string{"a/b"}, second: []string{"a", "b"}, waits: false},
		{first: []string{""}, second: []string{"", "a"}, waits: true},
		{first: []string{""}, second: []string{"a"}, waits: false},
		{first: []string{"a", ""}, second: []string{"a", "", "b"}, waits: true},
		{first: []string{"a", ""}, second: []string{"a"}, waits: true},
		{first: []string{"a\x01"}, second: []string{"a", "\x01"}, waits: false},
		{first: []string{"a\x01b"}, second: []string{"a"}, waits: false},
	} {
		c.namespace = fmt.Sprint("strange ", i)
		a, b := c.claim("w"), c.claim("w")
		a.Resources[0].Path, b.Resources[0].Path = tt.first, tt.second
		c.enqueueClaim(a, true)
		c.enqueueClaim(b, !tt.waits)
	}
}

// testNoLonger has the four cases in which another server makes a claim wait longer.
func testNoLonger(c *claimTest) {
	c.Log("a read waits behind no waiting read")
	a := c.enqueue("w y/1", true)
	b := c.enqueue("r y", false)
	c.enqueue("r y/2", true)
	c.withdraw(a, b)

	c.Log("a read that waited for a writer waits for no earlier reader")
	c.namespace = "b"
	c.enqueue("r x/1", true)
	b = c.enqueue("w x/2", true)
	reader := c.enqueue("r x", false)
	c.withdraw(b, reader)

	c.Log("a claim that left while it waited is in no one's way")
	c.namespace = "c"
	c.enqueue("r y", true)
	b = c.enqueue("w y", false)
	reader = c.enqueue("r y", false)
	c.withdraw(b, reader)

	c.Log("a waiting claim leaves with its connection")
	c.namespace = "d"
	c.enqueue("r y", true)
	b = c.enqueue("w y", false)
	reader = c.enqueue("r y", false)
	granted, err := c.store.Disconnect(c.ctx, c.instance, c.namespace, b.ID)
	c.wantGranted("Disconnect", granted, err, reader)
}

func testWholeClaim(c *claimTest) {
	held, waiting := c.enqueue("w a/b, r c", true), c.enqueue("r a", false)
	all, err := c.store.ListClaims(c.ctx, "", 10)
	if err != nil || len(all) != 2 {
		c.Fatalf("got %+v, %v, want two claims", all, err)
	}
	want := []engine.ClaimInfo{
		{Claim: held, Place: engine.Place{Number: 1, Held: true}, QueuedAt: all[0].QueuedAt, HeldAt: all[0].HeldAt},
		{Claim: waiting, Place: engine.Place{Number: 2}, QueuedAt: all[1].QueuedAt, WaitsFor: 1},
	}
	if !reflect.DeepEqual(all, want) || all[0].QueuedAt.IsZero() || all[0].HeldAt.Before(all[0].QueuedAt) || all[1].QueuedAt.IsZero() {
		c.Errorf("got %+v, want %+v", all, want)
	}
	if first, err := c.store.ListClaims(c.ctx, "", 1); err != nil || !reflect.DeepEqual(first, all[:1]) {
		c.Errorf("the first is %+v, %v", first, err)
	}
	states := []engine.ClaimState{{ID: held.ID, Namespace: "ns", Held: true}, {ID: waiting.ID, Namespace: "ns"}}
	slices.SortFunc(states, func(a, b engine.ClaimState) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	for _, tt := range []struct {
		instance, after uuid.UUID
		limit           int
		want            []engine.ClaimState
	}{
		{instance: c.instance, after: uuid.Nil, limit: 10, want: states},
		{instance: c.instance, after: uuid.Nil, limit: 1, want: states[:1]},
		{instance: c.instance, after: states[0].ID, limit: 1, want: states[1:]},
		{instance: c.instance, after: states[1].ID, limit: 10, want: nil},
		{instance: uuid.New(), after: uuid.Nil, limit: 10, want: nil},
		{instance: uuid.Nil, after: uuid.Nil, limit: 10, want: nil}, // of a process without a lease
	} {
		if got, err := c.store.ClaimsOf(c.ctx, tt.instance, tt.after, make([]engine.ClaimState, tt.limit)); err != nil || !slices.Equal(got, tt.want) {
			c.Errorf("ClaimsOf after %s, %d = %+v, %v, want %+v", tt.after, tt.limit, got, err, tt.want)
		}
	}
	c.namespace = "of others"
	c.enqueue("w a", true)
	if own, err := c.store.ListClaims(c.ctx, "ns", 10); err != nil || !reflect.DeepEqual(own, all) {
		c.Errorf("those of the namespace are %+v, %v, want %+v", own, err, all)
	}
}

func testNumbers(c *claimTest) {
	first := c.enqueue("w a", true)
	second := c.enqueue("w a", false)
	for want, q := range map[engine.Place]engine.Claim{{Number: 1, Held: true}: first, {Number: 2}: second} {
		if got, err := c.store.Enqueue(c.ctx, q); err != nil || got != want {
			c.Errorf("a repeat is %+v, %v, want %+v", got, err, want)
		}
	}
	c.withdraw(first, second)
	c.withdraw(first)
	c.withdraw(second)
	if got, err := c.store.Enqueue(c.ctx, c.claim("w a")); err != nil || got != (engine.Place{Number: 3, Held: true}) {
		c.Errorf("the third is %+v, %v", got, err)
	}
	c.namespace = "NS"
	if got, err := c.store.Enqueue(c.ctx, c.claim("w a")); err != nil || got != (engine.Place{Number: 1, Held: true}) {
		c.Errorf("the first of another namespace is %+v, %v", got, err)
	}
}

func testLargeClaims(c *claimTest) {
	wide := c.claim("w")
	wide.Resources = nil
	for i := range engine.MaxResources / 2 {
		r := engine.Resource{Path: []string{"wide", fmt.Sprint(i)}, Write: i%2 == 0}
		wide.Resources = append(wide.Resources, r, r) // duplicates are harmless
	}
	c.enqueueClaim(wide, true)
	c.enqueue("r wide/499", true)
	reader := c.enqueue("r wide/498/x", false)

	deep := c.claim("w")
	deep.Resources[0].Path = slices.Repeat([]string{strings.Repeat("x", engine.MaxPathBytes/engine.MaxSegments-1)}, engine.MaxSegments)
	c.enqueueClaim(deep, true)
	above := c.claim("r")
	above.Resources[0].Path = deep.Resources[0].Path[:3]
	c.enqueueClaim(above, false)
	c.withdraw(wide, reader)
	c.withdraw(deep, above)
}

func testNeedsLease(c *claimTest) {
	q := c.claim("w a")
	q.Instance = uuid.New()
	if _, err := c.store.Enqueue(c.ctx, q); !fault.Is(err, fault.Unavailable) {
		c.Errorf("an instance without a lease: %v", err)
	}
	c.advance(leaseTime)
	if _, err := c.store.Enqueue(c.ctx, c.claim("w a")); !fault.Is(err, fault.Unavailable) {
		c.Errorf("an ended lease: %v", err)
	}
	if err := c.store.KeepLease(c.ctx, c.instance, leaseTime); !fault.Is(err, fault.NotFound) {
		c.Errorf("an ended lease is kept: %v", err)
	}
	if all, err := c.store.ListClaims(c.ctx, "", 10); err != nil || len(all) != 0 {
		c.Errorf("stored %+v, %v", all, err)
	}
}

func testOneHeld(c *claimTest) {
	for round := range 3 {
		places := make([]engine.Place, callers)
		claims := make([]engine.Claim, callers)
		atOnce(func(i int) {
			claims[i] = c.claim("w a")
			var err error
			if places[i], err = c.store.Enqueue(c.ctx, claims[i]); err != nil {
				c.Error(err)
			}
		})
		held, numbers := 0, map[int64]bool{}
		for _, p := range places {
			numbers[p.Number] = true
			if p.Held {
				held++
			}
		}
		if held != 1 || len(numbers) != callers {
			c.Fatalf("round %d: %d held, %d numbers", round, held, len(numbers))
		}
		granted := make([][]uuid.UUID, callers)
		atOnce(func(i int) {
			var err error
			if granted[i], err = c.store.Withdraw(c.ctx, c.instance, c.namespace, claims[i].ID); err != nil {
				c.Error(err)
			}
		})
		if all, err := c.store.ListClaims(c.ctx, "", 10); err != nil || len(all) != 0 {
			c.Fatalf("round %d: left %+v, %v", round, all, err)
		}
	}
}
