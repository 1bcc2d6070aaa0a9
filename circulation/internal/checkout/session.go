package checkout

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// EndSession names the session that a patron's doings at a desk belong to: all of
// one sort since the last one ended.
type EndSession struct {
	ActionType string `json:"actionType"` // Check-out or Check-in
	PatronID   string `json:"patronId"`
}

// EndSessionsRequest is the body of POST /circulation/end-patron-action-session.
// Unknown properties are ignored.
type EndSessionsRequest struct {
	EndSessions []EndSession `json:"endSessions"`
}

// maxEndSessions is how many sessions one request may end: a desk ends one or
// two, and each takes calls of its own.
const maxEndSessions = 100

// actionTypes are the sorts of sessions (mod-circulation, PatronActionType).
var actionTypes = []string{"Check-out", "Check-in"}

// SessionStore keeps the records of what patrons did at desks.
type SessionStore interface {
	// DeleteSessions deletes the patron's records of an action type. None is no
	// error.
	DeleteSessions(ctx context.Context, patronID, actionType string) error
}

// Sessions ends the sessions of patrons at a desk.
type Sessions struct{ Store SessionStore }

// End deletes the records of the sessions; no notice is sent of them, as there
// are no notices yet. A session that has no record has ended already. Faults:
// Invalid with all that is wrong, and then nothing is deleted; whatever storage
// answered, and then the request may be sent again.
func (s Sessions) End(ctx context.Context, req EndSessionsRequest) error {
	if wrong := req.check(); len(wrong) > 0 {
		return fault.Validation(wrong...)
	}
	for _, e := range req.EndSessions {
		if err := s.Store.DeleteSessions(ctx, e.PatronID, e.ActionType); err != nil {
			return fmt.Errorf("ending the session: %w", err)
		}
	}
	return nil
}

func (r EndSessionsRequest) check() []fault.Detail {
	switch {
	case r.EndSessions == nil:
		return []fault.Detail{{Message: "endSessions is required", Parameters: []fault.Parameter{{Key: "endSessions"}}}}
	case len(r.EndSessions) > maxEndSessions:
		return []fault.Detail{detail("", fmt.Sprintf("endSessions may have at most %d entries", maxEndSessions),
			fault.Param("endSessions", strconv.Itoa(len(r.EndSessions))))}
	}
	var wrong []fault.Detail
	for _, e := range r.EndSessions {
		switch {
		case e.PatronID == "":
			wrong = append(wrong, fault.Detail{
				Message: "End patron session request must have patron id", Parameters: []fault.Parameter{{Key: "patronId"}},
			})
		case !schemas.IsUUID(e.PatronID):
			wrong = append(wrong, detail("", "patronId must be a UUID", fault.Param("patronId", e.PatronID)))
		}
		switch {
		case e.ActionType == "":
			wrong = append(wrong, fault.Detail{
				Message: "End patron session request must have action type", Parameters: []fault.Parameter{{Key: "actionType"}},
			})
		case !slices.Contains(actionTypes, e.ActionType):
			wrong = append(wrong, detail("", "Invalid patron action type value, allowed are Check-out and Check-in",
				fault.Param("actionType", e.ActionType)))
		}
	}
	return wrong
}
