package enginetest

import (
	"context"
	"sync"

	"checkoutlock/resource-locks/internal/engine"
)

// RunLoops runs the loops of the claims of a process until stop is called, which waits for
// their end. Repeated calls of stop have no effect.
func RunLoops(claims *engine.Claims) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, loop := range []func(context.Context){claims.RunLease, claims.RunExpiry, claims.RunEnds, claims.RunPolls} {
		running.Go(func() { loop(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}
