package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/uuid"
)

func TestRecordRoutes_ListTheHistoryOfALoan(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	id, user := uuid.NewString(), uuid.NewString()
	loan := func(action string) string {
		return `{"id":"` + id + `","userId":"` + user + `","itemId":"` + uuid.NewString() + `","loanDate":"2026-03-01T00:00:00Z","action":"` + action + `"}`
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
	body := a.must(t, "GET", "/loan-storage/loan-history?query=(loan.id=="+id+")%20sortby%20createdDate", "", http.StatusOK).Body.Bytes()
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
	if got["I"] != "checkedout" || got["U"] != "renewed" || got["D"] != "renewed" {
		t.Errorf("got %v, want what each write made of the loan", got)
	}
	a.must(t, "GET", "/loan-storage/loan-history?query=loan.id=="+uuid.NewString(), "", http.StatusOK)
}
