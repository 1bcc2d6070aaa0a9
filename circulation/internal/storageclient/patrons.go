package storageclient

import (
	"context"
	"fmt"
	"net/http"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas/fault"
)

// What may keep a patron from borrowing, and their sessions (FOLIO's paths and keys).
var (
	manualBlocks         = collection{path: "/manualblocks", key: "manualblocks"}
	automatedBlocks      = collection{path: "/automated-patron-blocks", key: "automatedPatronBlocks"}
	patronActionSessions = collection{path: "/patron-action-session-storage/patron-action-sessions", key: "patronActionSessions"}
)

const (
	// maxPerPatron bounds the blocks of one patron that are read.
	maxPerPatron = 1000
	// sessionBatch is how many sessions are read at once to be deleted.
	sessionBatch = 100
)

// ManualBlocks implements library.Patrons.
func (c *Client) ManualBlocks(ctx context.Context, userID string) ([]library.ManualBlock, error) {
	blocks, err := listRecords[library.ManualBlock](ctx, c, manualBlocks, equals("userId", userID), maxPerPatron)
	if err != nil {
		return nil, fmt.Errorf("reading the patron's manual blocks: %w", err)
	}
	return blocks, nil
}

// AutomatedBlocks implements library.Patrons. A patron without a list of blocks
// has none.
func (c *Client) AutomatedBlocks(ctx context.Context, userID string) ([]library.AutomatedBlock, error) {
	type answer struct {
		Blocks []library.AutomatedBlock `json:"automatedPatronBlocks"`
	}
	stored, err := readRecord[answer](ctx, c, automatedBlocks, userID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, fmt.Errorf("reading the patron's automated blocks: %w", err)
	}
	return stored.Blocks, nil
}

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
