package commit

import (
	"context"
	"time"

	"checkoutlock/schemas"
)

// Kind is what a commit does to requests, for metrics.
type Kind string

// The kinds. An edit that closes a request counts as a cancellation.
const (
	RequestPlacement    Kind = "request-placement"
	RequestEdit         Kind = "request-edit"
	RequestCancellation Kind = "request-cancellation"
	RequestDeletion     Kind = "request-deletion"
	RequestMoving       Kind = "request-move"
	QueueOrdering       Kind = "queue-order"
)

// Kinds returns every kind, in the order of declaration.
func Kinds() []Kind {
	return []Kind{RequestPlacement, RequestEdit, RequestCancellation, RequestDeletion, RequestMoving, QueueOrdering}
}

// RequestObserver receives the ends of commits of requests. Its methods are called from many
// goroutines and must not block.
type RequestObserver interface {
	// RequestsChanged gets Committed for a repeat too, because a store answers both alike.
	RequestsChanged(kind Kind, o Outcome, took time.Duration)
	RequestsExpired(n int)
}

// RequestStore is all that commits requests.
type RequestStore interface {
	Store
	QueueStore
}

// CountRequests returns the store with obs, which receives the end of each commit of requests.
func CountRequests(store RequestStore, obs RequestObserver) RequestStore {
	return countedRequests{store, obs}
}

type countedRequests struct {
	RequestStore
	obs RequestObserver
}

// Place implements Store.
func (c countedRequests) Place(ctx context.Context, p Placement) (schemas.PlacedRequest, error) {
	start := time.Now()
	placed, err := c.RequestStore.Place(ctx, p)
	c.observe(RequestPlacement, start, err)
	return placed, err
}

// ChangeRequest implements QueueStore.
func (c countedRequests) ChangeRequest(ctx context.Context, r RequestChange) error {
	start := time.Now()
	err := c.RequestStore.ChangeRequest(ctx, r)
	c.observe(r.kind(), start, err)
	return err
}

// MoveRequest implements QueueStore.
func (c countedRequests) MoveRequest(ctx context.Context, m RequestMove) (schemas.PlacedRequest, error) {
	start := time.Now()
	moved, err := c.RequestStore.MoveRequest(ctx, m)
	c.observe(RequestMoving, start, err)
	return moved, err
}

// OrderQueue implements QueueStore.
func (c countedRequests) OrderQueue(ctx context.Context, o QueueOrder) (schemas.OrderedQueue, error) {
	start := time.Now()
	ordered, err := c.RequestStore.OrderQueue(ctx, o)
	c.observe(QueueOrdering, start, err)
	return ordered, err
}

// ExpireRequests implements QueueStore.
func (c countedRequests) ExpireRequests(ctx context.Context, limit int) (int, error) {
	n, err := c.RequestStore.ExpireRequests(ctx, limit)
	c.obs.RequestsExpired(n)
	return n, err
}

func (c countedRequests) observe(kind Kind, start time.Time, err error) {
	c.obs.RequestsChanged(kind, outcomeOf(Committed, err), time.Since(start))
}

func (c RequestChange) kind() Kind {
	switch {
	case c.Delete:
		return RequestDeletion
	case !isOpenRequest(c.request):
		return RequestCancellation
	}
	return RequestEdit
}
