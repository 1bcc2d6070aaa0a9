package integration_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
)

// title gives the stage an item of a title of its own, so that the queue is its
// own too.
func (s *stage) title(t *testing.T, more ...record) {
	t.Helper()
	s.instanceID = s.add(t, "/instance-storage/instances", record{"title": "Interesting Times", "source": "local", "instanceTypeId": uuid.NewString()})
	s.holdingsID = s.add(t, "/holdings-storage/holdings", record{"instanceId": s.instanceID, "permanentLocationId": s.LocationID, "sourceId": uuid.NewString()})
	s.itemID, s.barcode = s.item(t, append([]record{{"holdingsRecordId": s.holdingsID}}, more...)...)
}

// wants places an open request in the title's queue; without an item it waits for
// any of the title.
func (s *stage) wants(t *testing.T, requesterID, requestType, level, itemID string, position int) string {
	t.Helper()
	of := record{"instanceId": s.instanceID, "holdingsRecordId": s.holdingsID, "requestType": requestType, "requestLevel": level}
	if itemID == "" {
		of["itemId"], of["holdingsRecordId"] = nil, nil // takes away what request puts there
	}
	return s.request(t, itemID, requesterID, position, of)
}

// named is the item that a request of this type and level names: a title's hold
// names none.
func (s *stage) named(requestType, level string) string {
	if requestType == "Hold" && level == "Title" {
		return ""
	}
	return s.itemID
}

// waits is what a request has that still waits at the position, filled what one
// has that does not.
func waits(position float64) record {
	return record{"status": "Open - Not yet filled", "position": position}
}

var filled = record{"status": "Closed - Filled", "position": nil}

// is fails the test unless the request has these parts.
func (s *stage) is(t *testing.T, request string, want record) {
	t.Helper()
	checkParts(t, "request", s.stored(t, "/request-storage/requests/"+request), want)
}

// wanted makes the title's item wanted, by somebody else or else by the borrower,
// of whose request the loan is.
func wanted(requestType, level string, byBorrower bool, more ...record) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.title(t, more...)
		requester := s.userID
		if !byBorrower {
			requester, _ = s.patron(t)
		}
		s.wanted = s.wants(t, requester, requestType, level, s.named(requestType, level), 1)
	}
}

// fills and passesOver look at the request after the check-out.
func fills(t *testing.T, s *stage, _ record) {
	t.Helper()
	s.is(t, s.wanted, filled)
}

func passesOver(t *testing.T, s *stage, _ record) {
	t.Helper()
	s.is(t, s.wanted, waits(1))
}

const requestedByAnother = "Interesting Times (Barcode: {item}) cannot be checked out to user Reader, {patron} because it has been requested by another patron (userBarcode={patron})"

// ofAnotherItem makes another item of the title wanted by somebody else.
func ofAnotherItem(requestType, level string) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.title(t)
		other, _ := s.item(t, record{"holdingsRecordId": s.holdingsID})
		somebody, _ := s.patron(t)
		s.wanted = s.wants(t, somebody, requestType, level, other, 1)
	}
}

func TestScenariosOfRequestsForItems(t *testing.T) {
	t.Parallel()
	p := start(t, stack.Options{CirculationEnv: on("STAFF_AUTH=gateway")}, 99)
	status := func(name string) record { return record{"status": record{"name": name}} }
	p.play(t, nil, []scenario{
		{name: "an item on order, for who requested it", folio: "item on order with request", given: wanted("Recall", "Item", true, status("On order")), after: fills},
		{name: "an item in process, for who requested it", folio: "item in process with request", given: wanted("Recall", "Item", true, status("In process")), after: fills},
		{name: "a paged item, for who requested it", folio: "page filled", given: wanted("Page", "Item", true, status("Paged")), after: fills},
		{name: "an item that waits on the hold shelf, for who requested it", folio: "hold filled", given: wanted("Hold", "Item", true, status("Awaiting pickup")), after: fills},
		{name: "somebody else's hold", folio: "requested by another patron", given: wanted("Hold", "Item", false), refused: requestedByAnother},
		{name: "somebody else's page", folio: "requested by another patron", given: wanted("Page", "Item", false, status("Paged")), refused: requestedByAnother},
		{name: "somebody else's request for the title", folio: "title-level request ignored with the feature off", given: wanted("Hold", "Title", false), after: passesOver},
		{name: "somebody else's page of the item for its title", folio: "title-level request ignored with the feature off", given: wanted("Page", "Title", false), after: passesOver},
		{
			name: "a sponsor's request, through a proxy", folio: "request filled for the proxy's sponsor",
			given: func(t *testing.T, s *stage) {
				t.Helper()
				wanted("Hold", "Item", true)(t, s)
				through(t, s)
			},
			after: fills,
		},
		{
			name: "the next ones move up", folio: "the queue moves up",
			given: func(t *testing.T, s *stage) {
				t.Helper()
				wanted("Hold", "Item", true)(t, s)
				for position := 2; position <= 3; position++ {
					somebody, _ := s.patron(t)
					s.next = append(s.next, s.wants(t, somebody, "Hold", "Item", s.itemID, position))
				}
			},
			after: func(t *testing.T, s *stage, _ record) {
				t.Helper()
				s.is(t, s.wanted, filled)
				s.is(t, s.next[0], waits(1))
				s.is(t, s.next[1], waits(2))
			},
		},
		{
			name: "requested by a patron without a barcode, for an unknown one", folio: "patron without a barcode, item requested",
			given: func(t *testing.T, s *stage) {
				t.Helper()
				s.by(t, nil)
				s.title(t)
				cardless := s.add(t, "/users", record{"active": true, "patronGroup": s.GroupID, "personal": record{"lastName": "Cardless"}})
				s.wants(t, cardless, "Hold", "Item", s.itemID, 1)
				s.user = "nobody"
			},
			refused: "Could not find user with matching barcode [USER_BARCODE_NOT_FOUND] (userBarcode=nobody)",
		},
		{
			name: "blocks lifted, and somebody else's hold", folio: "no override of other errors",
			given: func(t *testing.T, s *stage) {
				t.Helper()
				wanted("Hold", "Item", false)(t, s)
				sending(lift(liftPatron, liftLimit), blockByHand)(t, s)
			},
			may: []string{mayPatron, mayLimit}, refused: requestedByAnother,
		},
	})
}

