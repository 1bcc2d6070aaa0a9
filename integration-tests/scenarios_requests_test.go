package integration_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"
)

// addTitle gives the stage an item of a new title with an empty queue.
func (s *stage) addTitle(t *testing.T, more ...record) {
	t.Helper()
	s.instanceID = s.addRecord(t, "/instance-storage/instances", record{
		"title": "Interesting Times", "source": "local", "instanceTypeId": uuid.NewString(),
	})
	s.holdingsID = s.addRecord(t, "/holdings-storage/holdings", record{
		"instanceId": s.instanceID, "permanentLocationId": s.LocationID, "sourceId": uuid.NewString(),
	})
	s.itemID, s.barcode = s.addItem(t, append([]record{{"holdingsRecordId": s.holdingsID}}, more...)...)
}

// queueRequest stores an open request in the title's queue. Without an item id it is for any
// item of the title.
func (s *stage) queueRequest(t *testing.T, requesterID, requestType, level, itemID string, position int) string {
	t.Helper()
	more := record{
		"instanceId": s.instanceID, "holdingsRecordId": s.holdingsID, "requestType": requestType, "requestLevel": level,
	}
	if itemID == "" {
		more["itemId"], more["holdingsRecordId"] = nil, nil // addRequest sets them
	}
	return s.addRequest(t, itemID, requesterID, position, more)
}

// requestedItem returns the item id of a request of this type and level. A hold of a title
// has none.
func (s *stage) requestedItem(requestType, level string) string {
	if requestType == "Hold" && level == "Title" {
		return ""
	}
	return s.itemID
}

// waitingAt returns parts of a request that waits at the position.
func waitingAt(position float64) record {
	return record{"status": "Open - Not yet filled", "position": position}
}

// filled are parts of a filled request.
var filled = record{"status": "Closed - Filled", "position": nil}

// checkRequest fails the test unless the request has these parts.
func (s *stage) checkRequest(t *testing.T, request string, want record) {
	t.Helper()
	checkParts(t, "request", s.readRecord(t, "/request-storage/requests/"+request), want)
}

// queueFirstRequest adds a title with a request by the borrower or by another patron.
func queueFirstRequest(requestType, level string, byBorrower bool, more ...record) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.addTitle(t, more...)
		requester := s.userID
		if !byBorrower {
			requester, _ = s.addPatron(t)
		}
		s.requestID = s.queueRequest(t, requester, requestType, level, s.requestedItem(requestType, level), 1)
	}
}

// checkFilled fails the test unless the check-out filled the first request.
func checkFilled(t *testing.T, s *stage, _ record) {
	t.Helper()
	s.checkRequest(t, s.requestID, filled)
}

// checkStillWaiting fails the test unless the first request still waits.
func checkStillWaiting(t *testing.T, s *stage, _ record) {
	t.Helper()
	s.checkRequest(t, s.requestID, waitingAt(1))
}

const requestedByAnother = "Interesting Times (Barcode: {item}) cannot be checked out to user Reader, {patron} " +
	"because it has been requested by another patron [ITEM_REQUESTED] (userBarcode={patron})"

// queueForAnotherItem adds a title with another patron's request for another item.
func queueForAnotherItem(requestType, level string) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.addTitle(t)
		other, _ := s.addItem(t, record{"holdingsRecordId": s.holdingsID})
		requester, _ := s.addPatron(t)
		s.requestID = s.queueRequest(t, requester, requestType, level, other, 1)
	}
}

func TestScenarios_ItemRequests(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 99)
	status := func(name string) record { return record{"status": record{"name": name}} }
	p.runScenarios(t, nil, []scenario{
		{
			name: "an item on order, for its requester", folio: "item on order with request",
			prepare: queueFirstRequest("Recall", "Item", true, status("On order")), check: checkFilled,
		},
		{
			name: "an item in process, for its requester", folio: "item in process with request",
			prepare: queueFirstRequest("Recall", "Item", true, status("In process")), check: checkFilled,
		},
		{
			name: "a paged item, for its requester", folio: "page filled",
			prepare: queueFirstRequest("Page", "Item", true, status("Paged")), check: checkFilled,
		},
		{
			name: "an item that waits on the hold shelf, for its requester", folio: "hold filled",
			prepare: queueFirstRequest("Hold", "Item", true, status("Awaiting pickup")), check: checkFilled,
		},
		{
			name: "another patron's hold", folio: "requested by another patron",
			prepare: queueFirstRequest("Hold", "Item", false), wantErrors: requestedByAnother,
		},
		{
			name: "another patron's page", folio: "requested by another patron",
			prepare: queueFirstRequest("Page", "Item", false, status("Paged")), wantErrors: requestedByAnother,
		},
		{
			name: "another patron's request for the title", folio: "title-level request ignored with the feature off",
			prepare: queueFirstRequest("Hold", "Title", false), check: checkStillWaiting,
		},
		{
			name: "another patron's page of the item for its title", folio: "title-level request ignored with the feature off",
			prepare: queueFirstRequest("Page", "Title", false), check: checkStillWaiting,
		},
		{
			name: "a sponsor's request, through a proxy", folio: "request filled for the proxy's sponsor",
			prepare: func(t *testing.T, s *stage) {
				t.Helper()
				queueFirstRequest("Hold", "Item", true)(t, s)
				useProxy(t, s)
			},
			check: checkFilled,
		},
		{
			name: "the next requests move up", folio: "the queue moves up",
			prepare: func(t *testing.T, s *stage) {
				t.Helper()
				queueFirstRequest("Hold", "Item", true)(t, s)
				for position := 2; position <= 3; position++ {
					requester, _ := s.addPatron(t)
					s.followers = append(s.followers, s.queueRequest(t, requester, "Hold", "Item", s.itemID, position))
				}
			},
			check: func(t *testing.T, s *stage, _ record) {
				t.Helper()
				s.checkRequest(t, s.requestID, filled)
				s.checkRequest(t, s.followers[0], waitingAt(1))
				s.checkRequest(t, s.followers[1], waitingAt(2))
			},
		},
		{
			name:  "a request by a patron without a barcode, and an unknown borrower",
			folio: "patron without a barcode, item requested",
			prepare: func(t *testing.T, s *stage) {
				t.Helper()
				s.usePatron(t, nil)
				s.addTitle(t)
				cardless := s.addRecord(t, "/users", record{
					"active": true, "patronGroup": s.GroupID, "personal": record{"lastName": "Cardless"},
				})
				s.queueRequest(t, cardless, "Hold", "Item", s.itemID, 1)
				s.userBarcode = "unknown"
			},
			wantErrors: "Could not find user with matching barcode [USER_BARCODE_NOT_FOUND] (userBarcode=unknown)",
		},
		{
			name: "blocks lifted, and another patron's hold", folio: "no override of other errors",
			prepare: func(t *testing.T, s *stage) {
				t.Helper()
				queueFirstRequest("Hold", "Item", false)(t, s)
				setCheckOut(liftBlocks(liftPatron, liftLimit), blockByHand)(t, s)
			},
			permissions: []string{mayPatron, mayLimit}, wantErrors: requestedByAnother,
		},
	})
}

