package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
)

// addRecallPolicy adds a loan policy of four weeks whose recalls give the borrower five days, and
// makes it that of the library's books.
func (p *pair) addRecallPolicy(t *testing.T) {
	t.Helper()
	policy := p.addLoanPolicy(t, "Recalled "+uuid.NewString(), nil, record{
		"renewable": true, "renewalsPolicy": record{"unlimited": true, "renewFromId": "SYSTEM_DATE"},
		"requestManagement": record{
			"holds":   record{"renewItemsWithRequest": true},
			"recalls": record{"recallReturnInterval": record{"duration": 5, "intervalId": "Days"}},
		},
	})
	p.storeRules(t, p.formatRules("m "+p.MaterialTypeID, policy))
}

// checkDaysFromNow fails the test unless the date is so many days from now, give or take a minute.
func checkDaysFromNow(t *testing.T, at time.Time, days int) {
	t.Helper()
	if off := time.Until(at.AddDate(0, 0, -days)).Abs(); off > time.Minute {
		t.Errorf("due %s, want it %d days from now", at, days)
	}
}

// A desk lends a book, takes a page, a hold and a recall, and gives it to the patrons in turn.
func TestDesk_PageHoldRecall(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 9)
	p.addRecallPolicy(t)
	itemID, book := p.addItem(t)
	ann, annCard := p.addPatron(t)
	ben, benCard := p.addPatron(t)
	cat, catCard := p.addPatron(t)

	paged := readObject(t, p.placeRequest(t, itemID, ann, "Page"), http.StatusCreated)
	checkParts(t, "Ann's page", paged, record{"position": 1.0, "item.status": "Paged", "requestLevel": "Item"})
	checkParts(t, "item", p.readRecord(t, "/item-storage/items/"+itemID), record{"status.name": "Paged"})
	loan := p.lendAs(t, book, annCard, nil)
	loanPath := fmt.Sprintf("/loan-storage/loans/%v", loan["id"])
	checkDaysFromNow(t, readDueDate(t, loan), 28)

	readObject(t, p.placeRequest(t, itemID, ben, "Hold"), http.StatusCreated)
	checkParts(t, "loan after the hold", p.readRecord(t, loanPath), record{
		"action": "holdrequested", "dueDate": loan["dueDate"], "dueDateChangedByRecall": nil,
	})
	readObject(t, p.renewLoan(t, 0, book, annCard), http.StatusOK)

	recall := readObject(t, p.placeRequest(t, itemID, cat, "Recall"), http.StatusCreated)
	recalled := p.readRecord(t, loanPath)
	checkParts(t, "loan after the recall", recalled, record{
		"action": "recallrequested", "dueDateChangedByRecall": true, "itemStatus": "Checked out",
	})
	checkDaysFromNow(t, readDueDate(t, recalled), 5)
	checkParts(t, "Cat's recall", recall, record{
		"position": 2.0, "loan.dueDate": recalled["dueDate"], "status": "Open - Not yet filled",
	})
	if got := joinMessages(readRefusals(t, p.renewLoan(t, 0, book, annCard),
		http.StatusUnprocessableEntity)); !strings.Contains(got, "RENEWAL_BLOCKED_BY_RECALL") {
		t.Errorf("a renewal of a recalled loan: got %s", got)
	}

	in := readObject(t, p.checkInItem(t, book, p.ServicePointID), http.StatusOK)
	checkParts(t, "waits for Ben", in, record{
		"item.status.name": "Awaiting pickup", "staffSlipContext.requester.barcode": benCard,
	})
	if got := joinMessages(readRefusals(t, p.sendCheckOut(t, book, catCard, nil),
		http.StatusUnprocessableEntity)); !strings.Contains(got, "requested by another patron") {
		t.Errorf("Cat tries first: got %s", got)
	}
	short := p.lendAs(t, book, benCard, nil)
	checkParts(t, "Ben's loan", short, record{"action": "checkedout", "dueDateChangedByRecall": true})
	checkDaysFromNow(t, readDueDate(t, short), 5)
	if got := joinMessages(readRefusals(t, p.renewLoan(t, 0, book, benCard),
		http.StatusUnprocessableEntity)); !strings.Contains(got, "RENEWAL_BLOCKED_BY_RECALL") {
		t.Errorf("Cat's recall waits for Ben's loan: got %s", got)
	}
	p.checkInItem(t, book, p.ServicePointID)
	p.lendAs(t, book, catCard, nil)
	p.checkLoansAndItemsAgree(t)
}

