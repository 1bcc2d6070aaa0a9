package app

import (
	"checkoutlock/circulation/internal/checkout"
)

// Observer watches check-outs; see WithObserver.
type Observer = checkout.Observer

// Step is a point between two parts of a check-out.
type Step = checkout.Step

// The steps of a check-out, in order.
const (
	Validated = checkout.Validated
	Locked    = checkout.Locked
	Recounted = checkout.Recounted
	Committed = checkout.Committed
	Released  = checkout.Released
)

// Ending is how a check-out ended.
type Ending = checkout.Ending

// NoObserver sees everything and does nothing: embed it to watch a part.
type NoObserver = checkout.NoObserver
