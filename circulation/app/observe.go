package app

import (
	"context"
	"time"
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