// Ten patrons recall one book at once, on two instances, while its borrower renews.
func TestDesk_RecallsAtOnce(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: enableLock()}, 9)
	p.addRecallPolicy(t)
	itemID, book := p.addItem(t)
	_, annCard := p.addPatron(t)
	loan := p.lendAs(t, book, annCard, nil)
	const patrons = 10
	bodies := make([]record, patrons)
	for i := range bodies {
		id, _ := p.addPatron(t)
		bodies[i] = record{
			"requestType": "Recall", "fulfillmentPreference": "Hold Shelf", "pickupServicePointId": p.ServicePointID,
			"requesterId": id, "itemId": itemID, // an older client names the item alone
		}
	}
	answers := make(chan stack.Answer, patrons)
	for i, body := range bodies {
		go func() {
			a, err := p.machines[i%2].Do(t.Context(), http.MethodPost, requestsPath, body)
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
	}
	renewed := p.renewLoan(t, 0, book, annCard)
	if renewed.Status != http.StatusOK && renewed.Status != http.StatusUnprocessableEntity {
		t.Errorf("the renewal: got %d %s", renewed.Status, renewed.Body)
	}
	for range patrons {
		if a := <-answers; a.Status != http.StatusCreated {
			t.Errorf("got %d %s", a.Status, a.Body)
		}
	}
	after := p.readRecord(t, fmt.Sprintf("/loan-storage/loans/%v", loan["id"]))
	checkParts(t, "loan", after, record{"action": "recallrequested", "dueDateChangedByRecall": true})
	checkDaysFromNow(t, readDueDate(t, after), 5)
	queue := readObject(t, callEndpoint(t, p.machines[0], http.MethodGet, "/circulation/requests/queue/item/"+itemID, nil),
		http.StatusOK)
	for i, r := range queue["requests"].([]any) {
		checkParts(t, "queue", r.(record), record{"position": float64(i + 1), "requestLevel": "Item"})
	}
	checkParts(t, "queue", queue, record{"totalRecords": float64(patrons)})
}

// A desk repeats a request whose answer was lost, with the same id.
func TestDesk_RepeatsARequest(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 9)
	itemID, _ := p.addItem(t)
	ann, _ := p.addPatron(t)
	ben, _ := p.addPatron(t)
	id := record{"id": uuid.NewString()}
	first := p.placeRequest(t, itemID, ann, "Page", id)
	again := p.placeRequest(t, itemID, ann, "Page", id)
	if again.Status != http.StatusCreated || again.Header.Get("Location") != first.Header.Get("Location") {
		t.Errorf("got %d %s, want the answer of the first", again.Status, again.Body)
	}
	if n := p.countRecords(t, "/request-storage/requests?query=itemId=="+itemID); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
	readRefusals(t, p.placeRequest(t, itemID, ben, "Hold", id), http.StatusUnprocessableEntity)
}

