package enginetest

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
)

// record is the last lock of a key.
type record struct {
	lock    engine.Lock
	endedAt time.Time // of a release or a counted expiry, else zero
	forced  bool
}

func (r *record) live(now time.Time) bool {
	return r != nil && r.endedAt.IsZero() && now.Before(r.lock.ExpiresAt)
}

// expiredUncounted reports whether the lock is outdated and no caller has seen that yet.
func (r *record) expiredUncounted(now time.Time) bool {
	return r != nil && r.endedAt.IsZero() && !now.Before(r.lock.ExpiresAt)
}

// shown returns a copy that later changes do not reach.
func (r *record) shown() engine.Lock {
	l := r.lock
	l.Requests = slices.Clone(l.Requests)
	return l
}

// Acquire implements engine.LockStore.
func (s *Store) Acquire(ctx context.Context, a engine.Acquire) (engine.Result, error) {
	return answer(ctx, s, func(now time.Time) (engine.Result, error) {
		r := s.locks[a.Key]
		switch {
		case r.live(now) && r.lock.Owner != a.Owner:
			return engine.Result{Lock: r.shown(), Outcome: engine.Held}, nil
		case r.live(now) && a.Keep:
			return engine.Result{Lock: r.shown(), Outcome: engine.Kept}, nil
		case r.live(now):
			r.lock.Kind, r.lock.Value = a.Kind, a.Value
			r.lock.RenewedAt, r.lock.ExpiresAt = now, now.Add(a.TTL)
			return engine.Result{Lock: r.shown(), Outcome: engine.Renewed}, nil
		}
		expired := r.expiredUncounted(now)
		r = s.grant(a, now)
		return engine.Result{Lock: r.shown(), Outcome: engine.Granted, Expired: expired}, nil
	})
}

func (s *Store) grant(a engine.Acquire, now time.Time) *record {
	s.fence++
	r := &record{lock: engine.Lock{
		Key: a.Key, ID: uuid.New(), Fence: s.fence, Owner: a.Owner, Kind: a.Kind, Value: a.Value,
		GrantedAt: now, RenewedAt: now, ExpiresAt: now.Add(a.TTL),
	}}
	s.locks[a.Key] = r
	return r
}

// Refresh implements engine.LockStore.
func (s *Store) Refresh(ctx context.Context, q engine.Refresh) (engine.Result, error) {
	return answer(ctx, s, func(now time.Time) (engine.Result, error) {
		r := s.locks[q.Key]
		switch {
		case r == nil || r.lock.ID != q.ID || r.forced:
			return engine.Result{Outcome: engine.UnknownID}, nil
		case r.live(now) && r.lock.Owner != q.Owner:
			return engine.Result{Lock: r.shown(), Outcome: engine.Held}, nil
		case r.live(now):
			r.lock.RenewedAt, r.lock.ExpiresAt = now, now.Add(q.TTL)
			return engine.Result{Lock: r.shown(), Outcome: engine.Renewed}, nil
		}
		end := cmp.Or(r.endedAt, r.lock.ExpiresAt)
		if r.lock.Owner != q.Owner || now.Sub(end) >= q.ResumeWithin {
			return engine.Result{Outcome: engine.UnknownID}, nil
		}
		value, err := amend(r.lock.Value, q.Amend)
		if err != nil {
			return engine.Result{}, err
		}
		expired := r.expiredUncounted(now)
		r = s.grant(engine.Acquire{Key: q.Key, Owner: q.Owner, Kind: r.lock.Kind, Value: value, TTL: q.TTL}, now)
		r.lock.ID = cmp.Or(q.ResumeAs, r.lock.ID)
		return engine.Result{Lock: r.shown(), Outcome: engine.Granted, Expired: expired}, nil
	})
}

