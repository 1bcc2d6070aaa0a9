package enginetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"checkoutlock/resource-locks/internal/engine"
)

// RunRandomClaims compares random calls of several instances with a model of the rule: a
// claim waits exactly for the earlier claims that it conflicts with. Each instance has one of
// the stores, which share their claims. Each sequence has a namespace of its own.
func RunRandomClaims(t *testing.T, stores []engine.ClaimStore, advance func(time.Duration)) {
	t.Helper()
	var instances []*claimTest
	for _, store := range stores {
		first := &claimTest{TB: t, ctx: t.Context(), store: store, advance: advance}
		instances = append(instances, first.other())
	}
	rapid.Check(t, func(t *rapid.T) {
		m := &claimsModel{instances: instances, namespace: uuid.NewString()}
		t.Repeat(map[string]func(*rapid.T){
			"enqueue": m.enqueue, "withdraw": m.withdraw, "disconnect": m.disconnect, "advance": m.advance, "": m.compare,
		})
	})
}

// claimsModel is what a store must have. It has its own clock.
type claimsModel struct {
	instances []*claimTest
	namespace string
	now       time.Duration
	last      int64
	claims    []*modelClaim // by number
}

type modelClaim struct {
	engine.Claim
	number int64
	held   bool
	endsAt time.Duration // 0 while it has a connection
}

func (m *claimsModel) drawInstance(t *rapid.T) *claimTest {
	return rapid.SampledFrom(m.instances).Draw(t, "instance")
}

func (m *claimsModel) enqueue(t *rapid.T) {
	of := m.drawInstance(t)
	segment := rapid.SampledFrom([]string{"", "a", "b", "ab", "\x01"})
	resource := rapid.Custom(func(t *rapid.T) engine.Resource {
		return engine.Resource{Path: rapid.SliceOfN(segment, 0, 3).Draw(t, "path"), Write: rapid.Bool().Draw(t, "write")}
	})
	q := engine.Claim{
		ID: uuid.New(), Namespace: m.namespace, Instance: of.instance, Abandon: abandonTime,
		Resources: rapid.SliceOfN(resource, 1, 3).Draw(t, "resources"),
	}
	place, err := of.store.Enqueue(of.ctx, q)
	m.last++
	m.claims = append(m.claims, &modelClaim{Claim: q, number: m.last})
	m.grantNext()
	if want := (engine.Place{Number: m.last, Held: m.claims[len(m.claims)-1].held}); err != nil || place != want {
		t.Fatalf("got %+v, %v, want %+v", place, err, want)
	}
}

// grantNext grants what the rule grants and returns it.
func (m *claimsModel) grantNext() []uuid.UUID {
	var granted []uuid.UUID
	for i, later := range m.claims {
		waits := slices.ContainsFunc(m.claims[:i], func(earlier *modelClaim) bool { return modelConflict(earlier.Claim, later.Claim) })
		if !waits && !later.held {
			later.held = true
			granted = append(granted, later.ID)
		}
	}
	return granted
}

// modelConflict compares paths by their segments.
func modelConflict(a, b engine.Claim) bool {
	for _, x := range a.Resources {
		for _, y := range b.Resources {
			related := true
			for i := range min(len(x.Path), len(y.Path)) {
				related = related && x.Path[i] == y.Path[i]
			}
			if related && (x.Write || y.Write) {
				return true
			}
		}
	}
	return false
}

// remove ends a claim in the model and checks the grants of the store.
func (m *claimsModel) remove(t *rapid.T, gone func(*modelClaim) bool, granted []uuid.UUID, err error) {
	m.claims = slices.DeleteFunc(m.claims, gone)
	if want := m.grantNext(); err != nil || !sameIDs(granted, want) {
		t.Fatalf("granted %v, %v, want %v", granted, err, want)
	}
}

func (m *claimsModel) drawClaim(t *rapid.T) *modelClaim {
	if len(m.claims) == 0 {
		return &modelClaim{Claim: engine.Claim{ID: uuid.New()}}
	}
	return rapid.SampledFrom(m.claims).Draw(t, "claim")
}

func (m *claimsModel) withdraw(t *rapid.T) {
	by, q := m.drawInstance(t), m.drawClaim(t)
	granted, err := by.store.Withdraw(by.ctx, by.instance, m.namespace, q.ID)
	m.remove(t, func(other *modelClaim) bool { return other == q }, granted, err)
}

func (m *claimsModel) disconnect(t *rapid.T) {
	by, q := m.drawInstance(t), m.drawClaim(t)
	granted, err := by.store.Disconnect(by.ctx, by.instance, m.namespace, q.ID)
	if q.held && q.endsAt == 0 {
		q.endsAt = m.now + q.Abandon
	}
	m.remove(t, func(other *modelClaim) bool { return other == q && !q.held }, granted, err)
}

// advance passes time, keeps both leases and settles.
func (m *claimsModel) advance(t *rapid.T) {
	by := m.drawInstance(t)
	d := rapid.SampledFrom([]time.Duration{1, 3, 5}).Draw(t, "minutes") * time.Minute
	m.now += d
	by.advance(d)
	for _, i := range m.instances {
		if err := i.store.KeepLease(i.ctx, i.instance, leaseTime); err != nil {
			t.Fatal(err)
		}
	}
	granted, _, err := by.store.Settle(by.ctx, by.instance)
	m.remove(t, func(q *modelClaim) bool { return q.endsAt != 0 && q.endsAt <= m.now }, m.own(t, granted), err)
}

// own leaves out claims of earlier sequences, which Settle ends too.
func (m *claimsModel) own(t *rapid.T, ids []uuid.UUID) []uuid.UUID {
	t.Helper()
	return slices.DeleteFunc(ids, func(id uuid.UUID) bool {
		return !slices.ContainsFunc(m.claims, func(q *modelClaim) bool { return q.ID == id })
	})
}

func (m *claimsModel) compare(t *rapid.T) {
	c := m.drawInstance(t)
	all, err := c.store.ListClaims(c.ctx, m.namespace, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, info := range all {
		got = append(got, fmt.Sprint(info.Number, info.ID, info.Held, !info.EndsAt.IsZero()))
		waitsFor := slices.IndexFunc(m.claims, func(q *modelClaim) bool { return q.number == info.WaitsFor })
		if info.Held != (info.WaitsFor == 0) || !info.Held && (waitsFor < 0 || !modelConflict(m.claims[waitsFor].Claim, info.Claim)) {
			t.Fatalf("claim %d waits for %d", info.Number, info.WaitsFor)
		}
	}
	for _, q := range m.claims {
		want = append(want, fmt.Sprint(q.number, q.ID, q.held, q.endsAt != 0))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the store has %v, the model %v", got, want)
	}
}