func TestDesk_LiftsBlocksOfRequests(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 9)
	itemID, _ := p.addItem(t)
	ann, _ := p.addPatron(t)
	p.addRecord(t, "/manualblocks", record{"userId": ann, "desc": "owes a book", "type": "Manual", "requests": true})
	p.storeAutomatedBlocks(t, ann, record{"blockRequests": true, "message": "Too many overdue"})
	refused := joinMessages(readRefusals(t, p.placeRequest(t, itemID, ann, "Page"), http.StatusUnprocessableEntity))
	if want := "Patron blocked from requesting [USER_IS_BLOCKED_MANUALLY]\nToo many overdue " +
		"[USER_IS_BLOCKED_AUTOMATICALLY]"; refused != want {
		t.Errorf("got %s, want %s", refused, want)
	}
	lift := record{"requestProcessingParameters": liftBlocks(liftPatron)}
	if got := joinMessages(readRefusals(t, p.placeRequest(t, itemID, ann, "Page", lift),
		http.StatusUnprocessableEntity)); !strings.Contains(got, "INSUFFICIENT_OVERRIDE_PERMISSIONS") {
		t.Errorf("without the permission: got %s", got)
	}
	p.machines[0].Header = p.signIn(uuid.NewString(), mayPatron)
	placed := readObject(t, p.placeRequest(t, itemID, ann, "Page", lift), http.StatusCreated)
	if _, kept := p.readRecord(t, "/request-storage/requests/"+
		placed["id"].(string))["requestProcessingParameters"]; kept {
		t.Error("the override is stored")
	}
}

func TestDesk_AsksTheRequestPolicy(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 9)
	itemID, _ := p.addItem(t)
	ann, _ := p.addPatron(t)
	pagesOnly := p.addRecord(t, "/request-policy-storage/request-policies", record{
		"name": "Pages", "requestTypes": []any{"Page"},
	})
	p.storeRules(t, strings.ReplaceAll(p.formatRules("m "+p.MaterialTypeID, p.PolicyID), "r "+stack.RequestPolicyID, "r "+
		pagesOnly))
	p.setItemStatus(t, itemID, "In transit")
	for _, kind := range []string{"Hold", "Recall"} {
		refused := readRefusals(t, p.placeRequest(t, itemID, ann, kind), http.StatusUnprocessableEntity)
		if want := kind + " requests are not allowed for this patron and item combination"; refused[0].Message != want ||
			refused[0].Parameters[0].Key != "requestType" {
			t.Errorf("got %+v, want %s", refused, want)
		}
	}
	checkAllowed := func(question, want string) {
		t.Helper()
		a := callEndpoint(t, p.machines[0], http.MethodGet, "/circulation/requests/allowed-service-points?"+question, nil)
		if got := strings.TrimSpace(string(a.Body)); a.Status != http.StatusOK || got != want {
			t.Errorf("%s: got %d %s, want %s", question, a.Status, got, want)
		}
	}
	const create = "operation=create&requesterId="
	checkAllowed(create+ann+"&itemId="+itemID, "{}")
	p.setItemStatus(t, itemID, "Available")
	placed := readObject(t, p.placeRequest(t, itemID, ann, "Page"), http.StatusCreated)
	point := p.readRecord(t, "/service-points/"+placed["pickupServicePointId"].(string))
	pages := fmt.Sprintf(`{"Page":[{"id":%q,"name":%q,"discoveryDisplayName":%q}]}`,
		point["id"], point["name"], point["discoveryDisplayName"])
	checkAllowed("operation=replace&requestId="+placed["id"].(string), pages)
	p.setItemStatus(t, itemID, "Available")
	checkAllowed(create+ann+"&itemId="+itemID, pages)
	checkAllowed(create+ann+"&instanceId="+placed["instanceId"].(string), pages)
	checkParts(t, "the request", placed, record{"searchIndex.pickupServicePointName": point["name"]})
}

func TestDesk_RequestsThroughAProxy(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 9)
	itemID, _ := p.addItem(t)
	ann, _ := p.addPatron(t)
	ben, benCard := p.addPatron(t)
	byBen := record{"proxyUserId": ben}
	if got := joinMessages(readRefusals(t, p.placeRequest(t, itemID, ann, "Page", byBen),
		http.StatusUnprocessableEntity)); got != "proxyUserId is not valid [PROXY_RELATIONSHIP_INVALID]" {
		t.Errorf("no relation: got %s", got)
	}
	p.addRecord(t, "/proxiesfor", record{
		"userId": ann, "proxyUserId": ben, "status": "Active", "requestForSponsor": "Yes",
	})
	placed := readObject(t, p.placeRequest(t, itemID, ann, "Page", byBen), http.StatusCreated)
	checkParts(t, "Ann's page", placed, record{"requesterId": ann, "proxyUserId": ben, "proxy.barcode": benCard})
}

