package integration_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/okapi"
)

// circulationLog is a reader of events that keeps those of FOLIO's circulation log.
type circulationLog struct {
	mu      sync.Mutex
	entries []record
	changed chan struct{}
}

func (l *circulationLog) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var event struct{ EventPayload string }
	var entry record
	if !strings.Contains(r.Header.Get("X-Event-Topic"), ".LOG_RECORD.") ||
		json.NewDecoder(r.Body).Decode(&event) != nil || json.Unmarshal([]byte(event.EventPayload), &entry) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, entry)
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// await returns the first entry that the condition accepts.
func (l *circulationLog) await(t *testing.T, what string, accepts func(record) bool) record {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		l.mu.Lock()
		at := slices.IndexFunc(l.entries, accepts)
		if at >= 0 {
			defer l.mu.Unlock()
			return l.entries[at]
		}
		seen := fmt.Sprint(l.entries)
		l.mu.Unlock()
		select {
		case <-l.changed:
		case <-deadline:
			t.Fatalf("%s is not logged: %.3000s", what, seen)
		}
	}
}

// awaitLoan returns the payload of an entry about a loan.
func (l *circulationLog) awaitLoan(t *testing.T, action string) record {
	t.Helper()
	entry := l.await(t, action, func(r record) bool {
		return r["logEventType"] == "LOAN" && readPart(r, "payload.action") == action
	})
	return entry["payload"].(record)
}

// awaitEvent returns an entry of another kind.
func (l *circulationLog) awaitEvent(t *testing.T, kind string) record {
	t.Helper()
	return l.await(t, kind, func(r record) bool { return r["logEventType"] == kind })
}

// startLogged runs a pair whose events a circulation log reads, and returns a member of staff.
func startLogged(t *testing.T, limit int, circulation ...string) (p *pair, l *circulationLog, staffID string) {
	t.Helper()
	l = &circulationLog{changed: make(chan struct{}, 1)}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	p = startPair(t, stack.Options{
		DatabaseURL:    createDatabase(t), // a process delivers for all tenants
		CirculationEnv: enableLock(circulation...),
		StorageEnv:     []string{"EVENTS_URL=" + server.URL, "EVENTS_PUBSUB=mod-pubsub-2.20.0"},
	}, limit)
	waitUntil(t, patience, "there is a reader", func() (leased bool) {
		queryValue(t, p.databaseURL, &leased, "SELECT fence > 0 FROM "+p.tableName("outbox_lease"))
		return leased
	})
	staffID = p.addRecord(t, "/users", record{
		"barcode": uuid.NewString(), "active": true, "patronGroup": p.GroupID,
		"personal": record{"lastName": "Desk", "firstName": "Dora"},
	})
	p.machines[0].Header = http.Header{okapi.UserIDHeader: {staffID}}
	return p, l, staffID
}

