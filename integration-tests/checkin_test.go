package integration_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
)

// checkInItem sends a check-in by a member of staff to circulation instance 0.
func (p *pair) checkInItem(t *testing.T, barcode, servicePointID string, more ...record) stack.Answer {
	t.Helper()
	desk := p.machines[0]
	desk.Header = p.signIn(uuid.NewString())
	return callEndpoint(t, desk, http.MethodPost, "/circulation/check-in-by-barcode", setFields(record{
		"itemBarcode": barcode, "servicePointId": servicePointID, "checkInDate": "2026-10-01T09:30:00.000Z",
	}, more...))
}

func TestCheckIn_ClosesTheLoan(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 1)
	itemID, _, _, barcode := p.addDescribedItem(t)
	userID, patron := p.addPatron(t)
	lent := readObject(t, p.lendBook(t, 0, barcode, patron), http.StatusCreated)

	in := readObject(t, p.checkInItem(t, barcode, p.ServicePointID), http.StatusOK)
	checkParts(t, "answer", in, record{
		"loan.id": lent["id"], "loan.status.name": "Closed", "loan.action": "checkedin",
		"loan.checkinServicePointId": p.ServicePointID,
		"loan.borrower.barcode":      patron, "loan.item.title": "Interesting Times", "item.id": itemID,
		"item.barcode":     barcode,
		"item.status.name": "Available", "item.location.name": "Main", "inHouseUse": false,
	})
	checkParts(t, "answer", in, record{"loan.returnDate": "2026-10-01T09:30:00.000Z"})
	checkParts(t, "item", p.readRecord(t, "/item-storage/items/"+itemID), record{
		"status.name": "Available", "lastCheckIn.servicePointId": p.ServicePointID,
	})
	checkParts(t, "loan", p.readRecord(t, fmt.Sprintf("/loan-storage/loans/%v", lent["id"])), record{
		"status.name": "Closed", "itemStatus": "Available",
	})
	if n := p.countOpenLoans(t, userID); n != 0 {
		t.Errorf("the patron has %d loans, want 0", n)
	}
	readObject(t, p.lendBook(t, 0, barcode, patron), http.StatusCreated) // at limit 1
}

func TestCheckIn_AtAnotherServicePoint(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 1)
	branch := p.addBranch(t)
	id, barcode := p.addItem(t)
	_, patron := p.addPatron(t)
	readObject(t, p.lendBook(t, 0, barcode, patron), http.StatusCreated)
	in := readObject(t, p.checkInItem(t, barcode, branch), http.StatusOK)
	checkParts(t, "answer", in, record{
		"loan.status.name": "Closed", "item.status.name": "In transit",
		"item.inTransitDestinationServicePointId":    p.ServicePointID,
		"item.inTransitDestinationServicePoint.name": "Desk", "inHouseUse": false,
	})
	checkParts(t, "item", p.readRecord(t, "/item-storage/items/"+id), record{
		"status.name": "In transit", "inTransitDestinationServicePointId": p.ServicePointID,
	})
	home := readObject(t, p.checkInItem(t, barcode, p.ServicePointID), http.StatusOK)
	checkParts(t, "answer at home", home, record{
		"loan": nil, "item.status.name": "Available", "item.inTransitDestinationServicePointId": nil, "inHouseUse": false,
	})
}

func TestCheckIn_OfAnItemNotOnLoan(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 1)
	_, barcode := p.addItem(t)
	in := readObject(t, p.checkInItem(t, barcode, p.ServicePointID), http.StatusOK)
	checkParts(t, "answer", in, record{"item.status.name": "Available", "inHouseUse": true})
	if loan, given := in["loan"]; given {
		t.Errorf("the answer has a loan: %v", loan)
	}
	_, missing := p.addItem(t, record{"status": record{"name": "Missing"}})
	checkParts(t, "a missing item", readObject(t, p.checkInItem(t, missing, p.ServicePointID), http.StatusOK),
		record{"loan": nil, "item.status.name": "Available", "inHouseUse": false})
}

// As in FOLIO, a hold keeps a pickup place that stops being one.
func TestCheckIn_SetsAsideAtAFormerPickupPlace(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 1)
	branch := p.addBranch(t)
	requester, _ := p.addPatron(t)
	hold := func() string {
		t.Helper()
		item, barcode := p.addItem(t)
		p.addRequest(t, item, requester, 1, record{"pickupServicePointId": branch})
		return barcode
	}
	here, elsewhere := hold(), hold()
	a := callEndpoint(t, p.Storage, http.MethodPut, "/service-points/"+branch, record{
		"id": branch, "name": "Branch", "code": "branch", "discoveryDisplayName": "Branch", "pickupLocation": false,
	})
	if a.Status != http.StatusNoContent {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	checkParts(t, "at the place", readObject(t, p.checkInItem(t, here, branch), http.StatusOK),
		record{"item.status.name": "Awaiting pickup"})
	checkParts(t, "elsewhere", readObject(t, p.checkInItem(t, elsewhere, p.ServicePointID), http.StatusOK), record{
		"item.status.name": "In transit", "item.inTransitDestinationServicePointId": branch,
	})
}

