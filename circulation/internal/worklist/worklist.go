// Package worklist lists what staff fetch from shelves, look for, or take off a hold shelf.
package worklist

import (
	"context"
	"encoding/json"
	"strings"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/related"
	"checkoutlock/schemas"
)

// Library reads the records of the lists. The lists are no snapshots: what changes while they are read
// may be there as it was or as it is.
type Library interface {
	related.Records
	// LocationsServed returns the locations whose primary service point it is.
	LocationsServed(ctx context.Context, servicePointID string) ([]library.Location, error)
	// UnfilledRequests returns open requests of a type that are not yet filled, the oldest first.
	UnfilledRequests(ctx context.Context, requestType string, limit int) ([]schemas.QueuedRequest, error)
	// TitleHoldings returns the holdings of titles.
	TitleHoldings(ctx context.Context, instanceIDs []string) ([]library.Holdings, error)
	// SettingValue returns the value of a circulation setting. Fault: NotFound.
	SettingValue(ctx context.Context, name string) (json.RawMessage, error)

	// ItemsInStatus returns items, and how many have the status in all.
	ItemsInStatus(ctx context.Context, status string, limit int) ([]library.Item, int, error)
	// WaitingForPickup returns the requests for which items wait.
	WaitingForPickup(ctx context.Context, itemIDs []string) ([]schemas.QueuedRequest, error)
	// EndedPickups returns the requests that were cancelled or expired while their item waited, of each
	// item the last one first.
	EndedPickups(ctx context.Context, itemIDs []string) ([]json.RawMessage, error)
	// LoansInTransit returns the loans of which an item came back in transit, of each item the last one
	// first.
	LoansInTransit(ctx context.Context, itemIDs []string) ([]TransitLoan, error)
	// OpenRequests returns the open requests of items, of each item by position.
	OpenRequests(ctx context.Context, itemIDs []string) ([]TransitRequest, error)
}

// Service lists. All fields are required.
type Service struct{ Library Library }

// maxRead bounds the items and requests of one list, which is made in memory.
const maxRead = 10_000

// keepFirst returns by key, in lower case, the first record that has it.
func keepFirst[T any](records []T, keyOf func(T) string) map[string]T {
	first := make(map[string]T, len(records))
	for _, r := range records {
		key := strings.ToLower(keyOf(r))
		if _, exists := first[key]; !exists {
			first[key] = r
		}
	}
	return first
}
