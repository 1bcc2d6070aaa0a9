package enginetest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
)

// namespace is the claims of a namespace, ordered by number.
type namespace struct {
	last   int64
	claims []*claim
}

type claim struct {
	engine.ClaimInfo
	isNew bool // granted by another instance, and not noted yet
}

// ended reports whether a claim's time is over.
func (s *Store) ended(c *claim, now time.Time) bool {
	if !c.EndsAt.IsZero() {
		return !now.Before(c.EndsAt)
	}
	until := s.leases[c.Instance]
	if c.Held {
		until = until.Add(c.Abandon)
	}
	return !now.Before(until)
}

// StartLease implements engine.ClaimStore.
func (s *Store) StartLease(ctx context.Context, instance uuid.UUID, length time.Duration) error {
	return s.run(ctx, func(now time.Time) error {
		s.leases[instance] = now.Add(length)
		return nil
	})
}

// KeepLease implements engine.ClaimStore.
func (s *Store) KeepLease(ctx context.Context, instance uuid.UUID, length time.Duration) error {
	return s.run(ctx, func(now time.Time) error {
		if !s.leased(instance, now) {
			return fault.New(fault.NotFound, "The lease has ended")
		}
		s.leases[instance] = now.Add(length)
		return nil
	})
}

func (s *Store) leased(instance uuid.UUID, now time.Time) bool {
	return now.Before(s.leases[instance])
}

// EndLease implements engine.ClaimStore.
func (s *Store) EndLease(ctx context.Context, instance uuid.UUID) error {
	return s.run(ctx, func(now time.Time) error {
		if s.leased(instance, now) {
			s.leases[instance] = now
		}
		return nil
	})
}

// OpenNamespace implements engine.ClaimStore.
func (s *Store) OpenNamespace(ctx context.Context, name string) error {
	return s.run(ctx, func(time.Time) error {
		s.open(name)
		return nil
	})
}

func (s *Store) open(name string) *namespace {
	if s.namespaces[name] == nil {
		s.namespaces[name] = &namespace{}
	}
	return s.namespaces[name]
}

// Enqueue implements engine.ClaimStore.
func (s *Store) Enqueue(ctx context.Context, q engine.Claim) (engine.Place, error) {
	return answer(ctx, s, func(now time.Time) (engine.Place, error) {
		n := s.open(q.Namespace)
		if c := n.find(q.ID); c != nil {
			return c.Place, nil
		}
		if !s.leased(q.Instance, now) {
			return engine.Place{}, fault.New(fault.Unavailable, "The lease of this instance has ended: try again")
		}
		n.last++
		c := &claim{ClaimInfo: engine.ClaimInfo{Claim: q, Place: engine.Place{Number: n.last}, QueuedAt: now}}
		n.claims = append(n.claims, c)
		s.grantNext(n, q.Instance, now)
		c.isNew = false
		return c.Place, nil
	})
}

