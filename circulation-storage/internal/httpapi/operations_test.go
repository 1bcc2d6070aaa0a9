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

func newOperations(t *testing.T) recordAPI {
	t.Helper()
	db, id := pgtest.New(t)
	store := postgres.NewRecordStore(db, func() {})
	a := recordAPI{newAPI(t, slices.Concat(httpapi.RecordRoutes(store), httpapi.OperationRoutes(store))), id}
	a.fill(t)
	return a
}

const (
	printPath   = "/print-events-storage/print-events-entry"
	printedPath = "/print-events-storage/print-events-status"
	anonymize   = "/anonymize-storage-loans"
)

func printBody(name, at string, ids ...string) string {
	return fmt.Sprintf(`{"requestIds":["%s"],"requesterId":"%s","requesterName":%q,"printEventDate":%q}`,
		strings.Join(ids, `","`), userID, name, at)
}

func TestOperationRoutes_CountPrints(t *testing.T) {
	t.Parallel()
	a := newOperations(t)
	for _, at := range []string{"2026-08-22T10:00:00+02:00", "2026-08-21T10:00:00Z", "2026-08-20T10:00:00Z"} {
		a.must(t, http.MethodPost, printPath, printBody("Ada "+at[:10], at, requestID), http.StatusCreated)
	}
	unknown := strings.TrimSuffix(printBody("Ben", "2026-01-01T00:00:00Z", slipID), "}") + `,"RequestIDs":["x"]}`
	a.must(t, http.MethodPost, printPath, unknown, http.StatusCreated)
	got := a.must(t, http.MethodPost, printedPath, `{"requestIds":["`+requestID+`","`+slipID+`","`+deskID+`"]}`,
		http.StatusOK).Body.String()
	page := parseJSON(t, got)
	list := page["printEventsStatusResponses"].([]any)
	if fmt.Sprint(page["totalRecords"]) != "2" || len(list) != 2 {
		t.Fatalf("got %s, want two requests", got)
	}
	first := list[0].(map[string]any)
	if fmt.Sprintln(first["requestId"], first["requesterName"], first["count"], first["printEventDate"]) !=
		fmt.Sprintln(requestID, "Ada 2026-08-22", 3, "2026-08-22T08:00:00.000+00:00") ||
		first["requesterId"] != userID {
		t.Errorf("got %v, want the last of three prints", first)
	}
	stored := parseJSON(t,
		a.must(t, http.MethodGet, "/request-storage/requests/"+requestID, "", http.StatusOK).Body.String())
	details := stored["printDetails"].(map[string]any)
	if fmt.Sprintln(details["printCount"], details["isPrinted"], details["requesterId"]) !=
		fmt.Sprintln(3, true, userID) {
		t.Errorf("the request has %v, want three prints", details)
	}
}

func TestOperationRoutes_AnonymizeClosedLoans(t *testing.T) {
	t.Parallel()
	a := newOperations(t)
	closed, later := "77777777-7777-4777-8777-777777777777", "77777777-7777-4777-8777-777777777778"
	for _, id := range []string{closed, later} {
		a.must(t, http.MethodPost, "/loan-storage/loans", `{"id":"`+id+`","itemId":"`+itemID+`","userId":"`+userID+
			`","proxyUserId":"`+groupID+`","loanDate":"2026-01-01T00:00:00Z","action":"checkedin",`+
			`"status":{"name":"Closed"}}`,
			http.StatusCreated)
	}
	named := func() string {
		t.Helper()
		read := func(path, query string) map[string]any {
			return parseJSON(t, a.must(t, http.MethodGet, path+"?query="+escaped(query), "", http.StatusOK).Body.String())
		}
		page := read("/loan-storage/loans", "userId=="+userID+" or proxyUserId=="+groupID+" sortby id")
		history := read("/loan-storage/loan-history", "loan.userId=="+userID+" and loan.id=="+closed)
		var ids []string
		for _, l := range page["loans"].([]any) {
			ids = append(ids, l.(map[string]any)["id"].(string))
		}
		return fmt.Sprint(ids, " ", history["totalRecords"])
	}
	got := strings.TrimSpace(a.must(t, http.MethodPost, anonymize,
		`{"loanIds":5,"loanIds":["x","`+closed+`","`+loanID+`"]}`, http.StatusOK).Body.String())
	if want := `{"anonymizedLoans":["` + closed + `","` + loanID + `"],"notAnonymizedLoans":[{"reason":"invalidLoanIds",` +
		`"loanIds":["x"]}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := named(), fmt.Sprint([]string{loanID, later}, " ", 0); got != want {
		t.Errorf("got %s, want %s: the open loan and the other closed one keep their patron", got, want)
	}
	a.must(t, http.MethodPost, "/loan-storage/loans/anonymize/"+userID, "", http.StatusNoContent)
	if got, want := named(), fmt.Sprint([]string{loanID}, " ", 0); got != want {
		t.Errorf("got %s, want %s: the open loan keeps its patron", got, want)
	}
}

func TestOperationRoutes_RefuseBadInput(t *testing.T) {
	t.Parallel()
	a := newOperations(t)
	before := a.everything(t)
	for name, tt := range map[string]struct {
		path, body string
		status     int
		want       string
	}{
		"a print of no request": {
			path: printPath, body: strings.Replace(printBody("A", "2026-01-01T00:00:00Z"), `""`, "", 1),
			status: 422, want: "requestIds",
		},
		"a print by no name": {
			path: printPath, body: printBody(" ", "2026-01-01T00:00:00Z", requestID),
			status: 422, want: "requesterName breaks the rule pattern",
		},
		"a print at no time": {
			path: printPath, body: printBody("A", "soon", requestID),
			status: 422, want: "printEventDate must be a date",
		},
		"a print of what is none": {
			path: printPath, body: printBody("A", "2026-01-01T00:00:00Z", "x"),
			status: 422, want: "requestIds[0] must be a UUID",
		},
		"no body": {
			path: printPath, body: ``,
			status: 400, want: "The body is empty",
		},
		"no requests": {
			path: printedPath, body: `{}`,
			status: 422, want: "requestIds is required",
		},
		"loans without a UUID": {
			path: anonymize, body: `{"loanIds":["a"]}`,
			status: 422, want: `"message":"Please provide valid loanIds","type":"1","code":"-1",` +
				`"parameters":[{"key":"loanIds","value":"[a]"}]`,
		},
		"no loans": {
			path: anonymize, body: `{}`,
			status: 422, want: "Please provide valid loanIds",
		},
		"loans that are numbers": {
			path: anonymize, body: `{"loanIds":[1]}`,
			status: 422, want: "loanIds[0] must be of type string",
		},
		"a user who is no UUID": {
			path: "/loan-storage/loans/anonymize/ada", body: ``,
			status: 400, want: "is no UUID",
		},
		"a user who is SQL instead": {
			path: "/loan-storage/loans/anonymize/'%20or%20true--", body: ``,
			status: 400, want: "is no UUID",
		},
	} {
		t.Run(name, func(t *testing.T) { wantRefusal(t, a.do(http.MethodPost, tt.path, tt.body), tt.status, tt.want) })
	}
	if after := a.everything(t); after != before {
		t.Errorf("something was written: before %s, after %s", before, after)
	}
}