// startTitleLevelLibrary starts a library with title-level requests turned on.
func startTitleLevelLibrary(t *testing.T) *pair {
	t.Helper()
	p := joinSharedPair(t, 99)
	p.addRecord(t, "/circulation-settings-storage/circulation-settings", record{
		"name": "generalTlr", "value": record{"titleLevelRequestsFeatureEnabled": true},
	})
	return p
}

func TestScenarios_TitleRequests(t *testing.T) {
	t.Parallel()
	p := startTitleLevelLibrary(t)
	p.runScenarios(t, nil, []scenario{
		{
			name: "the borrower's hold of the title", folio: "title-level hold filled",
			prepare: queueFirstRequest("Hold", "Title", true), check: checkFilled,
		},
		{
			name: "the borrower's page of the title", folio: "title-level page filled",
			prepare: queueFirstRequest("Page", "Title", true), check: checkFilled,
		},
		{
			name: "the borrower's hold of the item", folio: "item-level hold filled",
			prepare: queueFirstRequest("Hold", "Item", true), check: checkFilled,
		},
		{
			name: "another patron's hold of the title", folio: "requested by another patron",
			prepare: queueFirstRequest("Hold", "Title", false), wantErrors: requestedByAnother,
		},
		{
			name: "another patron's hold of the item", folio: "requested by another patron",
			prepare: queueFirstRequest("Hold", "Item", false), wantErrors: requestedByAnother,
		},
		{
			name: "another patron's page of this item for its title", folio: "title-level page of the same item",
			prepare: queueFirstRequest("Page", "Title", false), wantErrors: requestedByAnother,
		},
		{
			name: "another patron's page of another item for its title", folio: "title-level page of a different item",
			prepare: queueForAnotherItem("Page", "Title"), check: checkStillWaiting,
		},
		{
			name: "another patron's hold of another item", folio: "item-level hold of a different item",
			prepare: queueForAnotherItem("Hold", "Item"), check: checkStillWaiting,
		},
	})
}

// FOLIO: page and hold requests of mixed levels.
func TestScenarios_PageThenHold(t *testing.T) {
	t.Parallel()
	p := startTitleLevelLibrary(t)
	for _, pageLevel := range []string{"Item", "Title"} {
		for _, holdLevel := range []string{"Item", "Title"} {
			t.Run(fmt.Sprintf("page of the %s, hold of the %s", pageLevel, holdLevel), func(t *testing.T) {
				t.Parallel()
				s := &stage{pair: p}
				s.addTitle(t, record{"status": record{"name": "Paged"}})
				ann, annCard := p.addPatron(t)
				ben, benCard := p.addPatron(t)
				page := s.queueRequest(t, ann, "Page", pageLevel, s.itemID, 1)
				hold := s.queueRequest(t, ben, "Hold", holdLevel, s.requestedItem("Hold", holdLevel), 2)

				readRefusals(t, p.lendBook(t, 0, s.barcode, benCard), http.StatusUnprocessableEntity)
				p.lendAs(t, s.barcode, annCard, nil)
				s.checkRequest(t, page, filled)
				s.checkRequest(t, hold, waitingAt(1))
				in := readObject(t, p.checkInItem(t, s.barcode, p.ServicePointID), http.StatusOK)
				checkParts(t, "answer of the check-in", in, record{"item.status.name": "Awaiting pickup"})
				s.checkRequest(t, hold, record{"status": "Open - Awaiting pickup", "position": 1.0})
				readRefusals(t, p.lendBook(t, 0, s.barcode, annCard), http.StatusUnprocessableEntity)
				p.lendAs(t, s.barcode, benCard, nil)
				s.checkRequest(t, hold, filled)
			})
		}
	}
}
