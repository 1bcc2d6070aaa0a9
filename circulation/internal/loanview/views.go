package loanview

import (
	"context"
	"encoding/json"
	"fmt"

	"checkoutlock/circulation/internal/related"
)

// links are the parts of a stored loan that name other records.
type links struct {
	UserID         string `json:"userId"`
	ItemID         string `json:"itemId"`
	LoanPolicyID   string `json:"loanPolicyId"`
	ServicePointID string `json:"checkoutServicePointId"`
	ReturnedAtID   string `json:"checkinServicePointId"`
	GroupID        string `json:"patronGroupIdAtCheckout"`
}

// RenderPage returns the loans as clients get them, in the same order. It fetches the records
// that they refer to in bulk, and leaves out the part of a missing one. Faults are those of
// records except NotFound.
func RenderPage(ctx context.Context, records related.Records, loans []json.RawMessage) ([]json.RawMessage, error) {
	all := make([]links, len(loans))
	for i, loan := range loans {
		if err := json.Unmarshal(loan, &all[i]); err != nil {
			return nil, fmt.Errorf("a stored loan cannot be read: %w", err)
		}
	}
	found, err := related.Fetch(ctx, records, related.Wanted{
		Users: related.IDs(all, func(l links) string { return l.UserID }), Items: related.IDs(all, func(l links) string { return l.ItemID }),
		ServicePoints: related.IDs(all, func(l links) string { return l.ServicePointID }, func(l links) string { return l.ReturnedAtID }),
		Groups:        related.IDs(all, func(l links) string { return l.GroupID }), Policies: related.IDs(all, func(l links) string { return l.LoanPolicyID }),
	})
	if err != nil {
		return nil, err
	}
	views := make([]json.RawMessage, len(loans))
	for i, loan := range loans {
		view, err := Render(loan, pickKnown(found, all[i]))
		if err != nil {
			return nil, err
		}
		views[i] = view
	}
	return views, nil
}

// RenderOne is RenderPage for one loan.
func RenderOne(ctx context.Context, records related.Records, loan json.RawMessage) (json.RawMessage, error) {
	views, err := RenderPage(ctx, records, []json.RawMessage{loan})
	if err != nil {
		return nil, err
	}
	return views[0], nil
}

// pickKnown picks the records of one loan.
func pickKnown(found *related.Found, l links) Known {
	return Known{
		Copy: found.Copy(l.ItemID), Destination: found.ServicePoints[found.Items[l.ItemID].InTransitDestinationServicePointID],
		User: found.Users[l.UserID], Group: found.Groups[l.GroupID], Policy: found.Policies[l.LoanPolicyID],
		ServicePoint: found.ServicePoints[l.ServicePointID], ReturnedAt: found.ServicePoints[l.ReturnedAtID],
	}
}
