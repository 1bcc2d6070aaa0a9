package checkin_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/library/librarytest"
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

func TestSessions_EndPerPatronAndAction(t *testing.T) {
	t.Parallel()
	var store sessionStore
	sessions := checkin.Sessions{Delete: store.DeleteSessions}
	err := sessions.End(t.Context(), checkin.EndSessionsRequest{EndSessions: []checkin.EndSession{
		{ActionType: "Check-out", PatronID: librarytest.AnnID}, {ActionType: "Check-in", PatronID: librarytest.AdultsID},
	}})
	if want := []string{librarytest.AnnID + " Check-out", librarytest.AdultsID + " Check-in"}; err != nil ||
		!slices.Equal(store.deleted, want) {
		t.Errorf("got %q, %v, want %q", store.deleted, err, want)
	}
	store = sessionStore{}
	if err := (checkin.Sessions{Delete: store.DeleteSessions}).End(t.Context(), checkin.EndSessionsRequest{
		EndSessions: []checkin.EndSession{},
	}); err != nil || store.deleted != nil {
		t.Errorf("nothing to end: got %q, %v", store.deleted, err)
	}
	store.err = fault.New(fault.Unavailable, "down")
	err = checkin.Sessions{Delete: store.DeleteSessions}.End(t.Context(), checkin.EndSessionsRequest{
		EndSessions: []checkin.EndSession{{ActionType: "Check-out", PatronID: librarytest.AnnID}},
	})
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want %s", err, fault.Unavailable)
	}
}

func TestSessions_RefusedEndDeletesNone(t *testing.T) {
	t.Parallel()
	good := checkin.EndSession{ActionType: "Check-out", PatronID: librarytest.AnnID}
	tests := map[string]struct {
		sessions []checkin.EndSession
		want     string
	}{
		"nothing named": {nil, "endSessions is required"},
		"no patron": {
			[]checkin.EndSession{good, {ActionType: "Check-in"}}, "End patron session request must have patron id",
		},
		"no patron's id": {[]checkin.EndSession{good, {ActionType: "Check-in", PatronID: "ann"}}, "patronId must be a UUID"},
		"no action": {
			[]checkin.EndSession{good, {PatronID: librarytest.AnnID}}, "End patron session request must have action type",
		},
		"unknown action": {
			[]checkin.EndSession{good, {ActionType: "check-out", PatronID: librarytest.AnnID}},
			"Invalid patron action type value",
		},
		"far too many": {slices.Repeat([]checkin.EndSession{good}, 101), "at most 100 entries"},
		"all at once": {
			[]checkin.EndSession{{}},
			"End patron session request must have patron id; End patron session request must have action type",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var store sessionStore
			sessions := checkin.Sessions{Delete: store.DeleteSessions}
			err := sessions.End(t.Context(), checkin.EndSessionsRequest{EndSessions: tt.sessions})
			if got := strings.Join(librarytest.Messages(err), "; "); !fault.Is(err, fault.Invalid) ||
				!strings.Contains(got, tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if store.deleted != nil {
				t.Errorf("deleted %q, want nothing deleted", store.deleted)
			}
		})
	}
}
