package integration_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// readList returns a list of circulation by its key. totalRecords has to be its length.
func (p *pair) readList(t *testing.T, path, key string) []any {
	t.Helper()
	page := readObject(t, callEndpoint(t, p.machines[0], http.MethodGet, path, nil), http.StatusOK)
	list, ok := page[key].([]any)
	if !ok || page["totalRecords"] != float64(len(list)) {
		t.Fatalf("%s: got %v, want a list with its length", path, page)
	}
	return list
}

// addLocation adds a location of the library that a service point serves.
func (p *pair) addLocation(t *testing.T, name, servicePointID string) string {
	t.Helper()
	main := p.readRecord(t, "/locations/"+p.LocationID)
	return p.addRecord(t, "/locations", record{
		"name": name, "code": name, "institutionId": main["institutionId"], "campusId": main["campusId"],
		"libraryId": main["libraryId"], "primaryServicePoint": servicePointID, "servicePointIds": []string{servicePointID},
	})
}

// joinBarcodes returns the barcodes of the slips' items, or the titles of those without.
func joinBarcodes(slips []any) string {
	var all []string
	for _, s := range slips {
		item := s.(record)["item"].(record)
		if item["barcode"] == nil {
			item["barcode"] = item["title"]
		}
		all = append(all, fmt.Sprint(item["barcode"]))
	}
	return strings.Join(all, " ")
}

