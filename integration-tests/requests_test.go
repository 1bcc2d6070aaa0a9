package integration_test

import (
	"net/http"
	"strings"
	"testing"

	"checkoutlock/integration-tests/stack"
)

// asksFor places a request through circulation.
func (p *pair) asksFor(t *testing.T, itemID, requesterID, kind string, more ...record) stack.Answer {
	t.Helper()
	return do(t, p.machines[0], http.MethodPost, "/circulation/requests", with(record{
		"requestLevel": "Item", "requestType": kind, "fulfillmentPreference": "Hold Shelf", "pickupServicePointId": p.ServicePointID,
		"requesterId": requesterID, "itemId": itemID, "instanceId": p.stored(t, "/holdings-storage/holdings/"+p.HoldingsID)["instanceId"],
	}, more...))
}

func TestARequestedBookGoesFromOnePatronToTheNext(t *testing.T) {
	t.Parallel()
	p := start(t, stack.Options{CirculationEnv: on()}, 3)
	branch := p.add(t, "/service-points", record{
		"name": "Branch", "code": "branch", "discoveryDisplayName": "Branch", "pickupLocation": true,
		"holdShelfExpiryPeriod": record{"duration": 3, "intervalId": "Weeks"},
	})
	_, annCard := p.patron(t)
	ben, benCard := p.patron(t)
	cat, catCard := p.patron(t)
	itemID, book := p.item(t)
	p.lentAs(t, book, annCard, nil)

	placed := p.asksFor(t, itemID, ben, "Hold", record{"pickupServicePointId": branch})
	first := object(t, placed, http.StatusCreated)
	checkParts(t, "Ben's request", first, record{
		"status": "Open - Not yet filled", "position": 1.0, "itemId": itemID, "holdingsRecordId": p.HoldingsID, "item.barcode": book,
		"requester.barcode": benCard,
	})
	if location := placed.Header.Get("Location"); location != "/circulation/requests/"+first["id"].(string) {
		t.Errorf("Location is %q", location)
	}
	second := object(t, p.asksFor(t, itemID, cat, "Recall"), http.StatusCreated)
	if got := text(refusals(t, p.asksFor(t, itemID, cat, "Hold"), http.StatusUnprocessableEntity)); got != "This requester already has an open request for this item" {
		t.Errorf("a second one of the same patron: got %s", got)
	}
	queue := object(t, do(t, p.machines[0], http.MethodGet, "/circulation/requests/queue/item/"+itemID, nil), http.StatusOK)
	waiting, _ := queue["requests"].([]any)
	if len(waiting) != 2 || queue["totalRecords"] != 2.0 {
		t.Fatalf("got the queue %v, want two requests", queue)
	}
	checkParts(t, "the first of the queue", waiting[0].(record), record{"id": first["id"]})
	checkParts(t, "the second", waiting[1].(record), record{"id": second["id"]})

	in := object(t, p.takeBack(t, book, p.ServicePointID), http.StatusOK)
	checkParts(t, "on its way to Ben", in, record{
		"loan.status.name": "Closed", "item.status.name": "In transit", "item.inTransitDestinationServicePointId": branch, "inHouseUse": false,
	})
	in = object(t, p.takeBack(t, book, branch), http.StatusOK)
	checkParts(t, "waits for Ben", in, record{"loan": nil, "item.status.name": "Awaiting pickup"})
	waits := object(t, do(t, p.machines[0], http.MethodGet, "/circulation/requests/"+first["id"].(string), nil), http.StatusOK)
	checkParts(t, "Ben's request", waits, record{"status": "Open - Awaiting pickup", "position": 1.0})
	if until, _ := waits["holdShelfExpirationDate"].(string); !strings.Contains(until, "T23:59:59") {
		t.Errorf("the book waits until %q, want the end of a day", until)
	}
	if got := text(refusals(t, p.asks(t, book, catCard, nil), http.StatusUnprocessableEntity)); !strings.Contains(got, "requested by another patron") {
		t.Errorf("Cat tries first: got %s", got)
	}
	loan := p.lentAs(t, book, benCard, nil)
	checkParts(t, "Ben's request", p.stored(t, "/request-storage/requests/"+first["id"].(string)), record{"status": "Closed - Filled", "position": nil})
	checkParts(t, "Cat's request", p.stored(t, "/request-storage/requests/"+second["id"].(string)), record{"status": "Open - Not yet filled", "position": 1.0})
	sessions := "/patron-action-session-storage/patron-action-sessions?query=loanId==" + loan["id"].(string)
	if n := p.total(t, sessions); n != 1 {
		t.Errorf("got %d session records of Ben's loan, want 1", n)
	}
}

func TestAPageTakesTheBookFromTheShelf(t *testing.T) {
	t.Parallel()
	p := start(t, stack.Options{CirculationEnv: on()}, 3)
	ann, annCard := p.patron(t)
	_, benCard := p.patron(t)
	itemID, book := p.item(t)
	if got := text(refusals(t, p.asksFor(t, itemID, ann, "Hold"), http.StatusUnprocessableEntity)); !strings.Contains(got, "not allowed for Available item status") {
		t.Errorf("a hold of a book on the shelf: got %s", got)
	}
	object(t, p.asksFor(t, itemID, ann, "Page"), http.StatusCreated)
	checkParts(t, "item", p.stored(t, "/item-storage/items/"+itemID), record{"status.name": "Paged"})
	if got := text(refusals(t, p.asks(t, book, benCard, nil), http.StatusUnprocessableEntity)); !strings.Contains(got, "requested by another patron") {
		t.Errorf("got %s", got)
	}
	p.lentAs(t, book, annCard, nil)
	queue := object(t, do(t, p.machines[0], http.MethodGet, "/circulation/requests/queue/item/"+itemID, nil), http.StatusOK)
	checkParts(t, "queue", queue, record{"totalRecords": 0.0})
}
