package commit_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas/fault"
)

func TestEndOf_NamesTheCauseOfARefusal(t *testing.T) {
	t.Parallel()
	tests := map[commit.Outcome]error{
		commit.Committed:       nil,
		commit.LockHeld:        fault.New(fault.LockHeld, ""),
		commit.LockLost:        fault.New(fault.LockLost, ""),
		commit.KeyLeaseLost:    fault.New(fault.KeyLeaseLost, ""),
		commit.GivenUp:         fault.New(fault.GivenUp, ""),
		commit.SettingsChanged: fault.New(fault.SettingsChanged, ""),
		commit.ItemChanged:     fault.New(fault.ItemChanged, ""),
		commit.LoanChanged:     fault.New(fault.LoanChanged, ""),
		commit.RequestChanged:  fault.New(fault.RequestChanged, ""),
		commit.LimitReached:    fault.New(fault.LimitReached, ""),
		commit.Refused:         fault.New(fault.NotFound, ""),
		commit.Failed:          errors.New("boom"),
	}
	for want, err := range tests {
		for _, kind := range commit.Kinds() {
			if got := commit.EndOf(kind, commit.Change{}, err); got != want || !slices.Contains(commit.Outcomes(), got) {
				t.Errorf("%s: got %s, want %s, which Outcomes lists", kind, got, want)
			}
		}
	}
}

func TestEndOf_ARepeat(t *testing.T) {
	t.Parallel()
	for _, kind := range commit.Kinds() {
		want := commit.Committed
		if kind == commit.CheckingOut || kind == commit.CheckingIn {
			want = commit.Repeated
		}
		if got := commit.EndOf(kind, commit.Change{Repeated: true}, nil); got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
		if got := commit.EndOf(kind, commit.Change{Repeated: true}, errors.New("boom")); got != commit.Failed {
			t.Errorf("%s that failed: got %s, want %s", kind, got, commit.Failed)
		}
	}
}

func TestRequestChange_Kind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status, more string
		want         commit.Kind
	}{
		{status: "Open - Not yet filled", want: commit.RequestEdit},
		{status: "Closed - Cancelled", want: commit.RequestCancellation},
		{status: "Open - Not yet filled", more: `,"delete":true`, want: commit.RequestDeletion},
	} {
		c, err := commit.ParseRequestChange(fmt.Appendf(nil, `{"request":{"id":%q,"requesterId":%q,"requestType":"Hold",
			"requestLevel":"Item","instanceId":%q,"itemId":%q,"requestDate":"2026-01-01",
			"fulfillmentPreference":"Hold Shelf","status":%q}%s}`, loanID, patronID, itemID, itemID, tt.status, tt.more))
		if err != nil || c.Kind() != tt.want {
			t.Errorf("%s%s: got %s, %v, want %s", tt.status, tt.more, c.Kind(), err, tt.want)
		}
	}
}
