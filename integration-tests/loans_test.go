package integration_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
)

// actOn sends an action on a loan to circulation instance i.
func (p *pair) actOn(t *testing.T, i int, loan record, action string, body record) stack.Answer {
	t.Helper()
	return callEndpoint(t, p.machines[i], http.MethodPost, fmt.Sprintf("/circulation/loans/%v/%s", loan["id"], action),
		body)
}

// act sends an action that must succeed.
func (p *pair) act(t *testing.T, loan record, action string, body record) {
	t.Helper()
	if a := p.actOn(t, 0, loan, action, body); a.Status != http.StatusNoContent || len(a.Body) != 0 {
		t.Fatalf("%s: got %d %s, want 204", action, a.Status, a.Body)
	}
}

// checkRefusal checks the only refusal of an answer and what it is about.
func checkRefusal(t *testing.T, what string, a stack.Answer, message, key string) {
	t.Helper()
	list := readRefusals(t, a, http.StatusUnprocessableEntity)
	if joinMessages(list) != message || len(list[0].Parameters) != 1 || list[0].Parameters[0].Key != key {
		t.Errorf("%s: got %+v, want %q about %s", what, list, message, key)
	}
}

// checkActions compares the actions in the history of a loan.
func (p *pair) checkActions(t *testing.T, loan record, want ...string) {
	t.Helper()
	entries, _ := p.readRecord(t, fmt.Sprintf(
		"/loan-storage/loan-history?query=loan.id==%v%%20sortby%%20createdDate&limit=100", loan["id"],
	))["loansHistory"].([]any)
	var got []string
	for _, e := range entries {
		action, _ := readPart(e.(record), "loan.action").(string)
		got = append(got, action)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the history has the actions %q, want %q", got, want)
	}
}

// readLoan returns a loan as circulation answers it.
func (p *pair) readLoan(t *testing.T, loan record) record {
	t.Helper()
	return readObject(t, callEndpoint(t, p.machines[0], http.MethodGet, fmt.Sprintf("/circulation/loans/%v", loan["id"]),
		nil), http.StatusOK)
}

const lostAt = "2026-10-01T09:30:00.000Z"

func TestLoans_ClaimedReturnedAndFound(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	book, patron, loan := p.lendRenewable(t, 9)
	p.act(t, loan, "add-info", record{"action": "staffInfoAdded", "actionComment": "torn"})
	p.act(t, loan, "add-info", record{"action": "patronInfoAdded", "actionComment": "called"})
	checkParts(t, "with information", p.readLoan(t, loan), record{
		"action": "patronInfoAdded", "actionComment": "called", "status.name": "Open",
	})
	p.act(t, loan, "change-due-date", record{"dueDate": "2030-05-01T10:00:00+02:00"})
	checkParts(t, "with another due date", p.readLoan(t, loan), record{
		"action": "dueDateChanged", "actionComment": nil, "dueDate": "2030-05-01T08:00:00.000Z",
	})
	renewed := readObject(t, p.renewLoan(t, 0, book, patron), http.StatusOK)
	checkTime(t, renewed, "dueDate", "2030-06-12T08:00:00Z")

	checkRefusal(t, "missing at once",
		p.actOn(t, 0, loan, "declare-claimed-returned-item-as-missing", record{"comment": "c"}),
		"Item is not Claimed returned [ITEM_STATUS]", "itemId")
	p.act(t, loan, "claim-item-returned", record{"itemClaimedReturnedDateTime": lostAt, "comment": "by post"})
	checkParts(t, "claimed", p.readLoan(t, loan), record{
		"action": "claimedReturned", "actionComment": "by post", "claimedReturnedDate": lostAt, "status.name": "Open",
		"item.status.name": "Claimed returned",
	})
	checkRefusal(t, "due date", p.actOn(t, 0, loan, "change-due-date", record{"dueDate": lostAt}),
		"item is Claimed returned [ITEM_STATUS]", "itemId")
	checkRefusal(t, "renewal", p.renewLoan(t, 0, book, patron),
		"item is Claimed returned [ITEM_CLAIMED_RETURNED_NOT_RENEWABLE]", "itemId")
	checkRefusal(t, "check-in", p.checkInItem(t, book, p.ServicePointID),
		"Item is claimed returned, a resolution is required to check in [ITEM_CLAIMED_RETURNED]",
		"claimedReturnedResolution")
	in := readObject(t, p.checkInItem(t, book, p.ServicePointID, record{
		"claimedReturnedResolution": "Found by library",
	}), http.StatusOK)
	checkParts(t, "found", in, record{
		"loan.status.name": "Closed", "loan.action": "checkedInFoundByLibrary", "item.status.name": "Available",
	})

	for action, body := range map[string]record{
		"claim-item-returned": {"itemClaimedReturnedDateTime": lostAt}, "change-due-date": {"dueDate": lostAt},
		"declare-item-lost":                        {"servicePointId": p.ServicePointID},
		"declare-claimed-returned-item-as-missing": {"comment": "c"},
	} {
		a := p.actOn(t, 0, loan, action, body)
		checkRefusal(t, action+" of a closed loan", a, "Loan is closed [LOAN_CLOSED]", "loanId")
	}
	p.act(t, loan, "add-info", record{"action": "staffInfoAdded", "actionComment": "repaired"})
	p.checkActions(t, loan, "checkedout", "staffInfoAdded", "patronInfoAdded", "dueDateChanged", "renewed",
		"claimedReturned", "checkedInFoundByLibrary", "staffInfoAdded")
}