func (n *namespace) find(id uuid.UUID) *claim {
	if n == nil {
		return nil
	}
	for _, c := range n.claims {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// grantNext grants the claims that wait for none any more, and returns them. Those of an ended lease
// end at once.
func (s *Store) grantNext(n *namespace, caller uuid.UUID, now time.Time) []uuid.UUID {
	var granted []uuid.UUID
	for i, c := range n.claims {
		if c.Held {
			continue
		}
		c.WaitsFor = 0
		for _, earlier := range n.claims[:i] {
			if conflict(earlier.Resources, c.Resources) {
				c.WaitsFor = earlier.Number
			}
		}
		if c.WaitsFor == 0 {
			c.Held, c.HeldAt, c.isNew = true, now, c.Instance != caller
			if !s.leased(c.Instance, now) {
				c.EndsAt = now
			}
			granted = append(granted, c.ID)
		}
	}
	return granted
}

// conflict reports whether two claims have related resources of which one is a write.
func conflict(a, b []engine.Resource) bool {
	for _, x := range a {
		for _, y := range b {
			shorter := min(len(x.Path), len(y.Path))
			if (x.Write || y.Write) && slices.Equal(x.Path[:shorter], y.Path[:shorter]) {
				return true
			}
		}
	}
	return false
}

// remove deletes the claims for which gone holds. It returns them and those that are
// granted instead.
func (s *Store) remove(n *namespace, caller uuid.UUID, now time.Time, gone func(*claim) bool) (granted []uuid.UUID, removed []engine.ClaimInfo) {
	if n == nil {
		return nil, nil
	}
	n.claims = slices.DeleteFunc(n.claims, func(c *claim) bool {
		if !gone(c) {
			return false
		}
		removed = append(removed, c.ClaimInfo)
		return true
	})
	return s.grantNext(n, caller, now), removed
}

// Withdraw implements engine.ClaimStore.
func (s *Store) Withdraw(ctx context.Context, caller uuid.UUID, name string, id uuid.UUID) ([]uuid.UUID, error) {
	return answer(ctx, s, func(now time.Time) ([]uuid.UUID, error) {
		granted, _ := s.remove(s.namespaces[name], caller, now, func(c *claim) bool { return c.ID == id })
		return granted, nil
	})
}

// Disconnect implements engine.ClaimStore.
func (s *Store) Disconnect(ctx context.Context, caller uuid.UUID, name string, id uuid.UUID) ([]uuid.UUID, error) {
	return answer(ctx, s, func(now time.Time) ([]uuid.UUID, error) {
		n := s.namespaces[name]
		if c := n.find(id); c != nil && c.Held && c.Abandon > 0 {
			if until := s.leases[c.Instance]; until.Before(now) {
				now = until
			}
			if c.EndsAt.IsZero() {
				c.EndsAt = now.Add(c.Abandon)
			}
			return nil, nil
		}
		granted, _ := s.remove(n, caller, now, func(c *claim) bool { return c.ID == id })
		return granted, nil
	})
}

// Settle implements engine.ClaimStore.
func (s *Store) Settle(ctx context.Context, caller uuid.UUID) (granted []uuid.UUID, ended []engine.ClaimInfo, err error) {
	err = s.run(ctx, func(now time.Time) error {
		for _, n := range s.namespaces {
			next, removed := s.remove(n, caller, now, func(c *claim) bool { return s.ended(c, now) })
			granted, ended = append(granted, next...), append(ended, removed...)
		}
		return nil
	})
	return granted, ended, err
}

// ForceWithdraw implements engine.ClaimStore.
func (s *Store) ForceWithdraw(ctx context.Context, caller uuid.UUID, name string, id uuid.UUID, note engine.Note) ([]uuid.UUID, error) {
	return answer(ctx, s, func(now time.Time) ([]uuid.UUID, error) {
		n := s.namespaces[name]
		c := n.find(id)
		if c == nil {
			return nil, fault.New(fault.NotFound, "There is no such claim")
		}
		s.releases = append(s.releases, engine.Release{
			Note: note, Namespace: name, Name: engine.FormatResources(c.Resources), Owner: c.Owner, Fence: c.Number, At: now,
		})
		granted, _ := s.remove(n, caller, now, func(c *claim) bool { return c.ID == id })
		return granted, nil
	})
}

// all returns the claims of all namespaces by namespace and number.
func (s *Store) all() []*claim {
	var found []*claim
	for _, name := range slices.Sorted(maps.Keys(s.namespaces)) {
		found = append(found, s.namespaces[name].claims...)
	}
	return found
}

// NewGrants implements engine.ClaimStore.
func (s *Store) NewGrants(ctx context.Context, instance uuid.UUID) ([]uuid.UUID, error) {
	return answer(ctx, s, func(time.Time) ([]uuid.UUID, error) {
		var found []uuid.UUID
		for _, c := range s.all() {
			if c.Instance == instance && c.isNew {
				found = append(found, c.ID)
			}
		}
		return found, nil
	})
}

// NoteGrants implements engine.ClaimStore.
func (s *Store) NoteGrants(ctx context.Context, ids []uuid.UUID) ([]uuid.UUID, error) {
	return answer(ctx, s, func(time.Time) (held []uuid.UUID, _ error) {
		for _, c := range s.all() {
			if c.Held && c.EndsAt.IsZero() && slices.Contains(ids, c.ID) {
				c.isNew = false
				held = append(held, c.ID)
			}
		}
		return held, nil
	})
}

// ClaimsOf implements engine.ClaimStore.
func (s *Store) ClaimsOf(ctx context.Context, instance, after uuid.UUID, page []engine.ClaimState) ([]engine.ClaimState, error) {
	return answer(ctx, s, func(time.Time) ([]engine.ClaimState, error) {
		var found []engine.ClaimState
		for _, c := range s.all() {
			if c.Instance == instance && c.EndsAt.IsZero() && bytes.Compare(c.ID[:], after[:]) > 0 {
				found = append(found, engine.ClaimState{ID: c.ID, Namespace: c.Namespace, Held: c.Held})
			}
		}
		slices.SortFunc(found, func(a, b engine.ClaimState) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		return page[:copy(page, found)], nil
	})
}

// Stats implements engine.ClaimStore.
func (s *Store) Stats(ctx context.Context, name string) (engine.NamespaceStats, error) {
	return answer(ctx, s, func(time.Time) (engine.NamespaceStats, error) {
		n := s.namespaces[name]
		if n == nil {
			return engine.NamespaceStats{}, fault.New(fault.NotFound, "Namespace not found")
		}
		stats := engine.NamespaceStats{LastNumber: n.last}
		paths := map[string]bool{}
		for _, c := range n.claims {
			if c.Held {
				stats.Held++
				stats.HeldResources += len(c.Resources)
			} else {
				stats.Waiting++
				stats.WaitingResources += len(c.Resources)
			}
			for _, r := range c.Resources {
				paths[fmt.Sprintf("%q", r.Path)] = true
			}
		}
		stats.Paths = len(paths)
		return stats, nil
	})
}

// ListClaims implements engine.ClaimStore.
func (s *Store) ListClaims(ctx context.Context, namespace string, limit int) ([]engine.ClaimInfo, error) {
	return answer(ctx, s, func(time.Time) ([]engine.ClaimInfo, error) {
		var found []engine.ClaimInfo
		for _, c := range s.all() {
			if namespace == "" || c.Namespace == namespace {
				found = append(found, c.ClaimInfo)
			}
		}
		slices.SortStableFunc(found, func(a, b engine.ClaimInfo) int { return cmp.Compare(a.Namespace, b.Namespace) })
		return found[:min(limit, len(found))], nil
	})
}