// The entries are as mod-audit reads them: names beside ids, and dates with milliseconds in UTC.
func TestCirculationLog_OfALoan(t *testing.T) {
	t.Parallel()
	p, log, staffID := startLogged(t, 1)
	itemID, book := p.addItem(t)
	_, other := p.addItem(t)
	userID, patron := p.addPatron(t)
	loan := p.lendAs(t, book, patron, nil)
	names := record{
		"userBarcode": patron, "itemBarcode": book, "itemId": itemID,
		"holdingsRecordId": p.HoldingsID, "instanceId": p.readInstanceID(t),
	}
	checkParts(t, "check-out", log.awaitEvent(t, "CHECK_OUT_EVENT"), setFields(record{
		"loanId": loan["id"], "userId": userID, "source": "Desk, Dora", "servicePointId": p.ServicePointID,
		"dueDate": readDueDate(t, loan).UTC().Format("2006-01-02T15:04:05.000-07:00"), "payload.itemId": itemID,
	}, names))

	if a := p.sendCheckOut(t, other, patron, nil); a.Status != http.StatusUnprocessableEntity {
		t.Fatalf("got %d %s, want it refused", a.Status, a.Body)
	}
	checkParts(t, "refusal", log.awaitLoan(t, "Check out"), record{
		"userBarcode": patron, "itemBarcode": other, "servicePointId": p.ServicePointID,
		"updatedByUserId": staffID, "source": "Desk, Dora",
		"description": "Not checked out: Patron has reached maximum limit of 1 items for material type.",
	})

	p.act(t, loan, "add-info", record{"action": "staffInfoAdded", "actionComment": "torn"})
	checkParts(t, "information", log.awaitLoan(t, "Staff info added"), setFields(record{
		"description": "torn", "loanId": loan["id"], "updatedByUserId": staffID,
	}, names))
	p.act(t, loan, "change-due-date", record{"dueDate": "2030-01-01T10:00:00Z"})
	checkParts(t, "new date", log.awaitLoan(t, "Changed due date"), record{
		"description": fmt.Sprintf("New due date: 2030-01-01T10:00:00.000+00:00 (from %s)",
			readDueDate(t, loan).UTC().Format("2006-01-02T15:04:05.000-07:00")),
	})
	p.act(t, loan, "claim-item-returned", record{"itemClaimedReturnedDateTime": lostAt, "comment": "on Monday"})
	checkParts(t, "claim", log.awaitLoan(t, "Claimed returned"), record{
		"description": "Additional information: on Monday",
	})

	wished := p.addRequest(t, itemID, p.addPatronID(t), 1)
	found := record{"claimedReturnedResolution": "Returned by patron"}
	readObject(t, p.checkInItem(t, book, p.ServicePointID, found), http.StatusOK)
	in := log.awaitEvent(t, "CHECK_IN_EVENT")
	checkParts(t, "check-in", in, setFields(record{
		"loanId": loan["id"], "isLoanClosed": true, "itemStatusName": "Awaiting pickup",
		"returnDate": "2026-10-01T09:30:00.000+00:00", "claimedReturnedResolution": "Returned by patron",
		"dueDate": "2030-01-01T10:00:00.000+00:00",
	}, names))
	requests, _ := in["requests"].([]any)
	if len(requests) != 1 {
		t.Fatalf("got the requests %v, want one", requests)
	}
	checkParts(t, "request", requests[0].(record), record{
		"id": wished, "oldRequestStatus": "Open - Not yet filled", "newRequestStatus": "Open - Awaiting pickup",
		"requestType": "Hold",
	})

	a := callEndpoint(t, p.machines[0], http.MethodPost, "/loan-anonymization/by-user/"+userID, nil)
	if a.Status/100 != 2 {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	checkParts(t, "anonymization", log.awaitLoan(t, "Anonymize"), record{
		"loanId": loan["id"], "userId": nil, "userBarcode": nil, "itemId": itemID, "servicePointId": p.ServicePointID,
	})
}

func (p *pair) addPatronID(t *testing.T) string {
	t.Helper()
	id, _ := p.addPatron(t)
	return id
}

func TestCirculationLog_OfRequests(t *testing.T) {
	t.Parallel()
	p, log, _ := startLogged(t, 9)
	p.addRecallPolicy(t)
	itemID, book := p.addItem(t)
	ann, _ := p.addPatron(t)
	_, benCard := p.addPatron(t)
	loan := p.lendAs(t, book, benCard, nil)
	recall := readObject(t, p.placeRequest(t, itemID, ann, "Recall"), http.StatusCreated)
	created := log.awaitEvent(t, "REQUEST_CREATED_EVENT")
	checkParts(t, "request", created["payload"].(record), record{
		"requests.created.id": recall["id"], "requests.created.requesterId": ann,
		"requests.created.requestType": "Recall", "itemBarcode": book,
	})
	checkParts(t, "recall", log.awaitLoan(t, "Recall requested"), record{"loanId": loan["id"], "userBarcode": benCard})

	later := readObject(t, p.placeRequest(t, itemID, p.addPatronID(t), "Hold"), http.StatusCreated)
	order := []record{{"id": later["id"], "newPosition": 1}, {"id": recall["id"], "newPosition": 2}}
	readObject(t, callEndpoint(t, p.machines[0], http.MethodPost,
		"/circulation/requests/queue/item/"+itemID+"/reorder", record{"reorderedQueue": order}), http.StatusOK)
	reordered, _ := readPart(log.awaitEvent(t, "REQUEST_REORDERED_EVENT"), "payload.requests.reordered").([]any)
	if len(reordered) != 2 {
		t.Fatalf("got %v, want the whole queue", reordered)
	}
	checkParts(t, "first", reordered[0].(record), record{"id": later["id"], "position": 1.0, "previousPosition": 2.0})

	later["patronComments"] = "soon"
	path := fmt.Sprintf("/circulation/requests/%v", later["id"])
	if a := callEndpoint(t, p.machines[0], http.MethodPut, path, later); a.Status != http.StatusNoContent {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	updated := log.awaitEvent(t, "REQUEST_UPDATED_EVENT")["payload"].(record)
	checkParts(t, "edit", updated, record{
		"requests.original.patronComments": nil, "requests.updated.patronComments": "soon",
		"requests.updated.id": later["id"],
	})
}
