package checkout

import (
	"context"
	"time"
)

// Step is a point between two parts of a check-out.
type Step string

// The steps, in order.
const (
	Validated Step = "validated" // all checks passed; nothing is locked or written
	Locked    Step = "locked"    // the lock was granted
	Recounted Step = "recounted" // the limit still allows; the commit comes next
	Committed Step = "committed" // the loan is there; the lock is still held
	Released  Step = "released"  // the lock was given back
)

// Observer watches check-outs. Its methods are called from many goroutines and
// the check-out goes on when they return.
type Observer interface {
	// Reached is called at each step, with the time since the one before.
	Reached(ctx context.Context, step Step, took time.Duration)
	// Waiting is called with 1 when a check-out begins to try for the lock, with -1
	// when it has ended to.
	Waiting(ctx context.Context, delta int)
	// Waited is called with the time from the first try for the lock to its end,
	// and whether the lock was got.
	Waited(wait time.Duration, got bool)
	// Ended is called once per check-out. The context may be done by then.
	Ended(ctx context.Context, e Ending)
	// Again is called when a commit is repeated, with why: a fault code.
	Again(reason string)
}

// NoObserver sees everything and does nothing: embed it to watch a part.
type NoObserver struct{}

// Reached implements Observer.
func (NoObserver) Reached(context.Context, Step, time.Duration) {}

// Waiting implements Observer.
func (NoObserver) Waiting(context.Context, int) {}

// Waited implements Observer.
func (NoObserver) Waited(time.Duration, bool) {}

// Ended implements Observer.
func (NoObserver) Ended(context.Context, Ending) {}

// Again implements Observer.
func (NoObserver) Again(string) {}
