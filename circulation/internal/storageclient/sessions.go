package storageclient

import (
	"context"
	"fmt"
	"net/http"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas/fault"
)

var patronActionSessions = collection{path: "/patron-action-session-storage/patron-action-sessions", key: "patronActionSessions"}

// sessionBatch is how many sessions are read at once to be deleted.
const sessionBatch = 100

// DeleteSessions implements checkout.SessionStore. Records that come while it
// runs may go too, or stay.
func (c *Client) DeleteSessions(ctx context.Context, patronID, actionType string) error {
	query := equals("patronId", patronID) + " and " + equals("actionType", actionType)
	for {
		found, err := list[checkout.Named](ctx, c, patronActionSessions, query, sessionBatch)
		if err != nil {
			return fmt.Errorf("finding the patron's sessions: %w", err)
		}
		for _, session := range found {
			if err := c.deleteRecord(ctx, patronActionSessions, session.ID); err != nil {
				return fmt.Errorf("deleting a patron's session: %w", err)
			}
		}
		if len(found) < sessionBatch {
			return nil
		}
	}
}

// deleteRecord deletes a record; one that is gone already is no error.
func (c *Client) deleteRecord(ctx context.Context, from collection, id string) error {
	r := getRecord(from.path, id)
	r.method, r.want = http.MethodDelete, http.StatusNoContent
	if _, err := c.do(ctx, r); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	return nil
}
