package app

import (
	"context"
	"time"

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

// NoObserver sees everything and does nothing: embed it to watch a part.
type NoObserver struct{}

// Reached implements Observer.
func (NoObserver) Reached(context.Context, Step, time.Duration) {}

// Waited implements Observer.
func (NoObserver) Waited(time.Duration, bool) {}

// Ended implements Observer.
func (NoObserver) Ended(string) {}

// Again implements Observer.
func (NoObserver) Again(string) {}
