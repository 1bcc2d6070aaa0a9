package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/records"
)

// wantRefusal checks an answer to a caller's mistake: it has that status, says
// want, and shows nothing of the inside.
func wantRefusal(t *testing.T, w *httptest.ResponseRecorder, status int, want string) {
	t.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), want) {
		t.Errorf("got %d %s, want %d and %q", w.Code, w.Body, status, want)
	}
	for _, inside := range []string{"SQLSTATE", "jsonb", "SELECT ", "INSERT ", "pgx", "goroutine"} {
		if strings.Contains(w.Body.String(), inside) {
			t.Errorf("the answer shows %q: %s", inside, w.Body)
		}
	}
}

// item is the sample item with one field replaced or added.
func itemWith(field string) string {
	return strings.Replace(samples()["/item-storage/items"], `"volume":"1"`, field, 1)
}

func TestRecordRoutes_RefuseABadRecord(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	a.fill(t)
	const items, missing = "/item-storage/items", "99999999-9999-4999-8999-999999999999"
	const policies, fixed = "/loan-policy-storage/loan-policies", `{"name":"n","loanable":true,"renewable":true,` +
		`"loansPolicy":{"profileId":"Fixed","fixedDueDateScheduleId":"` + scheduleID + `"}`
	fresh := func(doc string) string { // another id and barcode than the sample's
		return strings.NewReplacer(itemID, missing, `b\\\"1`, "other").Replace(doc)
	}
	tests := map[string]struct {
		path, body string
		status     int
		want       string
	}{
		"no body":                     {path: items, body: ``, status: 400, want: "The body is empty"},
		"no JSON":                     {path: items, body: `{"barcode":`, status: 400, want: "not valid JSON"},
		"two values":                  {path: items, body: `{} {}`, status: 400, want: "after its JSON value, at byte 4"},
		"no object":                   {path: items, body: `[]`, status: 422, want: "must be a JSON object"},
		"null":                        {path: items, body: `null`, status: 422, want: "must be a JSON object"},
		"no UTF-8":                    {path: items, body: "{\"barcode\":\"\xff\"}", status: 400, want: "UTF-8"},
		"nothing of what is required": {path: items, body: `{}`, status: 422, want: "materialTypeId is required"},
		"null for what is required": {
			path: items, body: fresh(itemWith(`"status":null`)), status: 422, want: "status is required",
		},
		"NUL": {
			path: items, body: fresh(itemWith(`"volume":"\u0000"`)), status: 422, want: "cannot be stored",
		},
		"NUL in a name": {
			path: items, body: fresh(itemWith(`"a\u0000":1`)), status: 422, want: "cannot be stored",
		},
		"half a character": {
			path: items, body: fresh(itemWith(`"volume":"\ud800"`)), status: 422, want: "cannot be stored",
		},
		"a wrong type": {
			path: items, body: fresh(itemWith(`"volume":1`)), status: 422, want: "volume must be of type string, not number",
		},
		"an unknown status": {
			path: items, body: fresh(strings.Replace(samples()[items], "Available", "Gone", 1)), status: 422,
			want: "status.name must be one of: ",
		},
		"an id that is none": {
			path: items, body: fresh(itemWith(`"temporaryLocationId":"here"`)), status: 422,
			want: "temporaryLocationId must be a UUID",
		},
		"a location that is not there": {
			path: items, body: fresh(itemWith(`"temporaryLocationId":"` + missing + `"`)), status: 422,
			want: "does not exist in location.id",
		},
		"holdings that are not there": {
			path: items, body: strings.Replace(fresh(samples()[items]), holdingsID, missing, 1), status: 422,
			want: "does not exist in holdings_record.id",
		},
		"a barcode that is taken": {
			path: items, body: strings.Replace(samples()[items], itemID, missing, 1), status: 422,
			want: `barcode value already exists in table item: b\\\"1`,
		},
		"an id that is taken": {
			path: items, body: strings.Replace(samples()[items], `b\\\"1`, "other", 1), status: 422,
			want: "id value already exists in table item: " + itemID,
		},
		"a barcode too long to index": {
			path: items, body: strings.Replace(fresh(samples()[items]), "other", strings.Repeat("x", 9000), 1), status: 422,
			want: "barcode must have at most 600 characters, not 9000",
		},
		"a number too large": {
			path: items, body: fresh(itemWith(`"ours":1e999999999`)), status: 422, want: "too long a number",
		},
		"nested too deeply": {
			path: items, body: fresh(itemWith(`"ours":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000))), status: 422,
			want: "nested too deeply",
		},
		"too large": {
			path: items, body: `"` + strings.Repeat("x", bodyLimit) + `"`, status: 413, want: "too large",
		},
		"a second open loan": {
			path: "/loan-storage/loans", body: strings.Replace(samples()["/loan-storage/loans"], loanID, missing, 1),
			status: 422,
			want: `{"errors":[{"message":"Cannot have more than one open loan for the same item","type":"1","code":"-1",` +
				`"parameters":[{"key":"itemId","value":"` + itemID + `"}]}]}`,
		},
		"an open loan without a user": {
			path: "/loan-storage/loans",
			body: `{"itemId":"` + missing + `","loanDate":"2026-01-01T00:00:00Z","action":"checkedout"}`, status: 422,
			want: "Open loan must have a user ID",
		},
		"a loan of no date": {
			path: "/loan-storage/loans",
			body: `{"itemId":"` + missing + `","loanDate":"soon","action":"checkedout","userId":"` + userID + `"}`, status: 400,
			want: "loan date must be a date time (in RFC3339 format)",
		},
		"a return on no date": {
			path: "/loan-storage/loans",
			body: `{"itemId":"` + missing +
				`","loanDate":"2026-01-01T00:00:00Z","returnDate":"soon","action":"checkedin","status":{"name":"Closed"}}`,
			status: 400, want: "return date must be a date time (in RFC3339 format)",
		},
		"a setting that exists": {
			path: "/settings/entries", body: `{"id":"` + missing + `","scope":"ui","key":"colours","value":1}`, status: 403,
			want: "already",
		},
		"a setting's id that exists": {
			path: "/settings/entries", body: `{"id":"` + entryID + `","scope":"ui","key":"new","value":1}`, status: 403,
			want: "already",
		},
		"lock settings with a typo": {
			path:   "/settings/entries",
			body:   `{"id":"` + missing + `","scope":"mod-circulation","key":"checkoutLockFeature","value":{"enabled":true}}`,
			status: 422, want: "no valid setting of the check-out lock",
		},
		"a user name taken, other case": {
			path: "/users", body: `{"username":"JANE"}`, status: 422,
			want: `{"errors":[{"message":"User with this username already exists","type":"1","code":"-1","parameters":[` +
				`{"key":"username","value":"JANE"}]}]}`,
		},
		"a proxy for the second time": {
			path: "/proxiesfor", body: `{"userId":"` + userID + `","proxyUserId":"` + groupID + `"}`, status: 422,
			want: `{"errors":[{"message":"Proxy relationship already exists","type":"1","code":"-1",` +
				`"parameters":[{"key":"userId","value":"` + userID + `"},{"key":"proxyUserId","value":"` + groupID + `"}]}]}`,
		},
		"a campus of no institution": {
			path: "/location-units/campuses", body: `{"name":"n","institutionId":"` + missing + `"}`, status: 422,
			want: "does not exist in locinstitution.id",
		},
		"a library of no campus": {
			path: "/location-units/libraries", body: `{"name":"n","campusId":"` + missing + `"}`, status: 422,
			want: "does not exist in loccampus.id",
		},
		"a setting that is no object": {
			path: "/circulation-settings-storage/circulation-settings", body: `{"name":"n","value":"{}"}`, status: 422,
			want: "value must be of type object, not string",
		},
		"a schedule upside down": {
			path: "/fixed-due-date-schedule-storage/fixed-due-date-schedules",
			body: `{"name":"n","schedules":[{"from":"2026-02-01","to":"2026-01-01","due":"2026-03-01"}]}`, status: 422,
			want: "Date range not valid from date after to date",
		},
		"a schedule of no dates": {
			path: "/fixed-due-date-schedule-storage/fixed-due-date-schedules",
			body: `{"name":"n","schedules":[{"from":"soon","to":"2026-01-01","due":"2026-03-01"}]}`, status: 422,
			want: "schedules[0].from must be a date",
		},
		"a fixed policy that renews for a period": {
			path: policies, body: fixed + `,"renewalsPolicy":{"differentPeriod":true,"alternateFixedDueDateScheduleId":"` +
				scheduleID + `","period":{"duration":1,"intervalId":"Days"}}}`,
			status: 422, want: "Period in RenewalsPolicy is not allowed for policies with Fixed profile",
		},
		"a fixed policy with a period for holds": {
			path: policies, body: fixed + `,"requestManagement":{"holds":{"renewItemsWithRequest":true,` +
				`"alternateRenewalLoanPeriod":{"duration":1,"intervalId":"Days"}}}}`,
			status: 422, want: "Alternate Renewal Loan Period for Holds is not allowed for policies with Fixed profile",
		},
		"a policy of unknown requests": {
			path: "/request-policy-storage/request-policies", body: `{"name":"n","requestTypes":["Wish"]}`, status: 422,
			want: "requestTypes[0] must be one of: ",
		},
		"a fine below zero": {
			path: "/overdue-fines-policies", body: `{"name":"n","overdueFine":{"quantity":-1,"intervalId":"day"}}`, status: 422,
			want: "overdueFine.quantity must be at least 0",
		},
		"a patron notice policy's name that is taken": {
			path: "/patron-notice-policy-storage/patron-notice-policies", body: `{"name":"courtesy"}`, status: 422,
			want: `"code":"duplicate.name"`,
		},
		"an overdue fine policy's name that is taken": {
			path: "/overdue-fines-policies", body: `{"name":"a day each"}`, status: 422,
			want: `"message":"The Overdue fine policy name entered already exists. Please enter a different name.",` +
				`"code":"feesfines.policy.overdue.duplicate"`,
		},
		"a lost item fee policy's name that is taken": {
			path: "/lost-item-fees-policies", body: `{"name":"BY price"}`, status: 422,
			want: `"message":"The Lost item fee policy name entered already exists. Please enter a different name.",` +
				`"code":"feesfines.policy.lost.duplicate"`,
		},
		"a lost item fee below zero": {
			path: "/lost-item-fees-policies", body: `{"name":"n","lostItemProcessingFee":-0.5}`, status: 422,
			want: "lostItemProcessingFee must be at least 0",
		},
		"a lost item fee policy of no period": {
			path: "/lost-item-fees-policies", body: `{"name":"n","itemAgedLostOverdue":{"duration":0}}`, status: 422,
			want: "itemAgedLostOverdue.duration must be at least 1",
		},
		"a check-in without the user": {
			path:   "/check-in-storage/check-ins",
			body:   `{"occurredDateTime":"2026-08-22T10:11:12Z","itemId":"` + itemID + `","servicePointId":"` + deskID + `"}`,
			status: 422, want: "performedByUserId is required",
		},
		"a check-in with less than no requests": {
			path: "/check-in-storage/check-ins", body: strings.Replace(
				strings.Replace(samples()["/check-in-storage/check-ins"], checkInID, missing, 1), `Size":0`, `Size":-1`, 1),
			status: 422, want: "requestQueueSize must be",
		},
		"a notice at no time": {
			path:   "/scheduled-notice-storage/scheduled-notices",
			body:   `{"nextRunTime":"soon","noticeConfig":{"timing":"After","templateId":"` + deskID + `","format":"Email"}}`,
			status: 422, want: "nextRunTime must be a date",
		},
		"a notice of an unknown event": {
			path: "/scheduled-notice-storage/scheduled-notices", body: strings.Replace(
				strings.Replace(samples()["/scheduled-notice-storage/scheduled-notices"], noticeID, missing, 1),
				"Due date", "Birthday", 1),
			status: 422, want: "triggeringEvent must be one of: ",
		},
		"a notice without a form": {
			path: "/scheduled-notice-storage/scheduled-notices",
			body: `{"nextRunTime":"2026-08-22T10:11:12Z","noticeConfig":{}}`, status: 422,
			want: "noticeConfig.format is required",
		},
		"an actual cost record of an unknown loss": {
			path: "/actual-cost-record-storage/actual-cost-records", body: strings.Replace(
				strings.Replace(samples()["/actual-cost-record-storage/actual-cost-records"], actualCostID, missing, 1),
				"Declared lost", "Eaten", 1),
			status: 422, want: "lossType must be one of: Aged to lost, Declared lost",
		},
		"an actual cost record without anything": {
			path: "/actual-cost-record-storage/actual-cost-records", body: `{}`, status: 422, want: "feeFine is required",
		},
		"a job that is neither open nor done": {
			path: "/tlr-feature-toggle-job-storage/tlr-feature-toggle-jobs", body: `{"status":"paused"}`, status: 422,
			want: "status must be one of: open, in-progress, done, failed",
		},
		"a session of neither kind": {
			path: "/patron-action-session-storage/patron-action-sessions",
			body: `{"patronId":"` + userID + `","loanId":"` + loanID + `","actionType":"Renewal"}`, status: 422,
			want: "actionType must be one of: Check-out, Check-in",
		},
		"a block of no patron": {
			path: "/manualblocks", body: `{"desc":"d","borrowing":true}`, status: 422, want: "userId is required",
		},
		"a limit of no condition": {
			path: "/patron-block-limits", body: `{"patronGroupId":"` + groupID + `","conditionId":"` + missing + `","value":1}`,
			status: 422, want: "does not exist in patron_block_conditions.id",
		},
		"a limit below zero": {
			path: "/patron-block-limits",
			body: `{"patronGroupId":"` + groupID + `","conditionId":"` + conditionID + `","value":-1}`, status: 422,
			want: `{"errors":[{"message":"Must be blank or an integer from 0 to 999999","type":"1","code":"-1",` +
				`"parameters":[{"key":"value","value":"-1"}]}]}`,
		},
		"a block without a message": {
			path: "/patron-block-conditions", body: `{"name":"n","blockRequests":true}`, status: 422,
			want: "Message to be displayed is a required field",
		},
		"a group that is not there": {
			path: "/users", body: `{"patronGroup":"` + missing + `"}`, status: 422, want: "does not exist in usergroup.id",
		},
	}
	before := a.everything(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { wantRefusal(t, a.do(http.MethodPost, tt.path, tt.body), tt.status, tt.want) })
	}
	if after := a.everything(t); after != before {
		t.Errorf("something was written: before %s, after %s", before, after)
	}
}

// everything is all records of all types.
func (a recordAPI) everything(t *testing.T) string {
	t.Helper()
	var sb strings.Builder
	for _, typ := range records.Types() {
		sb.WriteString(a.must(t, http.MethodGet, typ.Path+"?limit=1000", "", http.StatusOK).Body.String())
	}
	return sb.String()
}

func TestRecordRoutes_RefuseABadUpdate(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	a.fill(t)
	a.must(t, http.MethodPost, "/item-storage/items",
		strings.NewReplacer(itemID, groupID, `b\\\"1`, "other").Replace(samples()["/item-storage/items"]), http.StatusCreated)
	const item = "/item-storage/items/" + itemID
	tests := map[string]struct {
		method, path, body string
		status             int
		want               string
	}{
		"no _version": {
			method: "PUT", path: item, body: samples()["/item-storage/items"], status: 409,
			want: "Stored _version is 1, _version of request is absent",
		},
		"an old _version": {
			method: "PUT", path: item, body: itemWith(`"_version":0`), status: 409,
			want: "Stored _version is 1, _version of request is 0",
		},
		"_version as a word": {
			method: "PUT", path: item, body: itemWith(`"_version":"one"`), status: 422, want: "_version must be of type integer",
		},
		"another id than the path's": {
			method: "PUT", path: item, body: strings.Replace(itemWith(`"_version":1`), itemID, userID, 1), status: 422,
			want: "id in the body must be the id in the path",
		},
		"a barcode that is taken": {
			method: "PUT", path: item, body: strings.Replace(itemWith(`"_version":1`), `b\\\"1`, "OTHER", 1), status: 422,
			want: "barcode value already exists in table item: OTHER",
		},
		"a record that is not there": {
			method: "PUT", path: "/users/" + loanID, body: `{}`, status: 404,
			want: "Not found: there is no user with id " + loanID,
		},
		"no id in the path": {
			method: "PUT", path: "/users/jane", body: `{}`, status: 400, want: `\"jane\" in the path is no UUID`,
		},
		"SQL in the path": {
			method: "GET", path: "/users/1'%20or%20true--", body: ``, status: 400, want: "is no UUID",
		},
		"NUL in the path": {method: "GET", path: "/users/%00", body: ``, status: 400, want: "is no UUID"},
		"a UUID in other clothes": {
			method: "DELETE", path: "/users/%7B" + userID + "%7D", body: ``, status: 400, want: "is no UUID",
		},
		"deleting a group with users": {
			method: "DELETE", path: "/groups/" + groupID, body: ``, status: 422,
			want: "Cannot delete usergroup.id = " + groupID + " because id is still referenced from table users. The user " +
				userID + " names it in patronGroup.",
		},
		"deleting a campus in use": {
			method: "DELETE", path: "/location-units/campuses/" + campusID, body: ``, status: 422,
			want: "still referenced from table loclibrary.",
		},
		"deleting holdings with items": {
			method: "DELETE", path: "/holdings-storage/holdings/" + holdingsID, body: ``, status: 422,
			want: "still referenced from table item.",
		},
		"a method that is not there": {
			method: "PATCH", path: item, body: `{}`, status: 405, want: "does not take the method PATCH, allowed are ",
		},
		"deleting all users": {method: "DELETE", path: "/users", body: ``, status: 400, want: "which users to delete"},
		"deleting all groups": {
			method: "DELETE", path: "/groups", body: ``, status: 405, want: "does not take the method DELETE, allowed are ",
		},
	}
	before := a.everything(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			wantRefusal(t, a.do(tt.method, tt.path, tt.body), tt.status, strings.ReplaceAll(tt.want, `\"`, `"`))
		})
	}
	if after := a.everything(t); after != before {
		t.Errorf("something was written: before %s, after %s", before, after)
	}
}

func TestRecordRoutes_RequireAnInstalledTenant(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	call := func(tenantName string) *httptest.ResponseRecorder {
		return a.call(http.MethodGet, "/users", "", map[string]string{"X-Okapi-Tenant": tenantName})
	}
	wantRefusal(t, call("unknown"), http.StatusNotFound, "Unknown tenant")
	wantRefusal(t, call(""), http.StatusBadRequest, "Tenant must be set")
	wantRefusal(t, call("x;drop"), http.StatusBadRequest, "X-Okapi-Tenant")
}
