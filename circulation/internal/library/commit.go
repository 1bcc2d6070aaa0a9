package library

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/pace"
)

// Bounds of commits. They no longer depend on the machine's connection, so they have to stay below
// config.FinishMargin, which a request may go on for beyond its time-out. checkout adds up its own.
// A check-in takes all commits and one more.
const (
	CommitTimeout  = 2500 * time.Millisecond // one commit
	CommitsTimeout = 6 * time.Second         // all commits, reading the item again in between
	commitBudget   = 3 * time.Second         // begins of repeated commits
)

// RetryCommit sends a commit, and sends it again while its outcome is unknown and the budget lasts.
// Storage recognises the commit's id, so it happens once. RetryCommit repeats nothing after ctx has
// ended. It calls onRepeat before each repeat. The error is that of the last commit that was sent. After
// an unknown outcome, a fault that changed nothing says so of itself alone, so it is unknown too.
func RetryCommit[T any](ctx context.Context, send func(context.Context) (T, error), onRepeat func(error)) (T, error) {
	pauses := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(250*time.Millisecond),
		backoff.WithMaxElapsedTime(commitBudget),
	)
	unknown := false
	for {
		result, err := SendCommit(ctx, send)
		if unknown {
			err = doubt(err)
		}
		if err == nil || !IsUnknown(err) {
			return result, err
		}
		unknown = true
		if pause := pauses.NextBackOff(); pause == backoff.Stop || !pace.Wait(ctx, pause) {
			return result, err
		}
		onRepeat(err)
	}
}

// RetryChanged judges and commits once more if others changed what was judged.
func RetryChanged[T any](commit func() (T, error)) (T, error) {
	result, err := commit()
	switch fault.CodeOf(err) {
	case fault.ItemChanged, fault.LoanChanged, fault.RequestChanged:
		return commit()
	default:
		return result, err
	}
}

// RetryChange is RetryChanged for a commit without an answer.
func RetryChange(commit func() error) error {
	_, err := RetryChanged(func() (struct{}, error) { return struct{}{}, commit() })
	return err
}

// FinishCommit sends a commit until its outcome is known, whether or not its caller is still there.
// For a caller that left before, it sends nothing. It logs each repeat; name is what the commit writes,
// such as "the move". The last repeat has a context of its own, because the process may have slept
// until all others had ended.
func FinishCommit[T any](ctx context.Context, log *slog.Logger, name string, send func(context.Context) (T, error)) (none T, err error) {
	if err := ctx.Err(); err != nil {
		return none, err
	}
	ctx = context.WithoutCancel(ctx)
	onRepeat := func(err error) {
		log.WarnContext(ctx, "outcome of "+name+" unknown; sending it again", "err", err)
	}
	rctx, cancel := context.WithTimeout(ctx, CommitsTimeout)
	defer cancel()
	result, err := RetryCommit(rctx, send, onRepeat)
	if err == nil || !IsUnknown(err) {
		return result, err
	}
	onRepeat(err)
	result, err = SendCommit(ctx, send)
	return result, doubt(err)
}

// FinishChange is FinishCommit for a commit without an answer.
func FinishChange(ctx context.Context, log *slog.Logger, name string, send func(context.Context) error) error {
	_, err := FinishCommit(ctx, log, name, func(ctx context.Context) (struct{}, error) { return struct{}{}, send(ctx) })
	return err
}

// SendCommit sends a commit once.
func SendCommit[T any](ctx context.Context, send func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, CommitTimeout)
	defer cancel()
	return send(ctx)
}

// doubt returns the error of a repeat without the claim that nothing was changed.
func doubt(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || !f.Unchanged {
		return err
	}
	doubted := *f
	doubted.Unchanged = false
	return &doubted
}

// IsUnknown reports whether a failed commit may have happened. Only the codes that the ports name
// as refusals exclude that, and faults that say so.
func IsUnknown(err error) bool {
	if fault.ChangedNothing(err) {
		return false
	}
	switch fault.CodeOf(err) {
	case fault.GivenUp, fault.KeyLeaseLost, fault.LockHeld, fault.LockLost, fault.LockQueueFull, fault.Overloaded, fault.SettingsChanged, fault.ItemChanged,
		fault.RequestChanged, fault.LimitReached, fault.LoanChanged, fault.Invalid, fault.Malformed, fault.TooLarge, fault.Forbidden, fault.NotFound, fault.UnknownTenant, fault.TenantNotReady:
		return false
	default:
		return true
	}
}
