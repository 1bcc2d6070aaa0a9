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

// newQueueAPI serves the records of requests and the changes of their queues.
func newQueueAPI(t *testing.T) recordAPI {
	t.Helper()
	db, id := pgtest.New(t)
	store := postgres.NewRecordStore(db, func() {})
	return recordAPI{newAPI(t, slices.Concat(
		httpapi.RecordRoutes(store), httpapi.OperationRoutes(store),
		httpapi.RequestQueueRoutes(postgres.NewCommitStore(db, pgtest.Uncounted{})))), id}
}

func TestRequestQueueRoutes_ChangeARequest(t *testing.T) {
	t.Parallel()
	a := newQueueAPI(t)
	const path = "/request-storage/changes"
	a.must(t, http.MethodPost, batchPath, batch(hold(1, 1), hold(2, 2), hold(3, 3)), http.StatusCreated)
	change := func(request, more string) string { return fmt.Sprintf(`{"request":%s%s}`, request, more) }
	for _, tt := range []struct {
		body   string
		status int
		want   string
	}{
		{body: `{`, status: 400, want: ""},
		{body: `{}`, status: 422, want: "request is required"},
		{body: `{"request":{"id":"` + holdID(1) + `"}}`, status: 422, want: "request.instanceId is required"},
		{body: change(hold(9, 1), ""), status: 404, want: "There is no request with the id " + holdID(9)},
		{body: change(hold(2, 0), ""), status: 422, want: "request.position must be at least 1"},
	} {
		wantRefusal(t, a.do(http.MethodPost, path, tt.body), tt.status, tt.want)
	}
	a.must(t, http.MethodPost, path, change(hold(1, 9), ""), http.StatusNoContent)
	if got, want := a.queue(t), "1 at 1, 2 at 2, 3 at 3"; got != want {
		t.Errorf("after an edit: got %s, want %s", got, want)
	}
	a.must(t, http.MethodPost, path, change(hold(1, 1), `,"delete":true`), http.StatusNoContent)
	if got, want := a.queue(t), "2 at 1, 3 at 2"; got != want {
		t.Errorf("after a deletion: got %s, want %s", got, want)
	}
	ids := fmt.Sprintf(`{"id":%q,"instanceId":%q,"itemId":%q}`, holdID(2), otherLoanID, itemID)
	wantRefusal(t, a.do(http.MethodPost, path, change(ids, `,"delete":false`)), 422, "request.requesterId is required")
	wantRefusal(t, a.do(http.MethodPost, path, change(ids, `,"delete":true`)), 409, "is for another item now")
	a.must(t, http.MethodPost, path, change(strings.Replace(ids, otherLoanID, titleID, 1), `,"delete":true`),
		http.StatusNoContent)
	if got, want := a.queue(t), "3 at 1"; got != want {
		t.Errorf("after a deletion by ids: got %s, want %s", got, want)
	}
}

func TestRequestQueueRoutes_OrderAQueue(t *testing.T) {
	t.Parallel()
	a := newQueueAPI(t)
	const path = "/request-storage/queue-orders"
	order := func(first, second int) string {
		return fmt.Sprintf(`{"itemId":%q,"reorderedQueue":[{"id":%q,"newPosition":1},{"id":%q,"newPosition":2}]}`, itemID,
			holdID(first), holdID(second))
	}
	wantRefusal(t, a.do(http.MethodPost, path, order(2, 1)), 404, "Item record with ID")
	a.must(t, http.MethodPost, batchPath, batch(hold(1, 1), hold(2, 2)), http.StatusCreated)
	wantRefusal(t, a.do(http.MethodPost, path, `{`), 400, "")
	wantRefusal(t, a.do(http.MethodPost, path, `{"reorderedQueue":[]}`), 422, "itemId or instanceId is required")
	wantRefusal(t, a.do(http.MethodPost, path, order(1, 3)), 422,
		"There is inconsistency between provided reordered queue and item queue.")
	w := a.must(t, http.MethodPost, path, order(2, 1), http.StatusOK)
	if list, _ := parseJSON(t, w.Body.String())["requests"].([]any); len(list) != 2 ||
		list[0].(map[string]any)["id"] != holdID(2) {
		t.Errorf("got %s, want the queue in its order", w.Body)
	}
	if got, want := a.queue(t), "2 at 1, 1 at 2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRequestQueueRoutes_ExpireRequests(t *testing.T) {
	t.Parallel()
	a := newQueueAPI(t)
	expired := strings.Replace(hold(1, 1), `"ours"`, `"requestExpirationDate":"2026-01-01T00:00:00Z","ours"`, 1)
	a.must(t, http.MethodPost, batchPath, batch(expired, hold(2, 2)), http.StatusCreated)
	for range 2 {
		a.must(t, http.MethodPost, "/scheduled-request-expiration", "", http.StatusNoContent)
		if got, want := a.queue(t), "2 at 1"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestRequestQueueRoutes_MoveARequest(t *testing.T) {
	t.Parallel()
	a := newQueueAPI(t)
	a.fill(t)
	a.must(t, http.MethodDelete, "/request-storage/requests?query=cql.allRecords=1", "", http.StatusNoContent)
	const path = "/request-storage/moves"
	other := strings.ReplaceAll(hold(1, 1), itemID, otherLoanID)
	a.must(t, http.MethodPost, batchPath, batch(other), http.StatusCreated)
	body := func(request string, version int) string {
		return fmt.Sprintf(`{"request":%s,"itemVersion":%d,"fromItemId":%q}`, request, version, otherLoanID)
	}
	wantRefusal(t, a.do(http.MethodPost, path, `{`), 400, "")
	wantRefusal(t, a.do(http.MethodPost, path, `{"request":`+hold(1, 1)+`}`), 422, "itemVersion is required")
	wantRefusal(t, a.do(http.MethodPost, path, body(hold(9, 1), 1)), 404, "There is no request with the id "+holdID(9))
	wantRefusal(t, a.do(http.MethodPost, path, body(hold(1, 1), 7)), 409, "The item has changed")
	for range 2 {
		w := a.must(t, http.MethodPost, path, body(hold(1, 1), 1), http.StatusOK)
		if request, _ := parseJSON(t, w.Body.String())["request"].(map[string]any); request["itemId"] != itemID {
			t.Errorf("got %s, want the request of the other item", w.Body)
		}
	}
}

func TestRequestQueueRoutes_RenumberQueues(t *testing.T) {
	t.Parallel()
	a := newQueueAPI(t)
	const jobs = "/tlr-feature-toggle-job-storage/tlr-feature-toggle-jobs"
	a.must(t, http.MethodPost, "/circulation-settings-storage/circulation-settings",
		`{"name":"generalTlr","value":{"titleLevelRequestsFeatureEnabled":false}}`, http.StatusCreated)
	a.must(t, http.MethodPost, batchPath, batch(hold(1, 3), hold(2, 2)), http.StatusCreated)
	a.must(t, http.MethodPost, jobs, `{"status":"open"}`, http.StatusCreated)
	for range 2 {
		a.must(t, http.MethodPost, "/tlr-feature-toggle-job/start", "", http.StatusAccepted)
		if got, want := a.queue(t), "2 at 1, 1 at 2"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	w := a.must(t, http.MethodGet, jobs+"?query=status==done", "", http.StatusOK)
	if list, _ := parseJSON(t, w.Body.String())["tlrFeatureToggleJobs"].([]any); len(list) != 1 {
		t.Errorf("got %s, want the job", w.Body)
	}
}
