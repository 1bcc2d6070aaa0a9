package integration_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas"
)

// requestDesk is a library in which Ann has a book and others wait for it, with a second copy.
type requestDesk struct {
	*pair
	first, second string // ids of the copies
	book          string // barcode of the first
}

func newRequestDesk(t *testing.T) requestDesk {
	t.Helper()
	p := joinSharedPair(t, 3)
	d := requestDesk{pair: p}
	d.first, d.book = p.addItem(t)
	d.second, _ = p.addItem(t)
	_, ann := p.addPatron(t)
	p.lendAs(t, d.book, ann, nil)
	return d
}

// wait places a hold of a new patron for the first copy, and returns its id and the patron's card.
func (d requestDesk) wait(t *testing.T, more ...record) (id, card string) {
	t.Helper()
	patron, card := d.addPatron(t)
	placed := readObject(t, d.placeRequest(t, d.first, patron, "Hold", more...), http.StatusCreated)
	return placed["id"].(string), card
}

func (d requestDesk) call(t *testing.T, method, path string, body any) stack.Answer {
	t.Helper()
	return callEndpoint(t, d.machines[0], method, requestsPath+path, body)
}

// checkRequest compares a request as clients get it.
func (d requestDesk) checkRequest(t *testing.T, what, id string, want record) {
	t.Helper()
	checkParts(t, what, readObject(t, d.call(t, http.MethodGet, "/"+id, nil), http.StatusOK), want)
}

func order(ids ...string) record {
	var places []any
	for i, id := range ids {
		places = append(places, record{"id": id, "newPosition": i + 1})
	}
	return record{"reorderedQueue": places}
}

func TestRequestLife_EditReorderMoveCancel(t *testing.T) {
	t.Parallel()
	d := newRequestDesk(t)
	branch := d.addBranch(t)
	ben, _ := d.wait(t)
	cat, _ := d.wait(t)
	dan, _ := d.wait(t)
	reason := d.addRecord(t, "/cancellation-reason-storage/cancellation-reasons", record{"name": "No longer needed"})

	read := readObject(t, d.call(t, http.MethodGet, "/"+ben, nil), http.StatusOK)
	edited := setFields(read, record{
		"pickupServicePointId": branch, "requestExpirationDate": "2030-01-02", "patronComments": "soon", "position": 9,
	})
	if a := d.call(t, http.MethodPut, "/"+ben, edited); a.Status != http.StatusNoContent {
		t.Fatalf("editing: got %d %s", a.Status, a.Body)
	}
	d.checkRequest(t, "edited", ben, record{
		"pickupServicePoint.name": "Branch", "patronComments": "soon", "position": 1.0,
		"requestExpirationDate": "2030-01-02T23:59:59.000Z",
	})

	queue := readObject(t, d.call(t, http.MethodPost, "/queue/item/"+d.first+"/reorder", order(dan, ben, cat)),
		http.StatusOK)
	checkParts(t, "ordered", queue, record{"totalRecords": 3.0})
	checkParts(t, "the first one", queue["requests"].([]any)[0].(record), record{
		"id": dan, "position": 1.0, "item.barcode": d.book,
	})
	if got := joinMessages(readRefusals(t, d.call(t, http.MethodPost, "/queue/item/"+d.first+"/reorder", order(dan, ben)),
		http.StatusUnprocessableEntity)); got != schemas.QueueOutdated+" [QUEUE_OUTDATED]" {
		t.Errorf("an order of two of three: got %s", got)
	}

	moved := readObject(t, d.call(t, http.MethodPost, "/"+ben+"/move", record{"destinationItemId": d.second}),
		http.StatusOK)
	checkParts(t, "moved", moved, record{
		"itemId": d.second, "requestType": "Page", "position": 1.0, "item.status": "Paged",
	})
	d.checkRequest(t, "behind the moved one", cat, record{"position": 2.0})

	cancelled := setFields(moved, record{
		"status": "Closed - Cancelled", "cancellationReasonId": reason, "cancelledDate": "2026-03-02T10:00:00Z",
		"cancellationAdditionalInformation": "called us",
	})
	if a := d.call(t, http.MethodPut, "/"+ben, cancelled); a.Status != http.StatusNoContent {
		t.Fatalf("cancelling: got %d %s", a.Status, a.Body)
	}
	d.checkRequest(t, "cancelled", ben, record{
		"status": "Closed - Cancelled", "position": nil, "cancellationReasonId": reason, "item.status": "Available",
	})
	if got := joinMessages(readRefusals(t, d.call(t, http.MethodPut, "/"+ben, edited),
		http.StatusUnprocessableEntity)); got != "The Request has already been closed [REQUEST_ALREADY_CLOSED]" {
		t.Errorf("editing a closed one: got %s", got)
	}
	unknown := setFields(readObject(t, d.call(t, http.MethodGet, "/"+cat, nil), http.StatusOK), record{
		"status": "Closed - Cancelled", "cancellationReasonId": branch,
	})
	if got := joinMessages(readRefusals(t, d.call(t, http.MethodPut, "/"+cat, unknown),
		http.StatusUnprocessableEntity)); !strings.Contains(got, "cancellationReasonId") {
		t.Errorf("an unknown reason: got %s", got)
	}

	if a := d.call(t, http.MethodDelete, "/"+dan, nil); a.Status != http.StatusNoContent {
		t.Fatalf("deleting: got %d %s", a.Status, a.Body)
	}
	d.checkRequest(t, "the last one", cat, record{"position": 1.0})
	if a := d.call(t, http.MethodDelete, "?query=id=="+cat, nil); a.Status != http.StatusNoContent {
		t.Fatalf("deleting by query: got %d %s", a.Status, a.Body)
	}
	if a := d.call(t, http.MethodGet, "/"+cat, nil); a.Status != http.StatusNotFound {
		t.Errorf("the deleted one: got %d", a.Status)
	}
}

