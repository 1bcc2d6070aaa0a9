// Package history keeps ended check-outs with reasons and waiting times, for staff.
// Circulation reports them some time after the check-out, and may lose some.
//
// The store's clock dates every entry and bounds every query. Callers send ages, not
// dates.
package history

import (
	"context"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/jsonschema"
)

// Filter selects past check-outs. Its zero value counts all and lists none.
type Filter struct {
	UserBarcode string // without regard to case; empty is any
	ItemBarcode string // as UserBarcode
	// ServicePointID is a UUID; empty is any.
	ServicePointID string
	Outcome        string // exactly; empty is any
	Code           string // exactly; empty is any
	// From and Until are inclusive; zero does not bound.
	From, Until time.Time
	// Since is how long ago a check-out ended at most; 0 does not bound.
	Since  time.Duration
	Offset int
	Limit  int
}

// Store keeps the history of the tenant in ctx.
type Store interface {
	// Add atomically stores a report that Report accepts: check-outs that are not stored
	// yet, and the waiting ones. The instance may be empty.
	Add(ctx context.Context, instance string, r schemas.CheckOutReport) error

	// List returns a page, newest first.
	List(ctx context.Context, f Filter) (schemas.PastCheckOuts, error)

	// Figures returns figures of the last minutes by buckets, including the current one.
	Figures(ctx context.Context, f schemas.FigureFilter) (schemas.Figures, error)

	// Waits returns the check-outs that wait now, and those that waited longest lately.
	Waits(ctx context.Context) (schemas.LockWaits, error)

	// CheckLimit counts what the limit refused since a time, and finds patrons over their limit.
	CheckLimit(ctx context.Context, since time.Time) (schemas.LimitCheck, error)
}

// Report checks reports. The caller has checked the texts with jsonschema.Decode: they
// are valid UTF-8 without NUL.
var Report = jsonschema.For[schemas.CheckOutReport]("check-out-report")

var past = jsonschema.For[schemas.PastCheckOut]("past-check-out")

// CheckOutcome returns the rule that an outcome breaks, "" if none.
func CheckOutcome(outcome string) string { return past.BrokenRule("outcome", outcome) }
