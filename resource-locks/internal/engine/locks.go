package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"checkoutlock/schemas/fault"
)

// Observer receives events, for metrics and the list of the latest events. Its methods
// are called from many goroutines and must not block.
type Observer interface {
	Observe(e Event)
}

// EventKind is what happened to a lock or a claim.
type EventKind string

// The kinds of events.
const (
	EventGranted   EventKind = "granted"
	EventRenewed   EventKind = "renewed"
	EventRefused   EventKind = "refused"
	EventReleased  EventKind = "released"
	EventExpired   EventKind = "expired"
	EventForced    EventKind = "forced"
	EventRequested EventKind = "requested" // another user asked for it
	EventQueued    EventKind = "queued"    // a claim began to wait
)

// EventKinds returns every kind, in the order of declaration.
func EventKinds() []EventKind {
	return []EventKind{EventGranted, EventRenewed, EventRefused, EventReleased, EventExpired, EventForced, EventRequested, EventQueued}
}

// Event is one event of this instance.
type Event struct {
	Kind      EventKind
	Claim     bool // of a claim, otherwise of a flat lock
	Namespace string
	Name      string // of the lock, or the paths of the claim
	LockKind  string // of the lock; for EventExpired at an acquire, of the new one
	Owner     string // of the lock; for EventRefused, who was refused
	At        time.Time
}

// Locks is the flat locks of all fronts: it checks what callers say, asks the store, and
// reports events. It is safe for concurrent use.
type Locks struct {
	store    LockStore
	observer Observer
	counting singleflight.Group
}

// NewLocks returns the locks of a store.
func NewLocks(store LockStore, observer Observer) *Locks {
	return &Locks{store: store, observer: observer}
}

// Acquire is LockStore.Acquire. It shortens a TTL above MaxTTL. Fault: Invalid.
func (l *Locks) Acquire(ctx context.Context, a Acquire) (Result, error) {
	err := cmp.Or(checkKeyAndOwner(a.Key, a.Owner), checkText("the kind", a.Kind, MaxName), checkValue("the value", a.Value), checkTTL(a.TTL))
	if err != nil {
		return Result{}, err
	}
	a.TTL = min(a.TTL, MaxTTL)
	r, err := l.store.Acquire(ctx, a)
	if err != nil {
		return Result{}, err
	}
	l.reportResult(r, a.Key, a.Kind, a.Owner, "")
	return r, nil
}

// Refresh is LockStore.Refresh. Fault: Invalid.
func (l *Locks) Refresh(ctx context.Context, q Refresh) (Result, error) {
	if err := cmp.Or(checkKeyAndOwner(q.Key, q.Owner), checkTTL(q.TTL), checkValue("the amendment", q.Amend)); err != nil {
		return Result{}, err
	}
	q.TTL = min(q.TTL, MaxTTL)
	r, err := l.store.Refresh(ctx, q)
	if err != nil {
		return Result{}, err
	}
	l.reportResult(r, q.Key, r.Lock.Kind, q.Owner, q.Owner)
	return r, nil
}

// outcomeEvents are how acquires and refreshes end. The other outcomes are no events.
var outcomeEvents = map[Outcome]EventKind{Granted: EventGranted, Renewed: EventRenewed, Held: EventRefused, UnknownID: EventRefused}

// reportResult reports how an acquire or a refresh ended, and whose lock had expired before it.
func (l *Locks) reportResult(r Result, key Key, kind, owner, expired string) {
	if r.Expired {
		l.report(EventExpired, key, kind, expired)
	}
	if event, ok := outcomeEvents[r.Outcome]; ok {
		l.report(event, key, kind, owner)
	}
}

// Release is LockStore.Release. Fault: Invalid.
func (l *Locks) Release(ctx context.Context, key Key, owner string) (Result, error) {
	if err := cmp.Or(checkKey(key), checkText("the owner", owner, MaxName)); err != nil {
		return Result{}, err
	}
	r, err := l.store.Release(ctx, key, owner)
	if err == nil && r.Outcome == Released {
		l.report(EventReleased, key, r.Lock.Kind, owner)
	}
	return r, err
}

// ForceRelease is LockStore.ForceRelease. Fault: Invalid.
func (l *Locks) ForceRelease(ctx context.Context, key Key, id uuid.UUID, n Note) (Lock, error) {
	if err := cmp.Or(checkKey(key), n.Check()); err != nil {
		return Lock{}, err
	}
	lock, err := l.store.ForceRelease(ctx, key, id, n)
	if err == nil {
		l.report(EventForced, key, lock.Kind, lock.Owner)
	}
	return lock, err
}