func TestCheckIn_OfAClaimedReturn(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 1)
	id, barcode := p.addItem(t)
	_, patron := p.addPatron(t)
	lent := readObject(t, p.lendBook(t, 0, barcode, patron), http.StatusCreated)
	p.setItemStatus(t, id, "Claimed returned")
	list := readRefusals(t, p.checkInItem(t, barcode, p.ServicePointID), http.StatusUnprocessableEntity)
	if got, want := joinMessages(list), "Item is claimed returned, a resolution is required to check in "+
		"[ITEM_CLAIMED_RETURNED]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	in := readObject(t, p.checkInItem(t, barcode, p.ServicePointID, record{
		"claimedReturnedResolution": "Found by library",
	}), http.StatusOK)
	checkParts(t, "answer", in, record{
		"loan.id": lent["id"], "loan.status.name": "Closed", "loan.action": "checkedInFoundByLibrary",
		"item.status.name": "Available",
	})
}

func TestCheckIn_RefusesAsFOLIO(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 1)
	_, book := p.addItem(t)
	_, work := p.addItem(t, record{"status": record{"name": "Intellectual item"}})
	const (
		noItem = "Checkin request must have an item barcode [PROPERTY_MISSING]"
		noDesk = "Checkin request must have a service point id [PROPERTY_MISSING]"
		noDate = "Checkin request must have an check in date [PROPERTY_MISSING]"
	)
	for name, tt := range map[string]struct {
		body record
		want string
	}{
		"no barcode":       {record{"itemBarcode": nil}, noItem},
		"no service point": {record{"servicePointId": nil}, noDesk},
		"no date":          {record{"checkInDate": nil}, noDate},
		"all missing": {
			record{"itemBarcode": nil, "servicePointId": nil, "checkInDate": nil}, noItem + "\n" + noDesk + "\n" + noDate,
		},
		"unknown item": {
			record{"itemBarcode": "nothing"}, "No item with barcode nothing exists [ITEM_BARCODE_NOT_FOUND]",
		},
		"a work, not a copy": {
			record{"itemBarcode": work},
			"A Book of Many Copies (book) (Barcode: " + work +
				") has the item status Intellectual item and cannot be checked in [ITEM_STATUS]",
		},
		"unknown resolution": {
			record{"claimedReturnedResolution": "Under the sofa"}, "Unrecognized value provided for property [INVALID]",
		},
		"an invalid date": {record{"checkInDate": "2026-02-30"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := joinMessages(readRefusals(t, p.checkInItem(t, book, p.ServicePointID, tt.body),
				http.StatusUnprocessableEntity))
			if got != tt.want && tt.want != "" {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	t.Run("no user logged in", func(t *testing.T) {
		t.Parallel()
		unnamed := p.machines[0]
		unnamed.Header = p.signIn("")
		a := callEndpoint(t, unnamed, http.MethodPost, "/circulation/check-in-by-barcode",
			record{"itemBarcode": book, "servicePointId": p.ServicePointID, "checkInDate": "2026-10-01T09:30:00Z"})
		if got := joinMessages(readRefusals(t, a,
			http.StatusUnprocessableEntity)); got != "No logged-in user present [NO_LOGGED_IN_USER]" {
			t.Errorf("got %q", got)
		}
	})
}

func TestCheckIn_HappensOnceWhenAnswersAreLost(t *testing.T) {
	t.Parallel()
	const path = "/loan-storage/check-ins"
	tests := map[string]linkFault{
		"the answer is lost":  {method: http.MethodPost, path: path, times: 1, handle: loseAnswer},
		"the request is lost": {method: http.MethodPost, path: path, times: 1, handle: loseRequest},
		"storage fails": {
			method: http.MethodPost, path: path, times: 1, handle: answerWith(http.StatusInternalServerError),
		},
	}
	for name, fault := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, links := startPairWithLinks(t, stack.Options{CirculationEnv: enableLock()}, 1)
			userID, patron := p.addPatron(t)
			itemID, barcode := p.addItem(t)
			lent := readObject(t, p.lendBook(t, 0, barcode, patron), http.StatusCreated)
			links[0].addFault(fault)
			in := readObject(t, p.checkInItem(t, barcode, p.ServicePointID), http.StatusOK)
			checkParts(t, "answer", in, record{
				"loan.id": lent["id"], "loan.status.name": "Closed", "item.id": itemID, "item.status.name": "Available",
				"inHouseUse": false,
			})
			if n := p.countOpenLoans(t, userID); n != 0 {
				t.Errorf("the patron has %d loans, want 0", n)
			}
			found := p.readRecord(t, "/patron-action-session-storage/patron-action-sessions?query=actionType==Check-in")
			sessions, _ := found["patronActionSessions"].([]any)
			if len(sessions) != 1 {
				t.Errorf("got %d records of check-ins, want 1", len(sessions))
			}
		})
	}
}
