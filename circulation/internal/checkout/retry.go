package checkout

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"

	"checkoutlock/schemas/fault"
)

// Bounds of the part that no longer depends on the machine's connection. All
// commits, the release that settles them, one more release (releaseTimeout), and
// 2 s to settle an Idempotency-Key stay below config.FinishMargin, which a request
// may go on for beyond its time-out. So do the commits of a check-in and one more.
const (
	commitTimeout   = 2500 * time.Millisecond // one commit
	commitBudget    = 3 * time.Second         // begins of repeated commits
	commitsTimeout  = 6 * time.Second         // all commits, reading the item again in between
	releaseWait     = 2 * time.Second         // the release that waits for a commit in flight
	readLoanTimeout = time.Second             // reading the loan after that
)

// retryCommit sends a commit, and sends it again while its outcome is unknown and
// the budget lasts: storage recognises the commit's id, so it happens once. It
// sends nothing again when ctx has ended. again is called before each repeat. The
// error is that of the last commit that was sent.
func retryCommit[T any](ctx context.Context, send func(context.Context) (T, error), again func(error)) (T, error) {
	pauses := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(500*time.Millisecond),
		backoff.WithMaxElapsedTime(commitBudget),
	)
	for {
		result, err := sendCommit(ctx, send)
		if err == nil || !unknown(err) {
			return result, err
		}
		pause := pauses.NextBackOff()
		if pause == backoff.Stop {
			return result, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		if ctx.Err() != nil {
			return result, err
		}
		again(err)
	}
}

// sendCommit sends a commit once.
func sendCommit[T any](ctx context.Context, send func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	return send(ctx)
}

// unknown reports whether a failed commit may have happened. A code that Committer
// does not name as a refusal leaves it open.
func unknown(err error) bool {
	switch fault.CodeOf(err) {
	case fault.ClaimLost, fault.LockLost, fault.SettingsChanged, fault.ItemChanged, fault.RequestChanged, fault.Invalid,
		fault.Malformed, fault.TooLarge, fault.Forbidden, fault.NotFound, fault.UnknownTenant:
		return false
	default:
		return true
	}
}
