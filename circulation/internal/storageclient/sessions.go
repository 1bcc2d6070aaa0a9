package storageclient

import (
	"context"
	"fmt"
	"net/http"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas/fault"
)

// patronActionSessions are the sessions of patrons at a desk (FOLIO's path and key).
var patronActionSessions = collection{path: "/patron-action-session-storage/patron-action-sessions", key: "patronActionSessions"}

// sessionBatch is how many sessions are read at once to be deleted.
const sessionBatch = 100

// DeleteSessions implements checkin.SessionStore. Sessions that are added while it
// runs may be deleted too, or stay.
func (c *Client) DeleteSessions(ctx context.Context, patronID, actionType string) error {
	query := equals("patronId", patronID) + " and " + equals("actionType", actionType)
	for {
		found, err := listRecords[library.Named](ctx, c, patronActionSessions, query, sessionBatch)
		if err != nil {
			return fmt.Errorf("finding the patron's sessions: %w", err)
		}
		for _, session := range found {
			if err := c.deleteSession(ctx, session.ID); err != nil {
				return err
			}
		}
		if len(found) < sessionBatch {
			return nil
		}
	}
}

// deleteSession deletes a session; one that no longer exists is no error.
func (c *Client) deleteSession(ctx context.Context, id string) error {
	r := getRecord(patronActionSessions.path, id)
	r.doing, r.method, r.want = "deleting a patron's session", http.MethodDelete, http.StatusNoContent
	if _, err := c.do(ctx, r); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	return nil
}
