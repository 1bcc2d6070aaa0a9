package checkout_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas/fault"
)

// sessionStore notes whose sessions were deleted.
type sessionStore struct {
	deleted []string
	err     error
}

func (s *sessionStore) DeleteSessions(_ context.Context, patronID, actionType string) error {
	if s.err != nil {
		return s.err
	}
	s.deleted = append(s.deleted, patronID+" "+actionType)
	return nil
}

func TestSessionsEndPerPatronAndAction(t *testing.T) {
	t.Parallel()
	var store sessionStore
	err := checkout.Sessions{Store: &store}.End(t.Context(), checkout.EndSessionsRequest{EndSessions: []checkout.EndSession{
		{ActionType: "Check-out", PatronID: annID}, {ActionType: "Check-in", PatronID: adultsID},
	}})
	if want := []string{annID + " Check-out", adultsID + " Check-in"}; err != nil || !slices.Equal(store.deleted, want) {
		t.Errorf("got %q, %v, want %q", store.deleted, err, want)
	}
	store = sessionStore{}
	if err := (checkout.Sessions{Store: &store}).End(t.Context(), checkout.EndSessionsRequest{EndSessions: []checkout.EndSession{}}); err != nil || store.deleted != nil {
		t.Errorf("nothing to end: got %q, %v", store.deleted, err)
	}
	store.err = fault.New(fault.Unavailable, "down")
	err = checkout.Sessions{Store: &store}.End(t.Context(), checkout.EndSessionsRequest{EndSessions: []checkout.EndSession{{ActionType: "Check-out", PatronID: annID}}})
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want %s", err, fault.Unavailable)
	}
}

func TestASessionThatCannotEndLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	good := checkout.EndSession{ActionType: "Check-out", PatronID: annID}
	tests := map[string]struct {
		sessions []checkout.EndSession
		want     string
	}{
		"nothing named":  {nil, "endSessions is required"},
		"no patron":      {[]checkout.EndSession{good, {ActionType: "Check-in"}}, "End patron session request must have patron id"},
		"no patron's id": {[]checkout.EndSession{good, {ActionType: "Check-in", PatronID: "ann"}}, "patronId must be a UUID"},
		"no action":      {[]checkout.EndSession{good, {PatronID: annID}}, "End patron session request must have action type"},
		"unknown action": {[]checkout.EndSession{good, {ActionType: "check-out", PatronID: annID}}, "Invalid patron action type value"},
		"far too many":   {slices.Repeat([]checkout.EndSession{good}, 101), "at most 100 entries"},
		"all at once":    {[]checkout.EndSession{{}}, "End patron session request must have patron id; End patron session request must have action type"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var store sessionStore
			err := checkout.Sessions{Store: &store}.End(t.Context(), checkout.EndSessionsRequest{EndSessions: tt.sessions})
			if got := strings.Join(messages(err), "; "); !fault.Is(err, fault.Invalid) || !strings.Contains(got, tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if store.deleted != nil {
				t.Errorf("deleted %q all the same", store.deleted)
			}
		})
	}
}
