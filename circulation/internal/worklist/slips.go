package worklist

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/related"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// Slip is a request whose item staff have to fetch or to look for.
type Slip struct {
	Request schemas.QueuedRequest
	// Copy has no item for a request that any item of the title may fill.
	Copy library.Copy
	// Parts are the records that the slip names besides.
	Parts library.Slip
	// At is the service point that serves the item's location, or the title's.
	At library.ServicePoint
	// Pickup is where the patron fetches the item; zero for a delivery.
	Pickup library.ServicePoint
	// AddressType names the type of the delivery address; empty without one.
	AddressType string
}

// FOLIO's numbers (mod-circulation, PickSlipsResource and SearchSlipsResource).
const (
	maxPickSlips   = 2500
	maxSearchSlips = 2000
)

// PickSlips returns the pages whose items are in locations that the service point serves, at most 2500,
// by location, shelving order and title. An item counts where it is now.
func (s *Service) PickSlips(ctx context.Context, servicePointID string) ([]Slip, error) {
	return s.listSlips(ctx, servicePointID, schemas.RequestPage, maxPickSlips)
}

// SearchSlips is PickSlips for holds, at most 2000. A hold of a title counts where the title has
// holdings. There are none unless the tenant's setting PRINT_HOLD_REQUESTS asks for them.
func (s *Service) SearchSlips(ctx context.Context, servicePointID string) ([]Slip, error) {
	value, exists, err := fault.Found(s.Library.SettingValue(ctx, "PRINT_HOLD_REQUESTS"))
	if err != nil || !exists {
		return nil, err
	}
	var setting struct {
		On any `json:"printHoldRequestsEnabled"`
	}
	if err := json.Unmarshal(value, &setting); err != nil || setting.On != true {
		return nil, nil //nolint:nilerr // as in FOLIO, a setting of another form is off
	}
	return s.listSlips(ctx, servicePointID, schemas.RequestHold, maxSearchSlips)
}

func (s *Service) listSlips(ctx context.Context, servicePointID, requestType string, limit int) ([]Slip, error) {
	served, err := s.Library.LocationsServed(ctx, servicePointID)
	if err != nil || len(served) == 0 {
		return nil, err
	}
	unfilled, err := s.Library.UnfilledRequests(ctx, requestType, maxRead)
	if err != nil {
		return nil, err
	}
	here, err := s.keepServed(ctx, unfilled, served)
	if err != nil {
		return nil, err
	}
	return s.describe(ctx, here[:min(len(here), limit)], servicePointID)
}

// keepServed returns the requests whose item, or title, is in one of the locations.
func (s *Service) keepServed(ctx context.Context, requests []schemas.QueuedRequest, locations []library.Location) ([]schemas.QueuedRequest, error) {
	isServed := map[string]bool{}
	for _, l := range locations {
		isServed[l.ID] = true
	}
	items, err := s.Library.Items(ctx, related.IDs(requests, itemOf))
	if err != nil {
		return nil, fmt.Errorf("reading the requested items: %w", err)
	}
	holdings, err := s.Library.TitleHoldings(ctx, related.IDs(requests, titleOf))
	if err != nil {
		return nil, fmt.Errorf("reading the holdings of the requested titles: %w", err)
	}
	isHere := map[string]bool{}
	for _, i := range items {
		isHere[i.ID] = isServed[strings.ToLower(i.EffectiveLocationID)]
	}
	for _, h := range holdings {
		title := strings.ToLower(h.InstanceID)
		isHere[title] = isHere[title] || isServed[strings.ToLower(h.EffectiveLocationID)]
	}
	return slices.DeleteFunc(requests, func(r schemas.QueuedRequest) bool { return !isHere[itemOf(r)] && !isHere[titleOf(r)] }), nil
}

// itemOf returns the id of the item as its record has it: that of a request may have capitals.
func itemOf(r schemas.QueuedRequest) string { return strings.ToLower(r.ItemID) }

// titleOf is itemOf for the title of a request that any item of it may fill.
func titleOf(r schemas.QueuedRequest) string {
	if r.ItemID != "" {
		return ""
	}
	return strings.ToLower(r.InstanceID)
}

// describe returns the slips in the order of mod-circulation. A missing part of the order comes as "_".
func (s *Service) describe(ctx context.Context, requests []schemas.QueuedRequest, servicePointID string) ([]Slip, error) {
	points := append(related.IDs(requests, func(r schemas.QueuedRequest) string { return r.PickupServicePointID }), servicePointID)
	found, err := related.Fetch(ctx, s.Library, related.Wanted{
		Users: related.IDs(requests, func(r schemas.QueuedRequest) string { return r.RequesterID }),
		Items: related.IDs(requests, itemOf), Titles: related.IDs(requests, titleOf), ServicePoints: points,
		AddressTypes: related.IDs(requests, func(r schemas.QueuedRequest) string { return r.DeliveryAddressTypeID }), RequestNames: true, SlipNames: true,
	})
	if err != nil {
		return nil, err
	}
	slips := make([]Slip, len(requests))
	for i, r := range requests {
		slips[i] = Slip{
			Request: r, Copy: found.Copy(itemOf(r)), Parts: found.Slip(itemOf(r), r.RequesterID), At: found.ServicePoints[servicePointID],
			Pickup:      found.ServicePoints[r.PickupServicePointID],
			AddressType: found.AddressTypes[r.DeliveryAddressTypeID].Name,
		}
		if title := titleOf(r); title != "" {
			slips[i].Copy.Instance = found.Titles[title]
		}
	}
	slices.SortStableFunc(slips, func(a, b Slip) int {
		return cmp.Or(compareShown(a.Copy.Location.Name, b.Copy.Location.Name), compareShown(a.Copy.Item.ShelvingOrder, b.Copy.Item.ShelvingOrder),
			compareShown(a.Copy.Instance.Title, b.Copy.Instance.Title))
	})
	return slips, nil
}

func compareShown(a, b string) int { return cmp.Compare(cmp.Or(a, "_"), cmp.Or(b, "_")) }