func TestPickSlips(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	branch := p.addBranch(t)
	stacks := p.addLocation(t, "Archive", p.ServicePointID)
	addressType := p.addRecord(t, "/addresstypes", record{"addressType": "Office"})
	itemID, _, instanceID, first := p.addDescribedItem(t)
	p.setItemStatus(t, itemID, "Available")
	_, second := p.addItem(t, record{"permanentLocationId": stacks})
	elsewhere, third := p.addItem(t)
	requester := p.addRecord(t, "/users", record{
		"barcode": "ann-1", "active": true, "patronGroup": p.GroupID, "personal": record{
			"lastName": "Reader", "firstName": "Ann",
			"addresses": []record{{"addressTypeId": addressType, "addressLine1": "1 Main Street", "city": "Berlin"}},
		},
	})
	page := func(barcode string, more ...record) {
		t.Helper()
		id := p.readRecord(t, "/item-storage/items?query=barcode=="+barcode)["items"].([]any)[0].(record)["id"].(string)
		readObject(t, p.placeRequest(t, id, requester, "Page", more...), http.StatusCreated)
	}
	page(first, record{
		"fulfillmentPreference": "Delivery", "deliveryAddressTypeId": addressType, "pickupServicePointId": nil,
		"instanceId": instanceID,
	})
	page(second)
	page(third, record{"patronComments": "soon"})

	const path = "/circulation/pick-slips/"
	slips := p.readList(t, path+p.ServicePointID, "pickSlips")
	if got, want := joinBarcodes(slips), second+" "+third+" "+first; got != want {
		t.Fatalf("got %s, want %s: by location and title", got, want)
	}
	checkParts(t, "delivery", slips[2].(record), record{
		"item.title": "Interesting Times", "item.status": "Paged", "item.materialType": "book", "item.volume": "17",
		"item.loanType": "Can circulate", "item.copy": "c.2", "item.callNumber": "PR6066", "item.instanceHrid": "in77",
		"item.primaryContributor": "Pratchett, Terry", "item.effectiveLocationSpecific": "Main",
		"item.effectiveLocationLibrary": "Main", "item.effectiveLocationCampus": "City",
		"item.effectiveLocationInstitution": "University", "item.effectiveLocationPrimaryServicePointName": "Desk",
		"request.deliveryAddressType": "Office", "requester.barcode": "ann-1", "requester.firstName": "Ann",
		"requester.patronGroup": "readers", "requester.addressLine1": "1 Main Street", "requester.city": "Berlin",
		"requester.addressType": "Office", "request.servicePointPickup": nil,
	})
	checkParts(t, "page", slips[1].(record), record{
		"request.servicePointPickup": "Desk", "request.patronComments": "soon", "requester.addressLine1": nil,
	})
	// An item that was moved since is fetched where it is now.
	item := setFields(p.readRecord(t, "/item-storage/items/"+elsewhere), record{
		"permanentLocationId": p.addLocation(t, "Branch", branch),
	})
	if _, err := p.Storage.Must(t.Context(), http.MethodPut, "/item-storage/items/"+elsewhere, item); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{p.ServicePointID: second + " " + first, branch: third, uuid.NewString(): ""} {
		if got := joinBarcodes(p.readList(t, path+id, "pickSlips")); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := p.readList(t, "/circulation/search-slips/"+p.ServicePointID, "searchSlips"); len(got) != 0 {
		t.Errorf("got %v, want no holds", got)
	}
}

func TestSearchSlips(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	branch := p.addBranch(t)
	itemID, book := p.addItem(t)
	_, ann := p.addPatron(t)
	p.lendAs(t, book, ann, nil)
	ben, _ := p.addPatron(t)
	readObject(t, p.placeRequest(t, itemID, ben, "Hold"), http.StatusCreated)
	_, _, instanceID, _ := p.addDescribedItem(t)
	p.addRecord(t, "/request-storage/requests", setFields(newRequest(), record{
		"requestLevel": "Title", "itemId": nil, "holdingsRecordId": nil, "instanceId": instanceID, "requesterId": ben,
	}))
	p.addRecord(t, "/request-storage/requests", setFields(newRequest(), record{
		"requestLevel": "Title", "itemId": nil, "holdingsRecordId": nil,
	}))
	path := "/circulation/search-slips/" + p.ServicePointID
	settings := []struct {
		value any
		want  string
	}{{nil, ""}, {record{"printHoldRequestsEnabled": false}, ""}, {
		record{"printHoldRequestsEnabled": true}, book + " Interesting Times",
	}}
	for _, s := range settings {
		if s.value != nil {
			p.addRecord(t, "/circulation-settings-storage/circulation-settings",
				record{"name": "PRINT_HOLD_REQUESTS", "value": s.value})
		}
		if got := joinBarcodes(p.readList(t, path, "searchSlips")); got != s.want {
			t.Errorf("setting %v: got %q, want %q", s.value, got, s.want)
		}
	}
	slip := p.readList(t, path, "searchSlips")[1].(record)
	checkParts(t, "hold of a title", slip, record{
		"item.title": "Interesting Times", "item.allContributors": "Kidby, Paul; Pratchett, Terry", "item.status": nil,
		"item.effectiveLocationPrimaryServicePointName": "Desk", "item.effectiveLocationSpecific": nil,
		"requester.patronGroup": "readers",
	})
	if got := p.readList(t, "/circulation/search-slips/"+branch, "searchSlips"); len(got) != 0 {
		t.Errorf("got %v, want nothing at the branch", got)
	}
}

func TestHoldShelfClearance(t *testing.T) {
	t.Parallel()
	d := newRequestDesk(t)
	path := "/circulation/requests-reports/hold-shelf-clearance/"
	branch := d.addBranch(t)
	first, _ := d.wait(t)
	readObject(t, d.checkInItem(t, d.book, d.ServicePointID), http.StatusOK)
	list := func(id string) []any { return d.readList(t, path+id, "requests") }
	if got := list(d.ServicePointID); len(got) != 0 {
		t.Errorf("got %v while the item waits", got)
	}
	request := d.readRecord(t, "/request-storage/requests/"+first)
	cancel := func() {
		t.Helper()
		a := callEndpoint(t, d.machines[0], http.MethodPut, requestsPath+"/"+first, setFields(request, record{
			"status": "Closed - Cancelled", "cancelledDate": time.Now().UTC().Format(time.RFC3339),
		}))
		if a.Status != http.StatusNoContent {
			t.Fatalf("got %d %s", a.Status, a.Body)
		}
	}
	cancel()
	got := list(d.ServicePointID)
	if len(got) != 1 || len(list(branch)) != 0 || len(list(uuid.NewString())) != 0 {
		t.Fatalf("got %v, want the request at its desk alone", got)
	}
	checkParts(t, "request", got[0].(record), record{
		"id": first, "status": "Closed - Cancelled", "item.barcode": d.book, "item.status": "Awaiting pickup",
		"pickupServicePoint.name": "Desk", "requester.patronGroup.group": "readers",
	})
	// The next patron's request takes the item from the list, and puts it there when it ends elsewhere.
	second, _ := d.wait(t, record{"pickupServicePointId": branch})
	readObject(t, d.checkInItem(t, d.book, d.ServicePointID), http.StatusOK)
	if got := list(d.ServicePointID); len(got) != 0 {
		t.Errorf("got %v for an item in transit", got)
	}
	readObject(t, d.checkInItem(t, d.book, branch), http.StatusOK)
	first, request = second, d.readRecord(t, "/request-storage/requests/"+second)
	if len(list(branch)) != 0 || len(list(d.ServicePointID)) != 0 {
		t.Error("an item that waits is to be cleared")
	}
	cancel()
	if got := list(branch); len(got) != 1 || got[0].(record)["id"] != second || len(list(d.ServicePointID)) != 0 {
		t.Errorf("got %v, want the last request alone", got)
	}
}

func TestItemsInTransit(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	const path = "/inventory-reports/items-in-transit"
	if got := p.readList(t, path, "items"); len(got) != 0 {
		t.Errorf("got %v in a library without", got)
	}
	branch := p.addBranch(t)
	_, _, _, described := p.addDescribedItem(t) // its record says in transit, and nothing else
	itemID, book := p.addItem(t, record{"yearCaption": []string{"1999"}})
	_, ann := p.addPatron(t)
	ben, _ := p.addPatron(t)
	for _, at := range []string{"2026-10-01T09:30:00.000Z", "2026-09-30T09:30:00.000Z"} {
		p.lendAs(t, book, ann, nil)
		readObject(t, p.checkInItem(t, book, branch, record{"checkInDate": at}), http.StatusOK)
	}
	readObject(t, p.placeRequest(t, itemID, ben, "Hold", record{"tags": record{"tagList": []string{"urgent"}}}),
		http.StatusCreated)
	items := p.readList(t, path, "items")
	if len(items) != 2 {
		t.Fatalf("got %v, want two items", items)
	}
	checkParts(t, "returned", items[0].(record), record{
		"id": itemID, "barcode": book, "title": "A Book of Many Copies", "status.name": "In transit",
		"inTransitDestinationServicePointId": p.ServicePointID, "inTransitDestinationServicePoint.name": "Desk",
		"location.name": "Main", "location.libraryName": "Main", "location.code": "main",
		"request.requestType": "Hold", "request.requestPickupServicePointName": "Desk",
		"loan.checkInServicePoint.name": "Branch", "loan.checkInServicePoint.id": nil,
		"loan.checkInServicePoint.pickupLocation": true, "loan.checkInDateTime": "2026-10-01T09:30:00.000Z",
		"lastCheckIn.servicePoint.name": "Branch", "lastCheckIn.servicePoint.id": branch,
	})
	if got := fmt.Sprint(items[0].(record)["request"].(record)["tags"], items[0].(record)["yearCaption"]); got !=
		"[urgent] [1999]" {
		t.Errorf("got %s", got)
	}
	checkParts(t, "only in transit", items[1].(record), record{
		"barcode": described, "loan": nil, "request": nil, "lastCheckIn": nil, "copyNumber": "c.2", "volume": "17",
		"effectiveCallNumberComponents.callNumber": "PR6066", "callNumber": "PR6066",
	})
}
