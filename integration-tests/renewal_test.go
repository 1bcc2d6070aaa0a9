package integration_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
)

// renewLoan sends a renewal by barcodes to circulation instance i.
func (p *pair) renewLoan(t *testing.T, i int, book, patron string) stack.Answer {
	t.Helper()
	return callEndpoint(t, p.machines[i], http.MethodPost, "/circulation/renew-by-barcode", record{
		"itemBarcode": book, "userBarcode": patron,
	})
}

// lendRenewable lends a book by a policy that allows so many renewals. Each extends the
// loan by six weeks from the due date.
func (p *pair) lendRenewable(t *testing.T, allowed int) (book, patron string, loan record) {
	t.Helper()
	house := p.addLoanPolicy(t, "Renewed "+uuid.NewString(), nil, record{"renewable": true, "renewalsPolicy": record{
		"numberAllowed": allowed, "renewFromId": "CURRENT_DUE_DATE", "differentPeriod": true,
		"period": record{"duration": 6, "intervalId": "Weeks"},
	}})
	p.storeRules(t, p.formatRules("m "+p.MaterialTypeID, house))
	_, patron = p.addPatron(t)
	book = p.addBooks(t, 1)[0]
	return book, patron, readObject(t, p.lendBook(t, 0, book, patron), http.StatusCreated)
}

// readDueDate returns the due date of a loan.
func readDueDate(t *testing.T, loan record) time.Time {
	t.Helper()
	text, _ := loan["dueDate"].(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatalf("the loan is due %q: %v", text, err)
	}
	return at
}

func TestRenewal_ExtendsTheLoan(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	book, patron, loan := p.lendRenewable(t, 1)
	renewed := readObject(t, p.renewLoan(t, 0, book, patron), http.StatusOK)
	checkParts(t, "answer", renewed, record{
		"id": loan["id"], "status.name": "Open", "action": "renewed", "renewalCount": 1.0, "borrower.barcode": patron,
		"item.barcode": book, "item.status.name": "Checked out", "loanDate": loan["loanDate"],
	})
	if got, want := readDueDate(t, renewed), readDueDate(t, loan).AddDate(0, 0, 42); !got.Equal(want) {
		t.Errorf("due %s, want %s", got, want)
	}
	stored := p.readRecord(t, fmt.Sprintf("/loan-storage/loans/%v", loan["id"]))
	checkParts(t, "loan", stored, record{"dueDate": renewed["dueDate"], "renewalCount": 1.0, "itemStatus": "Checked out"})

	if got := joinMessages(readRefusals(t, p.renewLoan(t, 0, book, patron),
		http.StatusUnprocessableEntity)); got != "loan at maximum renewal number [LOAN_RENEWAL_LIMIT_REACHED]" {
		t.Errorf("a second time: got %q", got)
	}
	readObject(t, p.checkInItem(t, book, p.ServicePointID), http.StatusOK)
	if got := joinMessages(readRefusals(t, p.renewLoan(t, 0, book, patron),
		http.StatusUnprocessableEntity)); !strings.HasPrefix(got, "No open loan of the item") {
		t.Errorf("after the check-in: got %q", got)
	}
}

func TestRenewal_ByManyMachines(t *testing.T) {
	t.Parallel()
	const allowed = 3
	p := startPair(t, stack.Options{Storages: 2, Circulations: 2, CirculationEnv: enableLock()}, 3)
	book, patron, loan := p.lendRenewable(t, allowed)
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	for i := range 20 {
		wg.Go(func() {
			a := p.renewLoan(t, i%len(p.machines), book, patron)
			mu.Lock()
			defer mu.Unlock()
			got[a.Status]++
		})
	}
	wg.Wait()
	for got[http.StatusOK] < allowed { // renewals with two conflicts are answered with 409
		a := p.renewLoan(t, 0, book, patron)
		if a.Status != http.StatusOK {
			t.Fatalf("got %d %s after %v, want another renewal", a.Status, a.Body, got)
		}
		got[a.Status]++
	}
	if a := p.renewLoan(t, 0, book, patron); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("got %d %s, want no more renewals", a.Status, a.Body)
	}
	if got[http.StatusOK]+got[http.StatusUnprocessableEntity]+got[http.StatusConflict] < 20 ||
		got[http.StatusOK] != allowed {
		t.Errorf("got %v, want %d renewals and otherwise refusals", got, allowed)
	}
	stored := p.readRecord(t, fmt.Sprintf("/loan-storage/loans/%v", loan["id"]))
	if want := readDueDate(t, loan).AddDate(0, 0, allowed*42); stored["renewalCount"] != float64(allowed) ||
		!readDueDate(t, stored).Equal(want) {
		t.Errorf("the loan is %v, want %d renewals, due %s", stored, allowed, want)
	}
	if n := sumMetric(t, p, `checkout_commits_total{kind="renewal",outcome="committed"}`); n != allowed {
		t.Errorf("counted %g commits, want %d", n, allowed)
	}
}

