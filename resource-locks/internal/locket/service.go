package locket

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/locket/locketpb"
	"checkoutlock/schemas/fault"
)

// Namespace is the engine's namespace of Locket's keys. Locks and presences share it.
const Namespace = "locket"

// The engine's kinds, which are also the texts of Resource.type.
const (
	kindLock     = "lock"
	kindPresence = "presence"
)

// maxValue is the most characters of a value.
const maxValue = 4096

const (
	// maxLists is how many calls of FetchAll build their answers at once.
	maxLists = 2
	// maxListSize is the most bytes of such an answer. Clients of gRPC take 4 MiB unless they
	// ask for more.
	maxListSize = 32 << 20
	// resourceSize is what a resource takes beside its texts.
	resourceSize = 200
)

// service is the four methods.
type service struct {
	locketpb.UnimplementedLocketServer

	locks   *engine.Locks
	timeout time.Duration
	lists   *semaphore.Weighted
	maxList int // bytes
}

func newService(locks *engine.Locks, timeout time.Duration) *service {
	return &service{locks: locks, timeout: timeout, lists: semaphore.NewWeighted(maxLists), maxList: maxListSize}
}

// Lock takes a key, or renews it for its owner.
func (s *service) Lock(ctx context.Context, r *locketpb.LockRequest) (*locketpb.LockResponse, error) {
	a, err := readLock(r)
	if err != nil {
		return nil, err
	}
	err = s.changeLock(ctx, func(work context.Context) (engine.Result, error) { return s.locks.Acquire(work, a) })
	if err != nil {
		return nil, err
	}
	return &locketpb.LockResponse{}, nil
}

// readLock judges a request in the order that the published server has.
func readLock(r *locketpb.LockRequest) (engine.Acquire, error) {
	resource, seconds := r.GetResource(), r.GetTtlInSeconds()
	kind := kinds[resource.GetTypeCode()]
	switch {
	case resource == nil:
		return engine.Acquire{}, errNoResource
	case kind == "":
		return engine.Acquire{}, errInvalidType
	case seconds <= 0:
		return engine.Acquire{}, errInvalidTTL
	case resource.GetOwner() == "":
		return engine.Acquire{}, errInvalidOwner
	case utf8.RuneCountInString(resource.GetValue()) > maxValue:
		return engine.Acquire{}, status.Errorf(codes.InvalidArgument, "the value has more than %d characters", maxValue)
	}
	return engine.Acquire{
		Key: keyOf(resource.GetKey()), Owner: resource.GetOwner(), Kind: kind, Value: resource.GetValue(),
		// A number of seconds that a Duration cannot hold becomes the longest TTL.
		TTL: time.Duration(min(seconds, int64(engine.MaxTTL/time.Second))) * time.Second,
	}, nil
}

// Release frees a key that its owner holds. A free key is no error. The type of the
// resource does not matter, because command line tools send none.
func (s *service) Release(ctx context.Context, r *locketpb.ReleaseRequest) (*locketpb.ReleaseResponse, error) {
	resource := r.GetResource()
	if resource == nil {
		return nil, errNoResource
	}
	lost := false // the answer to the try before, which may have freed the key for another owner
	err := s.changeLock(ctx, func(work context.Context) (result engine.Result, err error) {
		if result, err = s.locks.Release(work, keyOf(resource.GetKey()), resource.GetOwner()); lost && result.Outcome == engine.Held {
			return engine.Result{}, nil
		}
		lost = err != nil
		return result, err
	})
	if err != nil {
		return nil, err
	}
	return &locketpb.ReleaseResponse{}, nil
}

// Fetch returns the live lock of a key.
func (s *service) Fetch(ctx context.Context, r *locketpb.FetchRequest) (*locketpb.FetchResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	lock, err := s.locks.Fetch(ctx, keyOf(r.GetKey()))
	if err != nil {
		return nil, err
	}
	return &locketpb.FetchResponse{Resource: resourceOf(lock)}, nil
}

// FetchAll returns all live locks of a type. It reads them in pages, and refuses an answer that
// no client takes.
func (s *service) FetchAll(ctx context.Context, r *locketpb.FetchAllRequest) (*locketpb.FetchAllResponse, error) {
	kind := kinds[r.GetTypeCode()]
	if kind == "" {
		return nil, errInvalidType
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.lists.Acquire(ctx, 1); errors.Is(err, context.Canceled) {
		return nil, errLeft
	} else if err != nil {
		return nil, status.Error(codes.DeadlineExceeded, "other calls of FetchAll are under way")
	}
	defer s.lists.Release(1)
	found, size := &locketpb.FetchAllResponse{}, 0
	err := s.locks.Walk(ctx, engine.Filter{Namespace: Namespace, Kind: kind}, func(lock engine.Lock) error {
		size += len(lock.Name) + len(lock.Owner) + len(lock.Value) + resourceSize
		if size > s.maxList {
			return status.Errorf(codes.ResourceExhausted, "the resources of type %s have more than %d bytes", kind, s.maxList)
		}
		found.Resources = append(found.Resources, resourceOf(lock))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// changeLock calls change on a context that does not end with the client, because a
// client's deadline must not cut off the work. It repeats a change that the store could
// not be reached for while the client waits: lock runners give up after one failed
// renewal. A repeat is safe, because the owner makes it the same lock. A lock of another owner
// is a collision.
func (s *service) changeLock(client context.Context, change func(context.Context) (engine.Result, error)) error {
	work, cancel := context.WithTimeout(context.WithoutCancel(client), s.timeout)
	defer cancel()
	pauses := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(500*time.Millisecond),
		backoff.WithMaxElapsedTime(s.timeout),
	)
	var away error // of the last attempt that did not reach the store
	return backoff.Retry(func() error {
		result, err := change(work)
		switch {
		case fault.Is(err, fault.Unavailable):
			away = err
			return err
		case fault.Is(err, fault.Timeout) && away != nil: // the time ended during an attempt
			err = away
		case err == nil && result.Outcome == engine.Held:
			err = errLockCollision
		}
		return backoff.Permanent(err)
	}, backoff.WithContext(pauses, client))
}

func keyOf(name string) engine.Key { return engine.Key{Namespace: Namespace, Name: name} }

// kinds has none for UNKNOWN, and for numbers that the enum does not have.
var kinds = map[locketpb.TypeCode]string{locketpb.TypeCode_LOCK: kindLock, locketpb.TypeCode_PRESENCE: kindPresence}

func resourceOf(lock engine.Lock) *locketpb.Resource {
	code := locketpb.TypeCode_LOCK
	if lock.Kind == kindPresence {
		code = locketpb.TypeCode_PRESENCE
	}
	return &locketpb.Resource{Key: lock.Name, Owner: lock.Owner, Value: lock.Value, Type: lock.Kind, TypeCode: code}
}
