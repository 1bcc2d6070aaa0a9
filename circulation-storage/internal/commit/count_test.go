package commit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// fixedStore ends every commit the same way.
type fixedStore struct {
	commit.Commits
	outcome  commit.Outcome // of check-outs and check-ins
	released bool           // with the loan
	err      error
}

func (s fixedStore) CheckOut(context.Context, commit.CheckOut) (schemas.CheckOutResult, commit.Outcome, error) {
	return schemas.CheckOutResult{LockReleased: s.released}, s.outcome, s.err
}

func (s fixedStore) CheckIn(context.Context, commit.CheckIn) (schemas.CheckInResult, commit.Outcome, error) {
	return schemas.CheckInResult{}, s.outcome, s.err
}

func (s fixedStore) Renew(context.Context, commit.Renewal) (schemas.RenewalResult, error) {
	return schemas.RenewalResult{}, s.err
}

func (s fixedStore) ChangeLoan(context.Context, commit.LoanChange) error { return s.err }

func (s fixedStore) ReplaceLoan(context.Context, commit.LoanReplacement) error { return s.err }

func (s fixedStore) Place(context.Context, commit.Placement) (schemas.PlacedRequest, error) {
	return schemas.PlacedRequest{}, s.err
}

func (s fixedStore) ChangeRequest(context.Context, commit.RequestChange) error { return s.err }

func (s fixedStore) MoveRequest(context.Context, commit.RequestMove) (schemas.PlacedRequest, error) {
	return schemas.PlacedRequest{}, s.err
}

func (s fixedStore) OrderQueue(context.Context, commit.QueueOrder) (schemas.OrderedQueue, error) {
	return schemas.OrderedQueue{}, s.err
}

func (s fixedStore) ExpireRequests(context.Context, int) (int, error) { return 2, s.err }

type tally struct {
	ends              []string
	unfenced, expired int
}

func (c *tally) Ended(kind commit.Kind, o commit.Outcome, _ time.Duration) {
	c.ends = append(c.ends, string(kind)+" "+string(o))
}

func (c *tally) LentUnfenced() { c.unfenced++ }

func (c *tally) RequestsExpired(n int) { c.expired += n }

func TestCount_ReportsKindAndOutcome(t *testing.T) {
	t.Parallel()
	change := func(status, more string) commit.RequestChange {
		c, err := commit.ParseRequestChange(fmt.Appendf(nil, `{"request":{"id":%q,"requesterId":%q,"requestType":"Hold","requestLevel":"Item",
			"instanceId":%q,"itemId":%q,"requestDate":"2026-01-01","fulfillmentPreference":"Hold Shelf","status":%q}%s}`, loanID, patronID, itemID, itemID, status, more))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	edit, cancellation := change("Open - Not yet filled", ""), change("Closed - Cancelled", "")
	deletion := change("Open - Not yet filled", `,"delete":true`)
	tests := map[commit.Outcome]error{
		commit.Committed:       nil,
		commit.LockLost:        fault.New(fault.LockLost, ""),
		commit.KeyLeaseLost:    fault.New(fault.KeyLeaseLost, ""),
		commit.SettingsChanged: fault.New(fault.SettingsChanged, ""),
		commit.ItemChanged:     fault.New(fault.ItemChanged, ""),
		commit.LoanChanged:     fault.New(fault.LoanChanged, ""),
		commit.RequestChanged:  fault.New(fault.RequestChanged, ""),
		commit.LimitReached:    fault.New(fault.LimitReached, ""),
		commit.Refused:         fault.New(fault.NotFound, ""),
		commit.Failed:          errors.New("boom"),
	}
	for outcome, stored := range tests {
		var got tally
		s, ctx := commit.Count(fixedStore{outcome: commit.Committed, err: stored}, &got), t.Context()
		_, _, lending := s.CheckOut(ctx, commit.CheckOut{})
		_, _, returning := s.CheckIn(ctx, commit.CheckIn{})
		_, renewing := s.Renew(ctx, commit.Renewal{})
		_, placing := s.Place(ctx, commit.Placement{})
		_, moving := s.MoveRequest(ctx, commit.RequestMove{})
		_, ordering := s.OrderQueue(ctx, commit.QueueOrder{})
		expired, expiring := s.ExpireRequests(ctx, 10)
		errs := []error{
			lending, returning, renewing, s.ChangeLoan(ctx, commit.LoanChange{}), s.ReplaceLoan(ctx, commit.LoanReplacement{}), placing,
			s.ChangeRequest(ctx, edit), s.ChangeRequest(ctx, cancellation), s.ChangeRequest(ctx, deletion), moving, ordering, expiring,
		}
		for _, err := range errs {
			if !errors.Is(err, stored) {
				t.Errorf("%s: got the errors %v", outcome, errs)
			}
		}
		var want []string
		for _, kind := range commit.Kinds() {
			want = append(want, string(kind)+" "+string(outcome))
		}
		slices.Sort(want)
		if slices.Sort(got.ends); !slices.Equal(got.ends, want) || got.expired != 2 || expired != 2 {
			t.Errorf("got %d expired and\n%s\nwant 2 and\n%s", got.expired, strings.Join(got.ends, "\n"), strings.Join(want, "\n"))
		}
		if !slices.Contains(commit.Outcomes(), outcome) {
			t.Errorf("Outcomes lacks %q", outcome)
		}
	}
}

func TestCount_ReportsRepeatsAndLoansWithoutAFence(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[commit.Outcome]int{commit.Committed: 1, commit.Repeated: 0} {
		for unfenced, times := range map[bool]int{true: 1, false: 0} {
			var got tally
			s := commit.Count(fixedStore{outcome: outcome}, &got)
			_, _, lending := s.CheckOut(t.Context(), commit.CheckOut{Unfenced: unfenced})
			_, _, returning := s.CheckIn(t.Context(), commit.CheckIn{})
			if err := errors.Join(lending, returning); err != nil {
				t.Fatal(err)
			}
			if ends := strings.Join(got.ends, ", "); ends != "check-out "+string(outcome)+", check-in "+string(outcome) || got.unfenced != want*times {
				t.Errorf("%s, unfenced %t: got %s and %d loans without a fence, want %d", outcome, unfenced, ends, got.unfenced, want*times)
			}
		}
	}
}
