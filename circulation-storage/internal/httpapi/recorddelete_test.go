package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/records"
)

const otherLoanID = "99999999-9999-4999-8999-999999999998"

// twoLoans writes a record of each type and a second loan, of another patron.
func twoLoans(t *testing.T) recordAPI {
	t.Helper()
	a := newRecordAPI(t)
	a.fill(t)
	other := strings.NewReplacer(loanID, otherLoanID, itemID, groupID, userID,
		groupID).Replace(samples()["/loan-storage/loans"])
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

// Each type that has DELETE of a collection removes what matches and keeps the rest.
func TestRecordRoutes_DeleteByQueryOfEachType(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	a.fill(t)
	a.must(t, http.MethodDelete, terminalsPath+"/"+terminalID, "", http.StatusNoContent) // it names the service point
	types := records.Types()
	slices.Reverse(types)
	kept := map[string]bool{
		"usergroup": true, "addresstype": true, "patron_notice_policy": true, "circulation_settings": true,
		"actual_cost_record": true, "tlr_feature_toggle_job": true, "overdue_fine_policy": true, "lost_item_fee_policy": true,
		"settings_entry":          true,
		"user_request_preference": true, "proxyfor": true, "manualblocks": true, "patron_block_conditions": true,
		"patron_block_limits":   true,
		"patron_action_session": true, "self_check_terminal": true,
	}
	for _, typ := range types {
		one := typ.Path + "/" + parseJSON(t, samples()[typ.Path])["id"].(string)
		if kept[typ.Table] {
			a.must(t, http.MethodDelete, typ.Path+"?query=cql.allRecords=1", "", http.StatusMethodNotAllowed)
			continue
		}
		a.must(t, http.MethodDelete, typ.Path+"?query=", "", http.StatusBadRequest)
		if typ.Table != "scheduled_notice" {
			a.must(t, http.MethodDelete, typ.Path, "", http.StatusBadRequest)
		}
		a.must(t, http.MethodDelete, typ.Path+"?query=id=="+otherLoanID, "", http.StatusNoContent)
		a.must(t, http.MethodGet, one, "", http.StatusOK)
		a.must(t, http.MethodDelete, typ.Path+"?query=cql.allRecords=1", "", http.StatusNoContent)
		a.must(t, http.MethodGet, one, "", http.StatusNotFound)
	}
}

// Staff slips, reasons and preferences are found as FOLIO's desks ask for them.
func TestRecordRoutes_DeskRecords(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	a.fill(t)
	for path, key := range map[string]string{
		"/staff-slips-storage/staff-slips?limit=100&query=cql.allRecords%3D1%20sortby%20name": "staffSlips",
		"/staff-slips-storage/staff-slips?query=(name==%22hold%22)":                           "staffSlips",
		"/cancellation-reason-storage/cancellation-reasons?query=cql.allRecords%3D1%20sortby%20name" +
			"&limit=1000": "cancellationReasons",
		"/request-preference-storage/request-preference?query=(userId==" + userID +
			")": "requestPreferences",
		"/addresstypes?limit=2000&query=cql.allRecords%3D1%20sortby%20addressType": "addressTypes",
		"/request-storage/requests?query=" +
			escaped(`cancellationReasonId=="`+reasonID+`"`): "requests",
		"/request-storage/requests?query=" +
			escaped(`requesterId=="x" or itemIsbn="9780142437247*"`): "requests",
		"/request-storage/requests?query=" +
			escaped(`fullCallNumberIndex=="Big PS 2384 c*"`): "requests",
		"/request-storage/requests?query=" +
			escaped(`searchIndex.callNumberComponents.callNumber=="PS*" sortby searchIndex.pickupServicePointName`): "requests",
		"/loan-storage/loans?query=" + escaped(`status="Open"`): "loans",
	} {
		if list, _ := parseJSON(t, a.must(t, http.MethodGet, path, "",
			http.StatusOK).Body.String())[key].([]any); len(list) != 1 {
			t.Errorf("%s: got %v, want one record", path, list)
		}
	}
	second := strings.Replace(samples()["/request-preference-storage/request-preference"], preferenceID, otherLoanID, 1)
	wantRefusal(t, a.do(http.MethodPost, "/request-preference-storage/request-preference", second),
		http.StatusUnprocessableEntity,
		"Request preference for specified user already exists")
	named := "The request " + requestID + " names it in cancellationReasonId."
	wantRefusal(t, a.do(http.MethodDelete, "/cancellation-reason-storage/cancellation-reasons/"+reasonID, ""),
		http.StatusUnprocessableEntity, named)
	wantRefusal(t, a.do(http.MethodDelete, "/cancellation-reason-storage/cancellation-reasons?query=cql.allRecords=1", ""),
		http.StatusUnprocessableEntity, named)
	for _, step := range []struct{ by, remove string }{
		{by: "The user " + userID + " names it in personal.addresses.", remove: "/users/" + userID},
		{
			by:     "The request " + requestID + " names it in deliveryAddressTypeId.",
			remove: "/request-storage/requests/" + requestID,
		},
	} {
		wantRefusal(t, a.do(http.MethodDelete, "/addresstypes/"+addressTypeID, ""), http.StatusUnprocessableEntity, step.by)
		a.must(t, http.MethodDelete, step.remove, "", http.StatusNoContent)
	}
	a.must(t, http.MethodDelete, "/addresstypes/"+addressTypeID, "", http.StatusNoContent)
}

// As in FOLIO, there all notices go without a query. A query string without one is a mistake.
func TestRecordRoutes_DeleteAllNotices(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	a.fill(t)
	const path = "/scheduled-notice-storage/scheduled-notices"
	for _, step := range []struct {
		query  string
		status int
		left   string
	}{
		{query: "?query=", status: http.StatusBadRequest, left: "1"},
		{query: "?qeury=loanId==" + loanID, status: http.StatusBadRequest, left: "1"},
		{query: "?query=loanId==" + otherLoanID, status: http.StatusNoContent, left: "1"},
		{query: "", status: http.StatusNoContent, left: "0"},
	} {
		a.must(t, http.MethodDelete, path+step.query, "", step.status)
		left := parseJSON(t, a.must(t, http.MethodGet, path, "", http.StatusOK).Body.String())["totalRecords"]
		if fmt.Sprint(left) != step.left {
			t.Errorf("after DELETE %q %v notices are left, want %s", step.query, left, step.left)
		}
	}
}
