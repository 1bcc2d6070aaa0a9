package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
)

const batchPath = "/request-storage-batch/requests"

func newRequestAPI(t *testing.T) recordAPI {
	t.Helper()
	db, id := pgtest.New(t)
	store := postgres.NewRecordStore(db, func() {})
	return recordAPI{newAPI(t, slices.Concat(httpapi.RecordRoutes(store), httpapi.OperationRoutes(store))), id}
}

// hold is an open request for the sample item; n makes its id.
func hold(n, position int) string {
	return fmt.Sprintf(`{"id":"%s","itemId":"`+itemID+`","holdingsRecordId":"`+holdingsID+`","instanceId":"`+titleID+
		`","requesterId":"`+userID+`",
		"requestType":"Hold","requestLevel":"Item","requestDate":"2026-08-22T10:11:12Z","fulfillmentPreference":"Hold Shelf",
		"status":"Open - Not yet filled","position":%d,"ours":%d}`, holdID(n), position, n)
}

func holdID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-0000000001%02d", n) }

func batch(requests ...string) string { return `{"requests":[` + strings.Join(requests, ",") + `]}` }

// queue returns which holds wait for the sample item, in order.
func (a recordAPI) queue(t *testing.T) string {
	t.Helper()
	target := "/request-storage/requests?query=" +
		escaped(`itemId=="`+itemID+`" and status=="Open*" sortBy position/sort.ascending`)
	var waiting []string
	for _, r := range parseJSON(t, a.must(t, http.MethodGet, target, "",
		http.StatusOK).Body.String())["requests"].([]any) {
		request := r.(map[string]any)
		waiting = append(waiting, fmt.Sprintf("%v at %v", request["ours"], request["position"]))
	}
	return strings.Join(waiting, ", ")
}

func TestRequestBatchRoutes_ReorderAQueue(t *testing.T) {
	t.Parallel()
	a := newRequestAPI(t)
	a.must(t, http.MethodPost, batchPath, batch(hold(1, 1), hold(2, 2), hold(3, 3)), http.StatusCreated)
	if got, want := a.queue(t), "1 at 1, 2 at 2, 3 at 3"; got != want {
		t.Fatalf("created: got %s, want %s", got, want)
	}
	created := parseJSON(t, a.must(t, http.MethodGet, "/request-storage/requests/"+holdID(1), "",
		http.StatusOK).Body.String())["metadata"]
	w := a.must(t, http.MethodPost, batchPath, batch(hold(3, 1), hold(1, 2), hold(2, 3), hold(4, 4)), http.StatusCreated)
	if w.Body.Len() != 0 {
		t.Errorf("got %s, want no body", w.Body)
	}
	if got, want := a.queue(t), "3 at 1, 1 at 2, 2 at 3, 4 at 4"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	after := parseJSON(t, a.must(t, http.MethodGet, "/request-storage/requests/"+holdID(1), "",
		http.StatusOK).Body.String())["metadata"]
	if before, now := created.(map[string]any)["createdDate"], after.(map[string]any)["createdDate"]; before != now {
		t.Errorf("createdDate was %v and is %v", before, now)
	}
}

func TestRequestBatchRoutes_WriteAllOrNothing(t *testing.T) {
	t.Parallel()
	const samePosition = `"message":"Cannot have more than one request with the same position in the queue"`
	a := newRequestAPI(t)
	a.must(t, http.MethodPost, batchPath, batch(hold(1, 1), hold(2, 2)), http.StatusCreated)
	for name, tt := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"two at one position":         {body: batch(hold(3, 3), hold(4, 3)), status: 422, want: samePosition},
		"a position that another has": {body: batch(hold(3, 3), hold(4, 2)), status: 422, want: samePosition},
		"one that moves onto another": {body: batch(hold(3, 3), hold(1, 2)), status: 422, want: samePosition},
		"one without a status": {
			body: batch(hold(3, 3), strings.Replace(hold(4, 4), `"status"`, `"x"`, 1)), status: 422,
			want: "requests[1].status is required",
		},
		"one without an item": {
			body: batch(hold(3, 3), strings.Replace(hold(4, 4), `"itemId"`, `"x"`, 1)), status: 422,
			want: "Item ID in item level request should not be absent",
		},
		"one that comes twice": {
			body: batch(hold(3, 3), hold(4, 4), hold(3, 5)), status: 422, want: "requests[2] has the id of requests[0]",
		},
		"none":    {body: batch(), status: 422, want: "requests must have 1 or more elements"},
		"no list": {body: `{"requests":{}}`, status: 422, want: "requests must be of type array"},
		"no JSON": {body: `{"requests":[`, status: 400, want: ""},
		"a position that is no whole one": {
			body: batch(strings.Replace(hold(3, 3), `"position":3`, `"position":2.5`, 1)), status: 422,
			want: "requests[0].position must be of type integer",
		},
		"one with a missing reason": {
			body:   batch(hold(3, 3), strings.Replace(hold(4, 4), `"ours"`, `"cancellationReasonId":"`+reasonID+`","x"`, 1)),
			status: 422, want: "because it does not exist in cancellation_reason.id",
		},
		"a position below the first": {body: batch(hold(3, 0)), status: 422, want: "requests[0].position must be at least 1"},
	} {
		wantRefusal(t, a.do(http.MethodPost, batchPath, tt.body), tt.status, tt.want)
		if got, want := a.queue(t), "1 at 1, 2 at 2"; got != want {
			t.Fatalf("%s: the queue is %s, want %s", name, got, want)
		}
	}
}

func TestRequestBatchRoutes_RefuseASharedPosition(t *testing.T) {
	t.Parallel()
	a := newRequestAPI(t)
	const path = "/request-storage/requests"
	a.must(t, http.MethodPost, path, hold(1, 1), http.StatusCreated)
	want := `{"errors":[{"message":"Cannot have more than one request with the same position in the queue","type":"1",` +
		`"code":"-1",` +
		`"parameters":[{"key":"itemId","value":"` + itemID + `"},{"key":"position","value":"1"}]}]}`
	wantRefusal(t, a.do(http.MethodPost, path, hold(2, 1)), http.StatusUnprocessableEntity, want)
	wantRefusal(t, a.do(http.MethodPut, path+"/"+holdID(2), hold(2, 1)), http.StatusUnprocessableEntity, want)

	a.must(t, http.MethodPost, path, strings.Replace(hold(3, 1), "Open - Not yet filled", "Closed - Filled", 1),
		http.StatusCreated)
	a.must(t, http.MethodPut, path+"/"+holdID(4), strings.Replace(hold(4, 2), `"position":2`, `"position":2.0`, 1),
		http.StatusNoContent)
	if got, want := a.queue(t), "1 at 1, 4 at 2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