// withTitleLevelRequests is a library in which they are switched on.
func withTitleLevelRequests(t *testing.T) *pair {
	t.Helper()
	p := start(t, stack.Options{CirculationEnv: on()}, 99)
	p.add(t, "/circulation-settings-storage/circulation-settings", record{
		"name": "generalTlr", "value": record{"titleLevelRequestsFeatureEnabled": true},
	})
	return p
}

func TestScenariosOfRequestsForTitles(t *testing.T) {
	t.Parallel()
	p := withTitleLevelRequests(t)
	p.play(t, nil, []scenario{
		{name: "the borrower's hold of the title", folio: "title-level hold filled", given: wanted("Hold", "Title", true), after: fills},
		{name: "the borrower's page of the title", folio: "title-level page filled", given: wanted("Page", "Title", true), after: fills},
		{name: "the borrower's hold of the item", folio: "item-level hold filled", given: wanted("Hold", "Item", true), after: fills},
		{name: "somebody else's hold of the title", folio: "requested by another patron", given: wanted("Hold", "Title", false), refused: requestedByAnother},
		{name: "somebody else's hold of the item", folio: "requested by another patron", given: wanted("Hold", "Item", false), refused: requestedByAnother},
		{name: "somebody else's page of this item for its title", folio: "title-level page of the same item", given: wanted("Page", "Title", false), refused: requestedByAnother},
		{name: "somebody else's page of another item for its title", folio: "title-level page of a different item", given: ofAnotherItem("Page", "Title"), after: passesOver},
		{name: "somebody else's hold of another item", folio: "item-level hold of a different item", given: ofAnotherItem("Hold", "Item"), after: passesOver},
	})
}

func TestAPageAndAHoldOfAnyLevelsAreFilledInTurn(t *testing.T) {
	t.Parallel()
	// FOLIO: page and hold requests of mixed levels.
	p := withTitleLevelRequests(t)
	for _, pageLevel := range []string{"Item", "Title"} {
		for _, holdLevel := range []string{"Item", "Title"} {
			t.Run(fmt.Sprintf("page of the %s, hold of the %s", pageLevel, holdLevel), func(t *testing.T) {
				t.Parallel()
				s := &stage{pair: p}
				s.title(t, record{"status": record{"name": "Paged"}})
				ann, annCard := p.patron(t)
				ben, benCard := p.patron(t)
				page := s.wants(t, ann, "Page", pageLevel, s.itemID, 1)
				hold := s.wants(t, ben, "Hold", holdLevel, s.named("Hold", holdLevel), 2)

				refusals(t, p.lend(t, 0, s.barcode, benCard), http.StatusUnprocessableEntity)
				p.lentAs(t, s.barcode, annCard, nil)
				s.is(t, page, filled)
				s.is(t, hold, waits(1))
				in := object(t, p.takeBack(t, s.barcode, p.ServicePointID), http.StatusOK)
				checkParts(t, "answer of the check-in", in, record{"item.status.name": "Awaiting pickup"})
				s.is(t, hold, record{"status": "Open - Awaiting pickup", "position": 1.0})
				refusals(t, p.lend(t, 0, s.barcode, annCard), http.StatusUnprocessableEntity)
				p.lentAs(t, s.barcode, benCard, nil)
				s.is(t, hold, filled)
			})
		}
	}
}