// amend sets the members of a JSON object in another one.
func amend(value, members string) (string, error) {
	if members == "" {
		return value, nil
	}
	amended := map[string]any{}
	for _, object := range []string{value, members} {
		if err := json.Unmarshal([]byte(object), &amended); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(amended)
	return string(text), err
}

// Release implements engine.LockStore.
func (s *Store) Release(ctx context.Context, key engine.Key, owner string) (engine.Result, error) {
	return answer(ctx, s, func(now time.Time) (engine.Result, error) {
		r := s.locks[key]
		switch {
		case !r.live(now):
			return engine.Result{Outcome: engine.Free}, nil
		case r.lock.Owner != owner:
			return engine.Result{Lock: r.shown(), Outcome: engine.Held}, nil
		}
		r.endedAt = now
		return engine.Result{Lock: r.shown(), Outcome: engine.Released}, nil
	})
}

// ForceRelease implements engine.LockStore.
func (s *Store) ForceRelease(ctx context.Context, key engine.Key, id uuid.UUID, n engine.Note) (engine.Lock, error) {
	return answer(ctx, s, func(now time.Time) (engine.Lock, error) {
		r := s.locks[key]
		if !r.live(now) || r.lock.ID != id {
			return engine.Lock{}, errNoLock()
		}
		r.endedAt, r.forced = now, true
		s.releases = append(s.releases, engine.Release{
			Note: n, Namespace: key.Namespace, Name: key.Name, Owner: r.lock.Owner, Fence: r.lock.Fence, At: now,
		})
		return r.shown(), nil
	})
}

func errNoLock() error { return fault.New(fault.NotFound, "There is no such lock") }

// Ask implements engine.LockStore.
func (s *Store) Ask(ctx context.Context, key engine.Key, a engine.AskedFor) (engine.Lock, error) {
	return answer(ctx, s, func(now time.Time) (engine.Lock, error) {
		r := s.locks[key]
		if !r.live(now) {
			return engine.Lock{}, errNoLock()
		}
		a.At = now
		r.lock.Requests = slices.DeleteFunc(r.lock.Requests, func(b engine.AskedFor) bool { return b.By == a.By })
		r.lock.Requests = append(r.lock.Requests, a)
		if more := len(r.lock.Requests) - engine.MaxRequests; more > 0 {
			r.lock.Requests = r.lock.Requests[more:]
		}
		return r.shown(), nil
	})
}

// Fetch implements engine.LockStore.
func (s *Store) Fetch(ctx context.Context, key engine.Key) (engine.Lock, error) {
	return answer(ctx, s, func(now time.Time) (engine.Lock, error) {
		r := s.locks[key]
		if !r.live(now) {
			return engine.Lock{}, errNoLock()
		}
		return r.shown(), nil
	})
}

// List implements engine.LockStore.
func (s *Store) List(ctx context.Context, f engine.Filter) ([]engine.Lock, error) {
	return answer(ctx, s, func(now time.Time) ([]engine.Lock, error) {
		var found []engine.Lock
		for _, r := range s.locks {
			if r.live(now) && matches(f, r.lock) {
				found = append(found, r.shown())
			}
		}
		slices.SortFunc(found, func(a, b engine.Lock) int { return compareKeys(a.Key, b.Key) })
		if f.Limit > 0 && len(found) > f.Limit {
			found = found[:f.Limit]
		}
		return found, nil
	})
}

func matches(f engine.Filter, l engine.Lock) bool {
	return (l.Namespace == f.Namespace || f.Namespace == "" || f.Prefix && strings.HasPrefix(l.Namespace, f.Namespace)) &&
		(f.Names == nil || slices.Contains(f.Names, l.Name)) &&
		(f.Kind == "" || f.Kind == l.Kind) &&
		(f.After == engine.Key{} || compareKeys(l.Key, f.After) > 0)
}

func compareKeys(a, b engine.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Count implements engine.LockStore.
func (s *Store) Count(ctx context.Context) ([]engine.KindCount, error) {
	return answer(ctx, s, func(now time.Time) ([]engine.KindCount, error) {
		counts := map[engine.KindCount]int{}
		for _, r := range s.locks {
			if r.live(now) {
				counts[engine.KindCount{Namespace: r.lock.Namespace, Kind: r.lock.Kind}]++
			}
		}
		var found []engine.KindCount
		for c, n := range counts {
			c.Locks = n
			found = append(found, c)
		}
		slices.SortFunc(found, func(a, b engine.KindCount) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind))
		})
		return found, nil
	})
}

// Sweep implements engine.LockStore.
func (s *Store) Sweep(ctx context.Context, keep time.Duration, limit int) ([]engine.Lock, error) {
	return answer(ctx, s, func(now time.Time) ([]engine.Lock, error) {
		var expired []engine.Lock
		for key, r := range s.locks {
			switch {
			case r.expiredUncounted(now) && len(expired) < limit:
				r.endedAt = r.lock.ExpiresAt
				expired = append(expired, r.shown())
			case !r.endedAt.IsZero() && now.Sub(r.endedAt) > keep:
				delete(s.locks, key)
			}
		}
		return expired, nil
	})
}

// Releases implements engine.LockStore.
func (s *Store) Releases(ctx context.Context, limit int) ([]engine.Release, error) {
	return answer(ctx, s, func(time.Time) ([]engine.Release, error) {
		latest := slices.Clone(s.releases)
		slices.Reverse(latest)
		return latest[:min(limit, len(latest))], nil
	})
}
