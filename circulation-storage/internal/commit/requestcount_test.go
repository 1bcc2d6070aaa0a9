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

// fixedQueues ends every commit of requests the same way.
type fixedQueues struct {
	commit.RequestStore
	err error
}

func (s fixedQueues) Place(context.Context, commit.Placement) (schemas.PlacedRequest, error) {
	return schemas.PlacedRequest{}, s.err
}

func (s fixedQueues) ChangeRequest(context.Context, commit.RequestChange) error { return s.err }

func (s fixedQueues) MoveRequest(context.Context, commit.RequestMove) (schemas.PlacedRequest, error) {
	return schemas.PlacedRequest{}, s.err
}

func (s fixedQueues) OrderQueue(context.Context, commit.QueueOrder) (schemas.OrderedQueue, error) {
	return schemas.OrderedQueue{}, s.err
}

func (s fixedQueues) ExpireRequests(context.Context, int) (int, error) { return 2, s.err }

type requestTally struct {
	ends    []string
	expired int
}

func (c *requestTally) RequestsChanged(kind commit.Kind, o commit.Outcome, _ time.Duration) {
	c.ends = append(c.ends, string(kind)+" "+string(o))
}

func (c *requestTally) RequestsExpired(n int) { c.expired += n }

func TestCountRequests_ReportsKindAndOutcome(t *testing.T) {
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
	for outcome, stored := range map[commit.Outcome]error{
		commit.Committed:      nil,
		commit.RequestChanged: fault.New(fault.RequestChanged, ""),
		commit.Refused:        fault.New(fault.NotFound, ""),
		commit.Failed:         errors.New("boom"),
	} {
		var got requestTally
		s, ctx := commit.CountRequests(fixedQueues{err: stored}, &got), t.Context()
		_, placing := s.Place(ctx, commit.Placement{})
		_, moving := s.MoveRequest(ctx, commit.RequestMove{})
		_, ordering := s.OrderQueue(ctx, commit.QueueOrder{})
		expired, expiring := s.ExpireRequests(ctx, 10)
		errs := []error{placing, s.ChangeRequest(ctx, edit), s.ChangeRequest(ctx, cancellation), s.ChangeRequest(ctx, deletion), moving, ordering, expiring}
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
	}
}