// Ask is LockStore.Ask. Fault: Invalid.
func (l *Locks) Ask(ctx context.Context, key Key, a AskedFor) (Lock, error) {
	err := cmp.Or(checkKeyAndOwner(key, a.By), checkText("the name", a.Name, MaxName), checkText("the message", a.Message, MaxMessage))
	if err != nil {
		return Lock{}, err
	}
	lock, err := l.store.Ask(ctx, key, a)
	if err == nil {
		l.report(EventRequested, key, lock.Kind, a.By)
	}
	return lock, err
}

// Fetch is LockStore.Fetch. Fault: Invalid.
func (l *Locks) Fetch(ctx context.Context, key Key) (Lock, error) {
	if err := checkKey(key); err != nil {
		return Lock{}, err
	}
	return l.store.Fetch(ctx, key)
}

// List is LockStore.List. Fault: Invalid.
func (l *Locks) List(ctx context.Context, f Filter) ([]Lock, error) {
	for _, text := range append([]string{f.Namespace, f.Kind, f.After.Namespace, f.After.Name}, f.Names...) {
		if err := checkText("the filter", text, MaxName); err != nil {
			return nil, err
		}
	}
	return l.store.List(ctx, f)
}

// walkPage is how many locks Walk reads at once, and how many names it looks up at once.
const walkPage = 200

// Walk calls visit with the live locks that match, and ends at its first error. It reads them
// in pages, so that memory does not grow with their number: a lock that lives all the time is
// visited once, another one may be. It does not use After and Limit of the filter. Fault:
// Invalid.
func (l *Locks) Walk(ctx context.Context, f Filter, visit func(Lock) error) error {
	if f.Names == nil {
		return l.walkPages(ctx, f, visit)
	}
	for names := range slices.Chunk(f.Names, walkPage) {
		f.Names = names
		if err := l.walkPages(ctx, f, visit); err != nil {
			return err
		}
	}
	return nil
}

func (l *Locks) walkPages(ctx context.Context, f Filter, visit func(Lock) error) error {
	f.After, f.Limit = Key{}, walkPage
	for {
		page, err := l.List(ctx, f)
		if err != nil {
			return err
		}
		for _, lock := range page {
			if err := visit(lock); err != nil {
				return err
			}
		}
		if len(page) < walkPage {
			return nil
		}
		f.After = page[walkPage-1].Key
	}
}

// countTimeout bounds a count, because it reads all locks.
const countTimeout = 2 * time.Second

// Count is LockStore.Count. Calls at once share one count, such as the metrics of a scrape.
// Those have goroutines of their own, so a panic is an error.
func (l *Locks) Count(ctx context.Context) ([]KindCount, error) {
	counts, err, _ := l.counting.Do("", func() (_ any, err error) {
		defer fault.Recover(&err)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTimeout)
		defer cancel()
		return l.store.Count(ctx)
	})
	found, _ := counts.([]KindCount)
	return found, err
}

// Sweep is LockStore.Sweep.
func (l *Locks) Sweep(ctx context.Context, keep time.Duration, limit int) ([]Lock, error) {
	expired, err := l.store.Sweep(ctx, keep, limit)
	for _, lock := range expired {
		l.report(EventExpired, lock.Key, lock.Kind, lock.Owner)
	}
	return expired, err
}

// Releases is LockStore.Releases.
func (l *Locks) Releases(ctx context.Context, limit int) ([]Release, error) {
	return l.store.Releases(ctx, limit)
}

func (l *Locks) report(kind EventKind, key Key, lockKind, owner string) {
	l.observer.Observe(Event{Kind: kind, Namespace: key.Namespace, Name: key.Name, LockKind: lockKind, Owner: owner, At: time.Now()})
}

func checkTTL(ttl time.Duration) error {
	if ttl < time.Millisecond {
		return fault.New(fault.Invalid, "the time to live is below 1 ms")
	}
	return nil
}

func checkValue(what, value string) error {
	if len(value) > MaxValue {
		return fault.New(fault.Invalid, "%s has more than %d bytes", what, MaxValue)
	}
	return checkText(what, value, MaxValue)
}

func checkKeyAndOwner(key Key, owner string) error {
	return cmp.Or(checkKey(key), checkGiven("the owner", owner, MaxName))
}

func checkKey(key Key) error {
	return cmp.Or(checkGiven("the namespace", key.Namespace, MaxNamespace), checkText("the name", key.Name, MaxName))
}

// checkGiven is checkText for what must not be empty.
func checkGiven(what, text string, longest int) error {
	if text == "" {
		return fault.New(fault.Invalid, "%s is empty", what)
	}
	return checkText(what, text, longest)
}
