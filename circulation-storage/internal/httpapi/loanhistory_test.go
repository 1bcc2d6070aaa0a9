package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"
)

func TestRecordRoutes_ListTheHistoryOfALoan(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	id, user := uuid.NewString(), uuid.NewString()
	loan := func(action string) string {
		return `{"id":"` + id + `","userId":"` + user + `","itemId":"` + uuid.NewString() +
			`","loanDate":"2026-03-01T00:00:00Z","action":"` + action + `"}`
	}
	const path = "/loan-storage/loans"
	for _, step := range []struct {
		method, path, body string
		status             int
	}{
		{method: "POST", path: path, body: loan("checkedout"), status: http.StatusCreated},
		{method: "POST", path: path, body: loan("checkedout"), status: http.StatusUnprocessableEntity}, // the id is taken
		{method: "PUT", path: path + "/" + id, body: loan("renewed"), status: http.StatusNoContent},
		{method: "DELETE", path: path + "?query=id==" + id, status: http.StatusNoContent},
	} {
		a.must(t, step.method, step.path, step.body, step.status)
	}
	body := a.must(t, "GET", "/loan-storage/loan-history?query=(loan.id=="+id+")%20sortby%20createdDate", "",
		http.StatusOK).Body.Bytes()
	var page struct {
		LoansHistory []struct {
			ID, CreatedDate, Operation string
			Loan                       struct{ ID, UserID, Action string }
		}
		TotalRecords int
	}
	if err := json.Unmarshal(body, &page); err != nil || page.TotalRecords != 3 {
		t.Fatalf("got %s, want three entries", body)
	}
	got := map[string]string{}
	for _, e := range page.LoansHistory {
		got[e.Operation] = e.Loan.Action
		if uuid.Validate(e.ID) != nil || e.CreatedDate == "" || e.Loan.ID != id || e.Loan.UserID != user {
			t.Errorf("got the entry %+v", e)
		}
	}
	if got["I"] != "checkedout" || got["U"] != "renewed" || got["D"] != "deleted" {
		t.Errorf("got %v, want what each write made of the loan", got)
	}
	a.must(t, "GET", "/loan-storage/loan-history?query=loan.id=="+uuid.NewString(), "", http.StatusOK)
}

// Operators remove what is old, or what names a patron.
func TestRecordRoutes_DeleteTheHistoryOfLoans(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	const loans, history = "/loan-storage/loans", "/loan-storage/loan-history"
	for _, user := range []string{userID, userID, groupID} {
		a.must(t, "POST", loans, `{"userId":"`+user+`","itemId":"`+uuid.NewString()+
			`","loanDate":"2026-03-01T00:00:00Z","action":"checkedout"}`, http.StatusCreated)
	}
	for _, step := range []struct {
		query  string
		status int
		left   string
	}{
		{query: "", status: http.StatusBadRequest, left: "3"},
		{query: "?query=userId==" + userID, status: http.StatusBadRequest, left: "3"}, // no index of the history
		{query: "?query=createdDate%3C2026-01-01", status: http.StatusNoContent, left: "3"},
		{query: "?query=loan.userId==" + userID, status: http.StatusNoContent, left: "1"},
		{query: "?query=createdDate%3C2999-01-01", status: http.StatusNoContent, left: "0"},
	} {
		a.must(t, "DELETE", history+step.query, "", step.status)
		left := parseJSON(t, a.must(t, "GET", history, "", http.StatusOK).Body.String())["totalRecords"]
		if got := fmt.Sprint(left); got != step.left {
			t.Errorf("after DELETE %s %s entries are left, want %s", step.query, got, step.left)
		}
	}
	if got := parseJSON(t, a.must(t, "GET", loans, "",
		http.StatusOK).Body.String())["totalRecords"]; fmt.Sprint(got) != "3" {
		t.Errorf("%v loans are left, want all", got)
	}
}