// The first patron does not fetch the book, and the second one's request ends by itself. The next
// patron gets the book at its next check-in.
func TestRequestLife_Expires(t *testing.T) {
	t.Parallel()
	d := newRequestDesk(t)
	ben, _ := d.wait(t)
	cat, _ := d.wait(t, record{"requestExpirationDate": "2026-01-01T00:00:00Z"})
	dan, danCard := d.wait(t)
	checkParts(t, "on the shelf", readObject(t, d.checkInItem(t, d.book, d.ServicePointID), http.StatusOK), record{
		"item.status.name": "Awaiting pickup",
	})
	if got := joinMessages(readRefusals(t, d.call(t, http.MethodPost, "/"+ben+"/move", record{
		"destinationItemId": d.second,
	}), http.StatusUnprocessableEntity)); !strings.Contains(got, "not yet filled") {
		t.Errorf("moving one that waits: got %s", got)
	}
	waits := setFields(readObject(t, d.call(t, http.MethodGet, "/"+ben, nil), http.StatusOK), record{
		"holdShelfExpirationDate": "2026-01-01T00:00:00Z",
	})
	if a := d.call(t, http.MethodPut, "/"+ben, waits); a.Status != http.StatusNoContent {
		t.Fatalf("editing: got %d %s", a.Status, a.Body)
	}
	for range 2 {
		if a := d.callTimer(t, "/scheduled-request-expiration"); a.Status != http.StatusNoContent {
			t.Fatalf("got %d %s", a.Status, a.Body)
		}
	}
	d.checkRequest(t, "not fetched", ben, record{"status": "Closed - Pickup expired", "position": nil})
	d.checkRequest(t, "ended", cat, record{"status": "Closed - Unfilled", "position": nil})
	d.checkRequest(t, "next", dan, record{
		"status": "Open - Not yet filled", "position": 1.0, "item.status": "Awaiting pickup",
	})
	if n := d.countRecords(t, `/request-storage/requests?query=awaitingPickupRequestClosedDate%3E%22%22`); n != 1 {
		t.Errorf("the clearance of the shelf lists %d requests, want 1", n)
	}
	checkParts(t, "passed on", readObject(t, d.checkInItem(t, d.book, d.ServicePointID), http.StatusOK), record{
		"item.status.name": "Awaiting pickup",
	})
	d.lendAs(t, d.book, danCard, nil)
}

// Librarians order one queue at once. It ends in one of their orders, and every refusal is the one
// that FOLIO's client knows.
func TestRequestLife_TwoLibrariansReorder(t *testing.T) {
	t.Parallel()
	d := newRequestDesk(t)
	ids := make([]string, 3)
	for i := range ids {
		ids[i], _ = d.wait(t)
	}
	orders := []record{order(ids[1], ids[0], ids[2]), order(ids[2], ids[1], ids[0]), order(ids[0], ids[2], ids[1])}
	var wg sync.WaitGroup
	answers := make([]stack.Answer, 6)
	for i := range answers {
		wg.Go(func() {
			answers[i] = callEndpoint(t, d.machines[i%len(d.machines)], http.MethodPost, requestsPath+"/queue/item/"+d.first+
				"/reorder", orders[i%3])
		})
	}
	wg.Wait()
	won := 0
	for _, a := range answers {
		switch {
		case a.Status == http.StatusOK:
			won++
		case a.Status != http.StatusUnprocessableEntity || !strings.Contains(string(a.Body), schemas.QueueOutdated):
			t.Errorf("got %d %s", a.Status, a.Body)
		}
	}
	queue := readObject(t, d.call(t, http.MethodGet, "/queue/item/"+d.first, nil), http.StatusOK)
	var got []string
	for i, r := range queue["requests"].([]any) {
		checkParts(t, fmt.Sprintf("request %d", i+1), r.(record), record{"position": float64(i + 1)})
		got = append(got, r.(record)["id"].(string))
	}
	wanted := false
	for _, o := range orders {
		var want []string
		for _, place := range o["reorderedQueue"].([]any) {
			want = append(want, place.(record)["id"].(string))
		}
		wanted = wanted || strings.Join(got, " ") == strings.Join(want, " ")
	}
	if won == 0 || !wanted {
		t.Errorf("%d librarians won, the queue is %v, want one of their orders", won, got)
	}
}