func TestLoans_DeclaredLostAndReturned(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	book, patron, loan := p.lendRenewable(t, 9)
	lost := record{"declaredLostDateTime": lostAt, "comment": "on a train", "servicePointId": p.ServicePointID}
	p.act(t, loan, "declare-item-lost", lost)
	checkParts(t, "lost", p.readLoan(t, loan), record{
		"action": "declaredLost", "actionComment": "on a train", "declaredLostDate": lostAt, "status.name": "Open",
		"item.status.name":                  "Declared lost",
		"feesAndFines.amountRemainingToPay": 0.0,
	})
	checkRefusal(t, "lost twice", p.actOn(t, 0, loan, "declare-item-lost", lost),
		"The item is already declared lost [ITEM_STATUS]", "itemId")
	checkRefusal(t, "due date", p.actOn(t, 0, loan, "change-due-date", record{"dueDate": lostAt}),
		"item is Declared lost [ITEM_STATUS]", "itemId")
	list := readRefusals(t, p.renewLoan(t, 0, book, patron), http.StatusUnprocessableEntity)
	if joinMessages(list) != "item is Declared lost [ITEM_DECLARED_LOST_NOT_RENEWABLE]" ||
		list[0].OverridableBlock.Name != "renewalBlock" {
		t.Errorf("renewal: got %+v, want the refusal with the block that lifts it", list)
	}
	_, other := p.addPatron(t)
	if got := joinMessages(readRefusals(t, p.lendBook(t, 0, book, other),
		http.StatusUnprocessableEntity)); !strings.Contains(got, "has the item status Declared lost") {
		t.Errorf("check-out: got %q", got)
	}
	in := readObject(t, p.checkInItem(t, book, p.ServicePointID), http.StatusOK)
	checkParts(t, "returned", in, record{
		"loan.id": loan["id"], "loan.status.name": "Closed", "loan.action": "checkedin", "item.status.name": "Available",
	})
	readObject(t, p.lendBook(t, 0, book, other), http.StatusCreated)
	p.checkActions(t, loan, "checkedout", "declaredLost", "checkedin")
}

func TestLoans_ClaimedReturnedAndMissing(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 1)
	userID, patron := p.addPatron(t)
	books := p.addBooks(t, 2)
	loan := readObject(t, p.lendBook(t, 0, books[0], patron), http.StatusCreated)
	p.act(t, loan, "claim-item-returned", record{"itemClaimedReturnedDateTime": lostAt})
	readObject(t, p.lendBook(t, 0, books[1], patron), http.StatusCreated) // at limit 1, which counts no claimed return
	p.act(t, loan, "declare-claimed-returned-item-as-missing", record{"comment": "not on the shelf"})
	checkParts(t, "missing", p.readLoan(t, loan), record{
		"action": "markedMissing", "actionComment": "not on the shelf", "status.name": "Closed",
		"item.status.name": "Missing", "returnDate": nil,
	})
	if n := p.countOpenLoans(t, userID); n != 1 {
		t.Errorf("the patron has %d loans, want 1", n)
	}
	p.checkActions(t, loan, "checkedout", "claimedReturned", "markedMissing")
	if a := p.actOn(t, 0, record{"id": uuid.NewString()}, "add-info", record{
		"action": "staffInfoAdded", "actionComment": "c",
	}); a.Status != http.StatusNotFound {
		t.Errorf("an unknown loan: got %d %s, want 404", a.Status, a.Body)
	}
}

