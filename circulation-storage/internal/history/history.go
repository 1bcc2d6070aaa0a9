// Package history keeps how check-outs ended, for whoever asks later: why was this
// one refused, how long do they wait. It is told by circulation, some time after
// the check-out, and is no ledger.
//
// The store's own clock dates every entry and bounds every question; callers say
// only how long ago something was.
package history

import (
	"context"
	"time"

	"checkoutlock/schemas"
)

// Filter selects past check-outs; its zero value selects all, but a page of none.
type Filter struct {
	UserBarcode string // without regard to case; empty is any
	ItemBarcode string // likewise
	// ServicePointID is a UUID; empty is any.
	ServicePointID string
	Outcome        string // exactly; empty is any
	// From and Until are inclusive; zero does not bound.
	From, Until time.Time
	Offset      int
	Limit       int
}

// Store keeps the history of the tenant in ctx.
type Store interface {
	// Add keeps the check-outs of a report that Check accepts, those it has already
	// left as they are, and what the instance says about waiting, in one step. The
	// instance may be empty.
	Add(ctx context.Context, instance string, r schemas.CheckOutReport) error

	// List returns a page, newest first.
	List(ctx context.Context, f Filter) (schemas.PastCheckOuts, error)

	// Figures are about the last minutes that have begun, from 1 on; the last of
	// them is under way.
	Figures(ctx context.Context, minutes int) (schemas.Figures, error)

	// Sweep deletes at most limit check-outs that ended longer ago than retention,
	// passing over those that somebody else deletes, and returns how many. What
	// instances that are long gone said about waiting goes, too.
	Sweep(ctx context.Context, retention time.Duration, limit int) (int, error)
}