func TestRenewal_OfARecalledBook(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	book, patron, loan := p.lendRenewable(t, 9)
	other, _ := p.addPatron(t)
	itemID, _ := loan["itemId"].(string)
	p.addRequest(t, itemID, other, 1, record{"requestType": "Recall"})
	if got := joinMessages(readRefusals(t, p.renewLoan(t, 0, book, patron),
		http.StatusUnprocessableEntity)); got != "items cannot be renewed when there is an active recall request "+
		"[RENEWAL_BLOCKED_BY_RECALL]" {
		t.Errorf("got %q", got)
	}
}

func TestRenewal_ThroughOverride(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	book, patron, loan := p.lendRenewable(t, 0)
	refused := readRefusals(t, p.renewLoan(t, 0, book, patron), http.StatusUnprocessableEntity)
	if got := spellRefusals(refused); !strings.Contains(got, "LOAN_RENEWAL_LIMIT_REACHED") ||
		!strings.Contains(got, "renewalBlock") {
		t.Errorf("got %s, want the limit with its block", got)
	}
	desk := p.machines[0]
	desk.Header = p.signIn(uuid.NewString(), "circulation.override-renewal-block.post")
	request := record{
		"itemId": loan["itemId"], "userId": loan["userId"], "servicePointId": p.ServicePointID,
		"overrideBlocks": record{
			"renewalDueDateRequiredBlock": record{"dueDate": "2031-01-01T00:00:00.000Z"}, "comment": "agreed",
		},
	}
	renewed := readObject(t, callEndpoint(t, desk, http.MethodPost, "/circulation/renew-by-id", request), http.StatusOK)
	checkParts(t, "answer", renewed, record{
		"action": "renewedThroughOverride", "actionComment": "agreed", "renewalCount": 1.0,
		"dueDate": "2031-01-01T00:00:00.000Z",
	})
}

func TestRenewal_OfDeletedRecords(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	book, patron, loan := p.lendRenewable(t, 9)
	userID, itemID := fmt.Sprint(loan["userId"]), fmt.Sprint(loan["itemId"])
	refused := func(body record) string {
		t.Helper()
		path := "/circulation/renew-by-barcode"
		if body["itemId"] != nil {
			path = "/circulation/renew-by-id"
		}
		return joinMessages(readRefusals(t, callEndpoint(t, p.machines[0], http.MethodPost, path, body),
			http.StatusUnprocessableEntity))
	}
	byBarcode, byID := record{"itemBarcode": book, "userBarcode": patron}, record{"itemId": itemID, "userId": userID}
	remove := func(path string) {
		t.Helper()
		if _, err := p.Storage.Must(t.Context(), http.MethodDelete, path, nil); err != nil {
			t.Fatal(err)
		}
	}
	remove("/users/" + userID)
	for _, body := range []record{byBarcode, byID} {
		if got := refused(body); got != "user is not found [USER_NOT_FOUND]" {
			t.Errorf("%v: got %q", body, got)
		}
	}
	remove("/item-storage/items/" + itemID)
	if got := refused(byBarcode); got != "No item with barcode "+book+" exists [ITEM_BARCODE_NOT_FOUND]" {
		t.Errorf("got %q", got)
	}
	if got := refused(byID); got != "No item with ID "+itemID+" exists [ITEM_NOT_FOUND]" {
		t.Errorf("got %q", got)
	}
}