func TestLoanChanges_HappenOnceWhenAnswersAreLost(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]faultHandler{
		"the answer is lost": loseAnswer, "the request is lost": loseRequest,
		"storage fails": answerWith(http.StatusInternalServerError),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, links := startPairWithLinks(t, stack.Options{CirculationEnv: enableLock()}, 1)
			_, patron := p.addPatron(t)
			loan := readObject(t, p.lendBook(t, 0, p.addBooks(t, 1)[0], patron), http.StatusCreated)
			links[0].addFault(linkFault{
				method: http.MethodPost, path: fmt.Sprintf("/loan-storage/loans/%v/changes", loan["id"]), times: 1, handle: handle,
			})
			p.act(t, loan, "declare-item-lost", record{"servicePointId": p.ServicePointID}) // a second one would be refused
			p.checkActions(t, loan, "checkedout", "declaredLost")
		})
	}
}

func TestLoanChanges_ByManyDesks(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Storages: 2, Circulations: 2, CirculationEnv: enableLock()}, 3)
	book, patron, loan := p.lendRenewable(t, 9)
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[string]int{}
	count := func(what string, a stack.Answer) {
		mu.Lock()
		defer mu.Unlock()
		got[fmt.Sprint(what, " ", a.Status)]++
	}
	for i := range 8 {
		desk := i % len(p.machines)
		wg.Go(func() {
			count("lost", p.actOn(t, desk, loan, "declare-item-lost", record{"servicePointId": p.ServicePointID}))
		})
		wg.Go(func() { count("back", p.checkInItem(t, book, p.ServicePointID)) })
		wg.Go(func() { p.renewLoan(t, desk, book, patron) })
	}
	wg.Wait()
	// The item is lost once at most, and the last check-in makes it Available.
	readObject(t, p.checkInItem(t, book, p.ServicePointID), http.StatusOK)
	if got["lost 204"] > 1 || got["lost 204"]+got["lost 422"] != 8 || got["back 200"]+got["back 409"] != 8 {
		t.Errorf("got %v, want one loss at most and no failure", got)
	}
	checkParts(t, "afterwards", p.readLoan(t, loan), record{
		"status.name": "Closed", "action": "checkedin", "item.status.name": "Available",
	})
}

// sendLoan writes a loan through circulation.
func (p *pair) sendLoan(t *testing.T, method, path string, loan record) stack.Answer {
	t.Helper()
	return callEndpoint(t, p.machines[0], method, "/circulation/loans"+path, loan)
}

func TestLoans_RecordedClosedAndDeleted(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 1)
	userID, patron := p.addPatron(t)
	_, other := p.addPatron(t)
	itemID, barcode := p.addItem(t)
	sent := record{
		"userId": userID, "itemId": itemID, "loanDate": "2026-09-01T10:00:00Z", "dueDate": "2026-12-01T10:00:00.000Z",
		"checkoutServicePointId": p.ServicePointID,
	}
	loan := readObject(t, p.sendLoan(t, http.MethodPost, "", sent), http.StatusCreated)
	checkParts(t, "recorded", loan, record{
		"status.name": "Open", "action": "checkedout", "item.status.name": "Checked out", "item.barcode": barcode,
		"borrower.barcode": patron,
		"dueDate":          sent["dueDate"], "loanPolicyId": p.PolicyID, "checkoutServicePoint.name": "Desk",
		"patronGroupAtCheckout.id": p.GroupID,
	})
	checkRefusal(t, "recorded twice", p.sendLoan(t, http.MethodPost, "", sent),
		"Item is already checked out [ITEM_ALREADY_CHECKED_OUT]", "itemId")
	if got := p.readMetrics(t, p.Storages[0]); strings.Contains(got, "loans_unfenced_total 0\n") {
		t.Error("loans_unfenced_total does not count the recorded loan")
	}
	if got := joinMessages(readRefusals(t, p.lendBook(t, 0, p.addBooks(t, 1)[0], patron),
		http.StatusUnprocessableEntity)); !strings.Contains(got, "maximum limit") {
		t.Errorf("a check-out beside the recorded loan at limit 1: got %q", got)
	}

	path := fmt.Sprintf("/%v", loan["id"])
	closed := setFields(maps.Clone(loan), record{
		"status": record{"name": "Closed"}, "action": "checkedin", "returnDate": "2026-10-01T09:30:00.000Z",
	})
	checkRefusal(t, "closed at no desk", p.sendLoan(t, http.MethodPut, path, closed),
		"A Closed loan must have a Checkin Service Point [INVALID]", "checkinServicePointId")
	closed["checkinServicePointId"] = p.ServicePointID
	for range 2 { // a second one changes nothing more
		if a := p.sendLoan(t, http.MethodPut, path, closed); a.Status != http.StatusNoContent {
			t.Fatalf("got %d %s, want 204", a.Status, a.Body)
		}
	}
	checkParts(t, "closed", p.readLoan(t, loan), record{
		"status.name": "Closed", "action": "checkedin", "returnDate": "2026-10-01T09:30:00.000Z",
		"item.status.name":         "Available",
		"checkinServicePoint.name": "Desk", "patronGroupAtCheckout.id": p.GroupID,
	})
	checkRefusal(t, "opened again", p.sendLoan(t, http.MethodPut, path, loan), "Loan is closed [LOAN_CLOSED]", "loanId")
	readObject(t, p.lendBook(t, 0, barcode, other), http.StatusCreated)
	if a := p.sendLoan(t, http.MethodPut, path, closed); a.Status != http.StatusNoContent {
		t.Fatalf("got %d %s, want 204", a.Status, a.Body)
	}
	checkParts(t, "item", p.readRecord(t, "/item-storage/items/"+itemID), record{"status.name": "Checked out"})
	p.checkActions(t, loan, "checkedout", "checkedin", "checkedin", "checkedin")

	for what, status := range map[string]int{path: http.StatusNoContent, "": http.StatusBadRequest} {
		if a := p.sendLoan(t, http.MethodDelete, what, nil); a.Status != status {
			t.Errorf("DELETE %s: got %d %s, want %d", what, a.Status, a.Body, status)
		}
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		if a := p.sendLoan(t, method, path, closed); a.Status != http.StatusNotFound {
			t.Errorf("%s of a deleted loan: got %d %s, want 404", method, a.Status, a.Body)
		}
	}
	p.checkLoansAndItemsAgree(t)
}

