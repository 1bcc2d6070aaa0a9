package integration_test

import (
	"net/http"
	"strings"
	"testing"

	"checkoutlock/integration-tests/stack"
)

// placeRequest places a request through circulation.
func (p *pair) placeRequest(t *testing.T, itemID, requesterID, kind string, more ...record) stack.Answer {
	t.Helper()
	return callEndpoint(t, p.machines[0], http.MethodPost, requestsPath, setFields(record{
		"requestLevel": "Item", "requestType": kind, "fulfillmentPreference": "Hold Shelf",
		"pickupServicePointId": p.ServicePointID,
		"requesterId":          requesterID, "itemId": itemID, "instanceId": p.readInstanceID(t),
	}, more...))
}

func TestRequest_PassesTheBookOn(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	branch := p.addBranch(t)
	_, annCard := p.addPatron(t)
	ben, benCard := p.addPatron(t)
	cat, catCard := p.addPatron(t)
	itemID, book := p.addItem(t)
	p.lendAs(t, book, annCard, nil)

	placed := p.placeRequest(t, itemID, ben, "Hold", record{"pickupServicePointId": branch})
	first := readObject(t, placed, http.StatusCreated)
	checkParts(t, "Ben's request", first, record{
		"status": "Open - Not yet filled", "position": 1.0, "itemId": itemID, "holdingsRecordId": p.HoldingsID,
		"item.barcode":      book,
		"requester.barcode": benCard,
	})
	if location := placed.Header.Get("Location"); location != "/circulation/requests/"+first["id"].(string) {
		t.Errorf("Location is %q", location)
	}
	second := readObject(t, p.placeRequest(t, itemID, cat, "Recall"), http.StatusCreated)
	if got := joinMessages(readRefusals(t, p.placeRequest(t, itemID, cat, "Hold"),
		http.StatusUnprocessableEntity)); got != "This requester already has an open request for this item "+
		"[ITEM_ALREADY_REQUESTED]" {
		t.Errorf("a second request of the same patron: got %s", got)
	}
	queue := readObject(t, callEndpoint(t, p.machines[0], http.MethodGet, "/circulation/requests/queue/item/"+itemID, nil),
		http.StatusOK)
	waiting, _ := queue["requests"].([]any)
	if len(waiting) != 2 || queue["totalRecords"] != 2.0 {
		t.Fatalf("got the queue %v, want two requests", queue)
	}
	checkParts(t, "the first of the queue", waiting[0].(record), record{"id": first["id"]})
	checkParts(t, "the second", waiting[1].(record), record{"id": second["id"]})

	in := readObject(t, p.checkInItem(t, book, p.ServicePointID), http.StatusOK)
	checkParts(t, "on its way to Ben", in, record{
		"loan.status.name": "Closed", "item.status.name": "In transit", "item.inTransitDestinationServicePointId": branch,
		"inHouseUse": false,
	})
	in = readObject(t, p.checkInItem(t, book, branch), http.StatusOK)
	checkParts(t, "waits for Ben", in, record{"loan": nil, "item.status.name": "Awaiting pickup"})
	waits := readObject(t, callEndpoint(t, p.machines[0], http.MethodGet, "/circulation/requests/"+first["id"].(string),
		nil), http.StatusOK)
	checkParts(t, "Ben's request", waits, record{"status": "Open - Awaiting pickup", "position": 1.0})
	if until, _ := waits["holdShelfExpirationDate"].(string); !strings.Contains(until, "T23:59:59") {
		t.Errorf("the hold shelf expires at %q, want the end of a day", until)
	}
	if got := joinMessages(readRefusals(t, p.sendCheckOut(t, book, catCard, nil),
		http.StatusUnprocessableEntity)); !strings.Contains(got, "requested by another patron") {
		t.Errorf("Cat tries first: got %s", got)
	}
	loan := p.lendAs(t, book, benCard, nil)
	checkParts(t, "Ben's request", p.readRecord(t, "/request-storage/requests/"+first["id"].(string)), record{
		"status": "Closed - Filled", "position": nil,
	})
	checkParts(t, "Cat's request", p.readRecord(t, "/request-storage/requests/"+second["id"].(string)), record{
		"status": "Open - Not yet filled", "position": 1.0,
	})
	sessions := "/patron-action-session-storage/patron-action-sessions?query=loanId==" + loan["id"].(string)
	if n := p.countRecords(t, sessions); n != 1 {
		t.Errorf("got %d session records of Ben's loan, want 1", n)
	}
}

func TestRequest_Page(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	ann, annCard := p.addPatron(t)
	_, benCard := p.addPatron(t)
	itemID, book := p.addItem(t)
	if got := joinMessages(readRefusals(t, p.placeRequest(t, itemID, ann, "Hold"),
		http.StatusUnprocessableEntity)); !strings.Contains(got,
		"Hold requests are not allowed for this patron and item combination") {
		t.Errorf("a hold of an available book: got %s", got)
	}
	readObject(t, p.placeRequest(t, itemID, ann, "Page"), http.StatusCreated)
	checkParts(t, "item", p.readRecord(t, "/item-storage/items/"+itemID), record{"status.name": "Paged"})
	if got := joinMessages(readRefusals(t, p.sendCheckOut(t, book, benCard, nil),
		http.StatusUnprocessableEntity)); !strings.Contains(got, "requested by another patron") {
		t.Errorf("got %s", got)
	}
	p.lendAs(t, book, annCard, nil)
	queue := readObject(t, callEndpoint(t, p.machines[0], http.MethodGet, "/circulation/requests/queue/item/"+itemID, nil),
		http.StatusOK)
	checkParts(t, "queue", queue, record{"totalRecords": 0.0})
}
