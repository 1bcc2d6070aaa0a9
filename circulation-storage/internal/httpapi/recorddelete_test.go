package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
)

const otherLoanID = "99999999-9999-4999-8999-999999999998"

// twoLoans writes a record of each type and a second loan, of another patron.
func twoLoans(t *testing.T) recordAPI {
	t.Helper()
	a := newRecordAPI(t)
	a.fill(t)
	other := strings.NewReplacer(loanID, otherLoanID, itemID, groupID, userID, groupID).Replace(samples()["/loan-storage/loans"])
	a.must(t, http.MethodPost, "/loan-storage/loans", other, http.StatusCreated)
	return a
}

func TestRecordRoutes_DeleteByQuery(t *testing.T) {
	t.Parallel()
	t.Run("removes the matching ones only", func(t *testing.T) {
		t.Parallel()
		a := twoLoans(t)
		a.must(t, http.MethodDelete, "/loan-storage/loans?query="+escaped("userId=="+userID), "", http.StatusNoContent)
		a.must(t, http.MethodGet, "/loan-storage/loans/"+loanID, "", http.StatusNotFound)
		a.must(t, http.MethodGet, "/loan-storage/loans/"+otherLoanID, "", http.StatusOK)
		a.must(t, http.MethodGet, "/users/"+userID, "", http.StatusOK)
	})
	t.Run("removes all with cql.allRecords=1", func(t *testing.T) {
		t.Parallel()
		a := twoLoans(t)
		a.must(t, http.MethodDelete, "/loan-storage/loans?query="+escaped("cql.allRecords=1"), "", http.StatusNoContent)
		a.must(t, http.MethodGet, "/loan-storage/loans/"+loanID, "", http.StatusNotFound)
		a.must(t, http.MethodGet, "/loan-storage/loans/"+otherLoanID, "", http.StatusNotFound)
	})
	t.Run("refuses what it cannot read and removes nothing", func(t *testing.T) {
		t.Parallel()
		a := twoLoans(t)
		before := a.everything(t)
		for parameters, want := range map[string]string{
			"":                    "which loans to delete",
			"?query=":             "which loans to delete",
			"?query=%20":          "which loans to delete",
			"?limit=1":            "which loans to delete",
			"?query=)":            "position",
			"?query=shoeSize==43": "unknown index",
			"?query=userId==a;b":  "semicolon",
			"?query=userId==" + userID + "&query=cql.allRecords=1": "2 times",
		} {
			wantRefusal(t, a.do(http.MethodDelete, "/loan-storage/loans"+parameters, ""), http.StatusBadRequest, want)
		}
		if after := a.everything(t); after != before {
			t.Errorf("something was removed: before %s, after %s", before, after)
		}
	})
}
