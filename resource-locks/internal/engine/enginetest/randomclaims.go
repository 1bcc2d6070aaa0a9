package enginetest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"checkoutlock/resource-locks/internal/engine"
)

// RunRandomClaims makes the same random calls of several instances on the stores and on a Store in
// memory, and compares how they end. Each instance has one of the stores, which share their claims.
// Each sequence has a namespace of its own.
func RunRandomClaims(t *testing.T, stores []engine.ClaimStore, advance func(time.Duration)) {
	t.Helper()
	var instances []*claimTest
	for _, store := range stores {
		first := &claimTest{TB: t, ctx: t.Context(), store: store, advance: advance}
		instances = append(instances, first.other())
	}
	rapid.Check(t, func(t *rapid.T) {
		r := &randomClaims{instances: instances, namespace: uuid.NewString(), memory: NewStore()}
		for _, i := range instances {
			_ = r.memory.StartLease(i.ctx, i.instance, leaseTime) // it never fails
		}
		t.Repeat(map[string]func(*rapid.T){
			"enqueue": r.enqueue, "withdraw": r.withdraw, "disconnect": r.disconnect, "advance": r.advance, "": r.compare,
		})
	})
}

// randomClaims is one sequence of calls.
type randomClaims struct {
	instances []*claimTest
	namespace string
	memory    *Store // has what the stores must have
}

func (r *randomClaims) drawInstance(t *rapid.T) *claimTest {
	return rapid.SampledFrom(r.instances).Draw(t, "instance")
}

func (r *randomClaims) enqueue(t *rapid.T) {
	of := r.drawInstance(t)
	segment := rapid.SampledFrom([]string{"", "a", "b", "ab", "\x01"})
	resource := rapid.Custom(func(t *rapid.T) engine.Resource {
		return engine.Resource{Path: rapid.SliceOfN(segment, 0, 3).Draw(t, "path"), Write: rapid.Bool().Draw(t, "write")}
	})
	q := engine.Claim{
		ID: uuid.New(), Namespace: r.namespace, Instance: of.instance, Abandon: abandonTime,
		Resources: rapid.SliceOfN(resource, 1, 3).Draw(t, "resources"),
	}
	want, _ := r.memory.Enqueue(of.ctx, q)
	if got, err := of.store.Enqueue(of.ctx, q); err != nil || got != want {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
}

func (r *randomClaims) drawClaim(t *rapid.T) uuid.UUID {
	claims := r.memory.all()
	if len(claims) == 0 {
		return uuid.New()
	}
	return rapid.SampledFrom(claims).Draw(t, "claim").ID
}

// judge compares which claims a store has granted with those in memory.
func (r *randomClaims) judge(t *rapid.T, got []uuid.UUID, err error, want []uuid.UUID) {
	if err != nil || !sameIDs(got, want) {
		t.Fatalf("granted %v, %v, want %v", got, err, want)
	}
}

func (r *randomClaims) withdraw(t *rapid.T) {
	by, id := r.drawInstance(t), r.drawClaim(t)
	want, _ := r.memory.Withdraw(by.ctx, by.instance, r.namespace, id)
	got, err := by.store.Withdraw(by.ctx, by.instance, r.namespace, id)
	r.judge(t, got, err, want)
}

func (r *randomClaims) disconnect(t *rapid.T) {
	by, id := r.drawInstance(t), r.drawClaim(t)
	want, _ := r.memory.Disconnect(by.ctx, by.instance, r.namespace, id)
	got, err := by.store.Disconnect(by.ctx, by.instance, r.namespace, id)
	r.judge(t, got, err, want)
}

// advance passes time, keeps all leases and settles.
func (r *randomClaims) advance(t *rapid.T) {
	by := r.drawInstance(t)
	d := rapid.SampledFrom([]time.Duration{1, 3, 5}).Draw(t, "minutes") * time.Minute
	r.memory.Advance(d)
	by.advance(d)
	for _, i := range r.instances {
		for _, store := range []engine.ClaimStore{r.memory, i.store} {
			if err := store.KeepLease(i.ctx, i.instance, leaseTime); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, _, _ := r.memory.Settle(by.ctx, by.instance)
	got, _, err := by.store.Settle(by.ctx, by.instance)
	// Settle grants claims of earlier sequences too.
	own := slices.DeleteFunc(got, func(id uuid.UUID) bool { return r.memory.namespaces[r.namespace].find(id) == nil })
	r.judge(t, own, err, want)
}

func (r *randomClaims) compare(t *rapid.T) {
	c := r.drawInstance(t)
	want, _ := r.memory.ListClaims(c.ctx, r.namespace, 1<<30)
	got, err := c.store.ListClaims(c.ctx, r.namespace, 1<<30)
	if err != nil || !slices.EqualFunc(got, want, func(a, b engine.ClaimInfo) bool {
		return a.Place == b.Place && a.ID == b.ID && a.EndsAt.IsZero() == b.EndsAt.IsZero()
	}) {
		t.Fatalf("the store has %+v, %v, want %+v", got, err, want)
	}
	for _, info := range got { // a store may name any claim that a claim waits for
		before := slices.IndexFunc(want, func(b engine.ClaimInfo) bool { return b.Number == info.WaitsFor })
		if info.Held != (info.WaitsFor == 0) || !info.Held && (before < 0 || !conflict(want[before].Resources, info.Resources)) {
			t.Fatalf("claim %d waits for %d", info.Number, info.WaitsFor)
		}
	}
}
