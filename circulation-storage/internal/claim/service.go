package claim

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

// Pauses between two polls of a waiting caller. A check-out takes some twenty
// milliseconds, or seconds if it waits for the patron's lock.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = 160 * time.Millisecond
)

// Service lets callers wait for a claim. It is safe for concurrent use.
type Service struct {
	store Store
}

// NewService returns a Service on store.
func NewService(store Store) *Service { return &Service{store: store} }

// Claim is Store.Claim that waits for req.Wait while another caller has the claim. It
// holds no connection while it waits.
func (s *Service) Claim(ctx context.Context, req Request) (Claim, error) {
	end := time.Now().Add(req.Wait)
	pause := firstPause
	for {
		claim, err := s.store.Claim(ctx, req)
		if !fault.Is(err, fault.RequestRunning) {
			return claim, err
		}
		running := true
		for running {
			rest := time.Until(end)
			if rest <= 0 {
				return Claim{}, err
			}
			if err := sleep(ctx, min(rest, randomPause(pause))); err != nil {
				return Claim{}, err
			}
			pause = min(2*pause, longestPause)
			var failed error
			if running, failed = s.store.Running(ctx, req); failed != nil {
				return Claim{}, failed
			}
		}
	}
}

// Renew is Store.Renew.
func (s *Service) Renew(ctx context.Context, claimID uuid.UUID, lease time.Duration) error {
	return s.store.Renew(ctx, claimID, lease)
}

// Finish is Store.Finish.
func (s *Service) Finish(ctx context.Context, claimID uuid.UUID, answer json.RawMessage) error {
	return s.store.Finish(ctx, claimID, answer)
}

// randomPause spreads the polls of callers that wait for the same claim.
func randomPause(pause time.Duration) time.Duration {
	return pause/2 + rand.N(pause/2) //nolint:gosec // spreads load, guards nothing
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
