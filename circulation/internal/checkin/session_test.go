package checkin_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas/fault"
)

// sessionStore notes whose sessions were deleted.
type sessionStore struct {
	deleted []string
	err     error
	setting string               // "" for none
	expired []checkin.EndSession // the same at any time
	before  []time.Time          // of all calls
	takes   time.Duration        // each deletion
}

func (s *sessionStore) DeleteSessions(_ context.Context, e checkin.EndSession, createdBefore time.Time) error {
	if s.err != nil {
		return s.err
	}
	s.deleted = append(s.deleted, e.PatronID+" "+e.ActionType)
	s.before = append(s.before, createdBefore)
	<-time.After(s.takes)
	return nil
}

func (s *sessionStore) ExpiredSessions(_ context.Context, before time.Time, limit int) ([]checkin.EndSession, error) {
	s.before = append(s.before, before)
	return s.expired[:min(limit, len(s.expired))], nil
}

func (s *sessionStore) SettingValue(_ context.Context, name string) (json.RawMessage, error) {
	if name != "other_settings" || s.setting == "" {
		return nil, fault.New(fault.NotFound, "none")
	}
	return json.RawMessage(s.setting), nil
}

func (s *sessionStore) endExpired(t *testing.T) error {
	t.Helper()
	return checkin.Sessions{Store: s, Now: func() time.Time { return clock }}.EndExpired(t.Context())
}

var clock = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

func TestSessions_ExpireByTheSetting(t *testing.T) {
	t.Parallel()
	const fields = `"checkoutTimeout":true,"checkoutTimeoutDuration":`
	for setting, minutes := range map[string]int{
		"":   3,
		`{}`: 3,
		`{"checkoutTimeout":true,"audioAlertsEnabled":false}`:     3,
		`{"checkoutTimeout":false,"checkoutTimeoutDuration":-10}`: 3,
		`{` + fields + `10}`:      10,
		`{` + fields + `10.0}`:    10,
		`{` + fields + `0}`:       0,
		`{` + fields + `1000000}`: 1000000,
	} {
		s := sessionStore{setting: setting, expired: []checkin.EndSession{
			{ActionType: "Check-out", PatronID: librarytest.AnnID}, {ActionType: "Check-in", PatronID: librarytest.AnnID},
		}}
		err := s.endExpired(t)
		before := clock.Add(-time.Duration(minutes) * time.Minute)
		if err != nil || !slices.Equal(s.before, []time.Time{before, before, before}) ||
			!slices.Equal(s.deleted, []string{librarytest.AnnID + " Check-out", librarytest.AnnID + " Check-in"}) {
			t.Errorf("%s: got %v, %v before %v, want both before %v", setting, err, s.deleted, s.before, before)
		}
	}
	s := sessionStore{expired: slices.Repeat([]checkin.EndSession{{}}, 1001)}
	if err := s.endExpired(t); err != nil || len(s.deleted) != 1000 {
		t.Errorf("ended %d sessions, %v, want 1000 at once", len(s.deleted), err)
	}
	s.err = fault.New(fault.Unavailable, "down")
	if err := s.endExpired(t); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want %s", err, fault.Unavailable)
	}
}

func TestSessions_ARunIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := sessionStore{expired: slices.Repeat([]checkin.EndSession{{}}, 9), takes: 2500 * time.Millisecond}
		if err := s.endExpired(t); err != nil || len(s.deleted) != 3 { // the third begins after 5 s
			t.Errorf("ended %d sessions, %v, want 3", len(s.deleted), err)
		}
	})
}

func TestSessions_RefuseABadTimeout(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		`"on"`:                      "cannot unmarshal string",
		`{"checkoutTimeout":"yes"}`: "checkoutTimeout",
		`{"checkoutTimeout":true,"checkoutTimeoutDuration":1.5}`:     "checkoutTimeoutDuration",
		`{"checkoutTimeout":true,"checkoutTimeoutDuration":-1}`:      "from 0 to 1000000",
		`{"checkoutTimeout":true,"checkoutTimeoutDuration":1000001}`: "from 0 to 1000000",
	} {
		s := sessionStore{setting: setting}
		err := s.endExpired(t)
		if got := strings.Join(librarytest.Messages(err), "; "); !fault.Is(err, fault.Invalid) ||
			!strings.Contains(got, "The setting other_settings cannot be used: ") || !strings.Contains(got, want) ||
			s.before != nil {
			t.Errorf("%s: got %v after %v, want %q", setting, err, s.before, want)
		}
	}
}

func TestSessions_EndPerPatronAndAction(t *testing.T) {
	t.Parallel()
	var store sessionStore
	sessions := checkin.Sessions{Store: &store}
	err := sessions.End(t.Context(), checkin.EndSessionsRequest{EndSessions: []checkin.EndSession{
		{ActionType: "Check-out", PatronID: librarytest.AnnID}, {ActionType: "Check-in", PatronID: librarytest.AdultsID},
	}})
	if want := []string{librarytest.AnnID + " Check-out", librarytest.AdultsID + " Check-in"}; err != nil ||
		!slices.Equal(store.deleted, want) {
		t.Errorf("got %q, %v, want %q", store.deleted, err, want)
	}
	store = sessionStore{}
	if err := (checkin.Sessions{Store: &store}).End(t.Context(), checkin.EndSessionsRequest{
		EndSessions: []checkin.EndSession{},
	}); err != nil || store.deleted != nil {
		t.Errorf("nothing to end: got %q, %v", store.deleted, err)
	}
	store.err = fault.New(fault.Unavailable, "down")
	err = checkin.Sessions{Store: &store}.End(t.Context(), checkin.EndSessionsRequest{
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
			sessions := checkin.Sessions{Store: &store}
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
