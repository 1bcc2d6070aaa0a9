package worklist

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/related"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
)

func idOf(i library.Item) string { return i.ID }

// HoldShelfClearance returns the stored requests whose items staff take off the hold shelf of the
// service point: the items still await pickup, and the last request for which they waited was cancelled
// or has expired. Source: mod-circulation's RequestHoldShelfClearanceResource.
func (s *Service) HoldShelfClearance(ctx context.Context, servicePointID string) ([]json.RawMessage, error) {
	items, _, err := s.Library.ItemsInStatus(ctx, library.StatusAwaitingPickup, maxRead)
	if err != nil {
		return nil, err
	}
	ids := related.IDs(items, idOf)
	waiting, err := s.Library.WaitingForPickup(ctx, ids)
	if err != nil {
		return nil, err
	}
	kept := keepFirst(waiting, itemOf)
	ids = slices.DeleteFunc(ids, func(id string) bool { return kept[id].ID != "" })
	ended, err := s.Library.EndedPickups(ctx, ids)
	if err != nil {
		return nil, err
	}
	var cleared []json.RawMessage
	seen := map[string]bool{}
	for _, request := range ended {
		var r schemas.QueuedRequest
		if err := json.Unmarshal(request, &r); err != nil {
			return nil, fmt.Errorf("a stored request cannot be read: %w", err)
		}
		if !seen[itemOf(r)] && strings.EqualFold(r.PickupServicePointID, servicePointID) {
			cleared = append(cleared, request)
		}
		seen[itemOf(r)] = true
	}
	return cleared, nil
}

// TransitLoan is what a report of items in transit has of a loan.
type TransitLoan struct {
	ItemID                string          `json:"itemId"`
	ReturnDate            library.Instant `json:"returnDate"`
	CheckinServicePointID string          `json:"checkinServicePointId"`
}

// TransitRequest is what a report of items in transit has of a request.
type TransitRequest struct {
	schemas.QueuedRequest
	Tags struct {
		TagList []string `json:"tagList"`
	} `json:"tags"`
}

// Transit is an item on its way to a service point.
type Transit struct {
	Copy        library.Copy
	Library     library.Named // of the item's location
	Destination library.ServicePoint

	LastCheckIn   string               // when; "" if that is not known
	LastCheckInAt library.ServicePoint // zero if that is not known

	Loan      *TransitLoan // the last one; nil for none
	CheckedIn library.ServicePoint
	Request   *TransitRequest // the first open one; nil for none
	Group     library.Group   // of its requester
	Pickup    library.ServicePoint
}

// ItemsInTransit returns the items in transit, at most 10000, by the name of the service point at which
// they were returned, and how many there are in all. Items that were not on loan come last. Source:
// mod-circulation's ItemsInTransitReport.
func (s *Service) ItemsInTransit(ctx context.Context) ([]Transit, int, error) {
	items, total, err := s.Library.ItemsInStatus(ctx, library.StatusInTransit, maxRead)
	if err != nil {
		return nil, 0, err
	}
	if len(items) < maxRead {
		total = len(items) // else it may be an estimate
	}
	ids := related.IDs(items, idOf)
	allLoans, err := s.Library.LoansInTransit(ctx, ids)
	if err != nil {
		return nil, 0, err
	}
	allRequests, err := s.Library.OpenRequests(ctx, ids)
	if err != nil {
		return nil, 0, err
	}
	loans := keepFirst(allLoans, func(l TransitLoan) string { return l.ItemID })
	requests := keepFirst(allRequests, func(r TransitRequest) string { return r.ItemID })
	points := slices.Concat(
		related.IDs(items, readCheckInPlace),
		related.IDs(allLoans, func(l TransitLoan) string { return l.CheckinServicePointID }),
		related.IDs(allRequests, func(r TransitRequest) string { return r.PickupServicePointID }))
	found, err := related.Fetch(ctx, s.Library, related.Wanted{
		Items: ids, ServicePoints: points, RequestNames: true,
		Users: related.IDs(allRequests, func(r TransitRequest) string { return r.RequesterID }),
	})
	if err != nil {
		return nil, 0, err
	}
	report := convert.All(ids, func(id string) Transit { return describeTransit(found, id, loans, requests) })
	slices.SortStableFunc(report, func(a, b Transit) int {
		if (a.CheckedIn.Name == "") != (b.CheckedIn.Name == "") {
			return strings.Compare(b.CheckedIn.Name, a.CheckedIn.Name)
		}
		return strings.Compare(a.CheckedIn.Name, b.CheckedIn.Name)
	})
	return report, total, nil
}

func describeTransit(found *related.Found, id string, loans map[string]TransitLoan, requests map[string]TransitRequest) Transit {
	c := found.Copy(id)
	t := Transit{
		Copy: c, Library: found.LibraryUnits[c.Location.LibraryID], Destination: found.ServicePoints[c.Item.InTransitDestinationServicePointID],
		LastCheckInAt: found.ServicePoints[readCheckInPlace(c.Item)],
	}
	t.LastCheckIn, _ = c.Item.LastCheckIn["dateTime"].(string)
	if loan, exists := loans[id]; exists {
		t.Loan, t.CheckedIn = &loan, found.ServicePoints[loan.CheckinServicePointID]
	}
	if request, exists := requests[id]; exists {
		t.Request, t.Pickup = &request, found.ServicePoints[request.PickupServicePointID]
		t.Group = found.Groups[found.Users[request.RequesterID].PatronGroup]
	}
	return t
}

// readCheckInPlace returns the id of the service point at which an item was checked in last.
func readCheckInPlace(i library.Item) string {
	id, _ := i.LastCheckIn["servicePointId"].(string)
	return id
}
