// Package pace waits between repeats of work.
package pace

import (
	"context"
	"time"
)

// Wait waits for d. It returns false if ctx is done by then, at once when ctx ends.
func Wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil
}

// Every begins a turn of a range loop after first, and then one each interval, until ctx is done. After a
// turn that took longer than interval, the next one begins at once.
func Every(ctx context.Context, first, interval time.Duration) func(yield func() bool) {
	return func(yield func() bool) {
		due := time.NewTimer(first)
		for {
			select {
			case <-ctx.Done():
				return
			case <-due.C:
				due.Reset(interval)
			}
			if !yield() {
				return
			}
		}
	}
}
