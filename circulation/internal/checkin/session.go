package checkin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas/fault"
)

// EndSession names a session: all check-outs, or all check-ins, of a patron at a desk since the
// last session ended.
type EndSession struct {
	ActionType string `json:"actionType"` // Check-out or Check-in
	PatronID   string `json:"patronId"`
}

// EndSessionsRequest is the body of POST /circulation/end-patron-action-session. Unknown properties
// are ignored.
type EndSessionsRequest struct {
	EndSessions []EndSession `json:"endSessions"`
}

// maxEndSessions bounds the sessions that one request ends. A desk ends one or two, and each takes
// calls of its own.
const maxEndSessions = 100

// actionTypes are the types of sessions (mod-circulation, PatronActionType).
var actionTypes = []string{"Check-out", "Check-in"}

// SessionStore keeps the sessions of patrons at a desk.
type SessionStore interface {
	// DeleteSessions deletes the patron's records of an action type. Unless the time is zero, they were
	// created before it. No record is no error.
	DeleteSessions(ctx context.Context, e EndSession, createdBefore time.Time) error
	// ExpiredSessions returns the sessions whose last record was created before the time.
	ExpiredSessions(ctx context.Context, before time.Time, limit int) ([]EndSession, error)
	// SettingValue returns the value of a circulation setting. Fault: NotFound.
	SettingValue(ctx context.Context, name string) (json.RawMessage, error)
}

// Sessions ends the sessions of patrons at a desk. All fields are required.
type Sessions struct {
	Store SessionStore
	Now   func() time.Time
}

// End deletes the records of the sessions. It sends no notice, because notices are not supported. A
// session that has no record has ended already. Faults: Invalid with everything that is wrong, and
// then nothing is deleted; any other answer of storage, and then the request may be sent again.
func (s Sessions) End(ctx context.Context, req EndSessionsRequest) error {
	if err := req.check().Err(); err != nil {
		return err
	}
	for _, e := range req.EndSessions {
		if err := s.Store.DeleteSessions(ctx, e, time.Time{}); err != nil {
			return fmt.Errorf("ending the session: %w", err)
		}
	}
	return nil
}

const (
	// timeoutSetting is FOLIO's setting that says after how many minutes a session ends.
	timeoutSetting = "other_settings"
	// defaultTimeout is FOLIO's default, in minutes (mod-circulation, CirculationSettingsService).
	defaultTimeout = 3
	maxTimeout     = 1_000_000
	// maxExpired bounds the sessions that a run ends.
	maxExpired = 1000
	// longest is after which time a run begins no other session.
	longest = 5 * time.Second
)

// EndExpired ends the sessions that a desk left open: they have no record since the tenant's timeout.
// What a patron does meanwhile begins another session. The next run ends what this one leaves. Fault:
// Invalid for a setting that cannot be read.
func (s Sessions) EndExpired(ctx context.Context) error {
	minutes, err := s.readTimeout(ctx)
	if err != nil {
		return err
	}
	before := s.Now().Add(-time.Duration(minutes) * time.Minute)
	expired, err := s.Store.ExpiredSessions(ctx, before, maxExpired)
	if err != nil {
		return fmt.Errorf("finding the sessions that a desk left open: %w", err)
	}
	start := time.Now()
	for _, e := range expired {
		if time.Since(start) > longest {
			return nil
		}
		if err := s.Store.DeleteSessions(ctx, e, before); err != nil {
			return fmt.Errorf("ending the session that a desk left open: %w", err)
		}
	}
	return nil
}

// readTimeout returns the minutes after which a session without a record ends.
func (s Sessions) readTimeout(ctx context.Context) (int, error) {
	value, exists, err := fault.Found(s.Store.SettingValue(ctx, timeoutSetting))
	if err != nil || !exists {
		return defaultTimeout, err
	}
	stored := struct {
		On      bool    `json:"checkoutTimeout"`
		Minutes float64 `json:"checkoutTimeoutDuration"` // an integer may be written 3.0
	}{Minutes: defaultTimeout}
	err = json.Unmarshal(value, &stored)
	if err == nil && stored.On && (stored.Minutes < 0 || stored.Minutes > maxTimeout || stored.Minutes != float64(int(stored.Minutes))) {
		err = fmt.Errorf("checkoutTimeoutDuration must be a number of minutes from 0 to %d", maxTimeout)
	}
	switch {
	case err != nil:
		return 0, fault.Validation(fault.Refusal("", "The setting "+timeoutSetting+" cannot be used: "+err.Error(), fault.Param("value", fault.Shown(value))))
	case !stored.On:
		return defaultTimeout, nil
	}
	return int(stored.Minutes), nil
}

func (r EndSessionsRequest) check() fault.List {
	switch {
	case r.EndSessions == nil:
		return fault.List{fault.Refusal(library.CodeMissing, "endSessions is required", fault.Parameter{Key: "endSessions"})}
	case len(r.EndSessions) > maxEndSessions:
		return fault.List{fault.Refusal("", fmt.Sprintf("endSessions may have at most %d entries", maxEndSessions),
			fault.Param("endSessions", strconv.Itoa(len(r.EndSessions))))}
	}
	var found fault.List
	for _, e := range r.EndSessions {
		if e.PatronID == "" {
			found = append(found, fault.Refusal(library.CodeMissing, "End patron session request must have patron id", fault.Parameter{Key: "patronId"}))
		} else {
			found = append(found, library.CheckUUID("patronId", e.PatronID)...)
		}
		switch {
		case e.ActionType == "":
			found = append(found, fault.Refusal(library.CodeMissing, "End patron session request must have action type", fault.Parameter{Key: "actionType"}))
		case !slices.Contains(actionTypes, e.ActionType):
			found = append(found, fault.Refusal("", "Invalid patron action type value, allowed are Check-out and Check-in",
				fault.Param("actionType", e.ActionType)))
		}
	}
	return found
}