func TestLoans_ClosedByHandServeTheNextRequest(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	branch := p.addBranch(t)
	itemID, _, instanceID, book := p.addDescribedItem(t)
	_, patron := p.addPatron(t)
	next, _ := p.addPatron(t)
	loan := p.lendAs(t, book, patron, nil)
	placed := readObject(t, p.placeRequest(t, itemID, next, "Hold", record{
		"instanceId": instanceID, "pickupServicePointId": branch,
	}), http.StatusCreated)
	closed := setFields(maps.Clone(loan), record{
		"status": record{"name": "Closed"}, "action": "checkedin", "checkinServicePointId": p.ServicePointID,
	})
	if a := p.sendLoan(t, http.MethodPut, fmt.Sprintf("/%v", loan["id"]), closed); a.Status != http.StatusNoContent {
		t.Fatalf("got %d %s, want 204", a.Status, a.Body)
	}
	checkParts(t, "item", p.readRecord(t, "/item-storage/items/"+itemID), record{
		"status.name": "In transit", "inTransitDestinationServicePointId": branch,
	})
	checkParts(t, "request", p.readRecord(t, fmt.Sprintf("/request-storage/requests/%v", placed["id"])), record{
		"status": "Open - In transit",
	})
}

func TestLoans_AnonymizedByUser(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	userID, barcode := p.addPatron(t)
	anonymize := func() record {
		t.Helper()
		return readObject(t, callEndpoint(t, p.machines[0], http.MethodPost, "/loan-anonymization/by-user/"+userID, nil),
			http.StatusOK)
	}
	books := p.addBooks(t, 2)
	var loans []record
	for _, book := range books {
		loans = append(loans, readObject(t, callEndpoint(t, p.machines[0], http.MethodPost, checkOutPath, record{
			"itemBarcode": book, "userBarcode": barcode, "servicePointId": p.ServicePointID,
		}), http.StatusCreated))
	}
	if got := fmt.Sprint(anonymize()); got != "map[anonymizedLoans:[] errors:[]]" {
		t.Errorf("got %s while all loans are open", got)
	}
	readObject(t, p.checkInItem(t, books[0], p.ServicePointID), http.StatusOK)
	want := fmt.Sprintf("map[anonymizedLoans:[%v] errors:[]]", loans[0]["id"])
	if got := fmt.Sprint(anonymize()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for i, want := range []any{nil, userID} {
		if got := p.readLoan(t, loans[i])["userId"]; got != want {
			t.Errorf("loan %d has the patron %v, want %v", i, got, want)
		}
	}
	recorded := p.readRecord(t, "/check-in-storage/check-ins?query=itemStatusPriorToCheckIn==%22Checked+out%22")
	list, _ := recorded["checkIns"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["performedByUserId"] == nil {
		t.Errorf("got the recorded check-ins %v, want one with its user", list)
	}
}
