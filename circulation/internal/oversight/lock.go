package oversight

import (
	"context"

	"checkoutlock/schemas"
)

// Lock returns one lock, outdated or not. Fault: NotFound, also for an id that no
// lock can have.
func (s *Service) Lock(ctx context.Context, lockID string) (schemas.CheckoutLock, error) {
	return s.storage.Lock(ctx, lockID)
}
