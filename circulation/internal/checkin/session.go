package checkin

import (
	"context"
	"fmt"
	"slices"
	"strconv"

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

// Sessions ends the sessions of patrons at a desk.
type Sessions struct {
	// Delete deletes the patron's records of an action type. No record is no error.
	Delete func(ctx context.Context, patronID, actionType string) error
}

// End deletes the records of the sessions. It sends no notice, because notices are not supported. A
// session that has no record has ended already. Faults: Invalid with everything that is wrong, and
// then nothing is deleted; any other answer of storage, and then the request may be sent again.
func (s Sessions) End(ctx context.Context, req EndSessionsRequest) error {
	if err := req.check().Err(); err != nil {
		return err
	}
	for _, e := range req.EndSessions {
		if err := s.Delete(ctx, e.PatronID, e.ActionType); err != nil {
			return fmt.Errorf("ending the session: %w", err)
		}
	}
	return nil
}

func (r EndSessionsRequest) check() fault.List {
	switch {
	case r.EndSessions == nil:
		return fault.List{fault.Refusal("", "endSessions is required", fault.Parameter{Key: "endSessions"})}
	case len(r.EndSessions) > maxEndSessions:
		return fault.List{fault.Refusal("", fmt.Sprintf("endSessions may have at most %d entries", maxEndSessions),
			fault.Param("endSessions", strconv.Itoa(len(r.EndSessions))))}
	}
	var found fault.List
	for _, e := range r.EndSessions {
		if e.PatronID == "" {
			found = append(found, fault.Refusal("", "End patron session request must have patron id", fault.Parameter{Key: "patronId"}))
		} else {
			found = append(found, library.CheckUUID("patronId", e.PatronID)...)
		}
		switch {
		case e.ActionType == "":
			found = append(found, fault.Refusal("", "End patron session request must have action type", fault.Parameter{Key: "actionType"}))
		case !slices.Contains(actionTypes, e.ActionType):
			found = append(found, fault.Refusal("", "Invalid patron action type value, allowed are Check-out and Check-in",
				fault.Param("actionType", e.ActionType)))
		}
	}
	return found
}