// Staff delete a request while circulation waits for the answer to its placement, which is lost.
func TestDesk_DoesNotPlaceADeletedRequestAgain(t *testing.T) {
	t.Parallel()
	p, links := startPairWithLinks(t, stack.Options{CirculationEnv: enableLock()}, 9)
	itemID, _ := p.addItem(t)
	ben, _ := p.addPatron(t)
	id := uuid.NewString()
	deletion := record{
		"request": record{"id": id, "itemId": itemID, "instanceId": p.readInstanceID(t)}, "delete": true,
	}
	links[0].addFault(linkFault{
		method: http.MethodPost, path: "/request-storage/placements", times: 1,
		handle: func(w http.ResponseWriter, r *http.Request, forward func()) {
			forward()
			ctx := context.WithoutCancel(r.Context())
			if _, err := p.Storage.Must(ctx, http.MethodPost, "/request-storage/changes", deletion); err != nil {
				t.Error(err)
			}
			panic(http.ErrAbortHandler)
		},
	})
	if got := joinMessages(readRefusals(t, p.placeRequest(t, itemID, ben, "Page", record{"id": id}),
		http.StatusUnprocessableEntity)); got != "The request was placed, and deleted since [REQUEST_NOT_FOUND]" {
		t.Errorf("got %s", got)
	}
	if a := callEndpoint(t, p.machines[0], http.MethodGet, requestsPath+"/"+id, nil); a.Status != http.StatusNotFound {
		t.Errorf("got %d %s, want the request deleted", a.Status, a.Body)
	}
	checkParts(t, "item", p.readRecord(t, "/item-storage/items/"+itemID), record{"status.name": "Available"})
	var created int
	queryValue(t, p.databaseURL, &created, "SELECT count(*) FROM "+p.tableName("outbox")+
		" WHERE payload->>'logEventType' = 'REQUEST_CREATED_EVENT' AND payload->>'itemId' = $1", itemID)
	if created != 1 {
		t.Errorf("got %d events of a new request, want 1", created)
	}
}

func TestDesk_RecallsOnceWhenAnswersAreLost(t *testing.T) {
	t.Parallel()
	const path = "/request-storage/placements"
	for name, fault := range map[string]linkFault{
		"the answer is lost":  {method: http.MethodPost, path: path, times: 2, handle: loseAnswer},
		"the request is lost": {method: http.MethodPost, path: path, times: 1, handle: loseRequest},
		"storage fails": {
			method: http.MethodPost, path: path, times: 1, handle: answerWith(http.StatusInternalServerError),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, links := startPairWithLinks(t, stack.Options{CirculationEnv: enableLock()}, 9)
			p.addRecallPolicy(t)
			itemID, book := p.addItem(t)
			_, annCard := p.addPatron(t)
			ben, _ := p.addPatron(t)
			loan := p.lendAs(t, book, annCard, nil)
			links[0].addFault(fault)
			placed := readObject(t, p.placeRequest(t, itemID, ben, "Recall"), http.StatusCreated)
			checkParts(t, "Ben's recall", placed, record{"position": 1.0, "status": "Open - Not yet filled"})
			if n := p.countRecords(t, "/request-storage/requests?query=itemId=="+itemID); n != 1 {
				t.Errorf("got %d requests, want 1", n)
			}
			if n := p.countRecords(t, fmt.Sprintf("/loan-storage/loan-history?query=loan.id==%v", loan["id"])); n != 2 {
				t.Errorf("the loan's history has %d entries, want the check-out and the recall", n)
			}
		})
	}
}
