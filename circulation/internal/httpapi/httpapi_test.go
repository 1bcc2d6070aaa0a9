package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/config"
	"checkoutlock/schemas/fault"
)

const shownLoan = `{"borrower":{"barcode":"569"},"feesAndFines":{"amountRemainingToPay":0},"id":"` + loanID +
	`","item":{"id":"i","contributors":[],"status":{"name":""}},"itemId":"i","userId":"u"}`

func TestCheckOut_AnswersTheLoan(t *testing.T) {
	t.Parallel()
	b := &backend{}
	status, header, body := b.send(t, "POST", "/circulation/check-out-by-barcode",
		`{"itemBarcode":"036","userBarcode":"569","servicePointId":"s","unknown":1}`)
	if status != http.StatusCreated || header.Get("Location") != "/circulation/loans/"+loanID || body != shownLoan {
		t.Errorf("got %d, Location %q\n%s\nwant 201 and\n%s", status, header.Get("Location"), body, shownLoan)
	}
	if b.asked.ItemBarcode != "036" || b.asked.UserBarcode != "569" || b.asked.ServicePointID != "s" {
		t.Errorf("asked for %+v", b.asked)
	}
}

func TestCheckIn_AnswersWithAndWithoutALoan(t *testing.T) {
	t.Parallel()
	const (
		item = `"item":{"id":"i","contributors":[],"status":{"name":"Available"}},` +
			`"staffSlipContext":{"item":{"status":"Available","allContributors":"","yearCaption":"","datesOfPublication":"",` +
			`"editions":"","physicalDescriptions":"","seriesStatements":"","administrativeNotes":"",` +
			`"lastCheckedInDateTime":"now"},"currentDateTime":"…"},"inHouseUse":`
		gone = `{"feesAndFines":{"amountRemainingToPay":0},"id":"` + loanID +
			`","item":{"id":"i","contributors":[],"status":{"name":"Available"}},"itemId":"i","userId":"u"}`
		method = "POST"
		path   = "/circulation/check-in-by-barcode"
	)
	returned := library.Item{
		ID: "i", Status: library.Status{Name: "Available"}, LastCheckIn: map[string]any{"dateTime": "now"},
	}
	tests := map[string]struct {
		b    *backend
		want string
	}{
		"on loan": {
			&backend{in: checkin.Returned{Loan: json.RawMessage(storedLoan), Copy: library.Copy{Item: returned}}},
			`{"loan":` + shownLoan + `,` + item + `false}`,
		},
		"not on loan": {
			&backend{in: checkin.Returned{Copy: library.Copy{Item: returned}, InHouseUse: true}}, `{` + item + `true}`,
		},
		"storage failed after the commit": {
			&backend{
				in:      checkin.Returned{Loan: json.RawMessage(storedLoan), Copy: library.Copy{Item: returned}},
				noUsers: fault.New(fault.Unavailable, "down"),
			},
			`{"loan":` + gone + `,` + item + `false}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const sent = `{"itemBarcode":"036","servicePointId":"s","checkInDate":"d"}`
			status, _, body := tt.b.send(t, method, path, sent)
			body = regexp.MustCompile(`("currentDateTime":)"20[^"]+Z"`).ReplaceAllString(body, `$1"…"`)
			if status != http.StatusOK || body != tt.want {
				t.Errorf("got %d\n%s\nwant 200\n%s", status, body, tt.want)
			}
			if tt.b.returned != (checkin.Request{ItemBarcode: "036", ServicePointID: "s", CheckInDate: "d", Sent: sent}) {
				t.Errorf("asked for %+v", tt.b.returned)
			}
		})
	}
}

func TestRoutes_AcceptJSONOfAnyContentType(t *testing.T) {
	t.Parallel()
	for _, contentType := range []string{
		"", "text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "*/*;;",
	} {
		b := &backend{extra: http.Header{"Content-Type": {contentType}}}
		status, _, body := b.send(t, "POST", "/circulation/check-out-by-barcode", `{"itemBarcode":"1","userBarcode":"569"}`)
		if status != http.StatusCreated || b.asked.UserBarcode != "569" {
			t.Errorf("%q: got %d %s", contentType, status, body)
		}
		if status, _, body = b.send(t, "POST", "/circulation/check-out-by-barcode",
			`barcode=1`); status != http.StatusBadRequest {
			t.Errorf("%q: got %d %s for what is no JSON", contentType, status, body)
		}
	}
}

func TestLoans(t *testing.T) {
	t.Parallel()
	b := &backend{}
	status, _, body := b.send(t, "GET", "/circulation/loans?query=userId%3D%3D%22u%22&offset=3&limit=7", "")
	if want := `{"loans":[` + shownLoan + `],"totalRecords":17}`; status != http.StatusOK || body != want {
		t.Errorf("got %d %s, want %s", status, body, want)
	}
	if b.query != `userId=="u"` || b.offset != 3 || b.limit != 7 {
		t.Errorf("asked for %q from %d, %d of them", b.query, b.offset, b.limit)
	}
	if b.send(t, "GET", "/circulation/loans", ""); b.query != "" || b.offset != 0 || b.limit != 10 {
		t.Errorf("asked for %q from %d, %d of them, want FOLIO's defaults", b.query, b.offset, b.limit)
	}
	for _, id := range []string{loanID, strings.ToUpper(loanID)} {
		if status, _, body = b.send(t, "GET", "/circulation/loans/"+id, ""); status != http.StatusOK || body != shownLoan {
			t.Errorf("got %d %s, want %s", status, body, shownLoan)
		}
	}
}

func TestRoutes_DescribeABadRequest(t *testing.T) {
	t.Parallel()
	const other = "11111111-1ab6-4ac2-afdf-8b2df0434378"
	tests := map[string]struct {
		method, path, body string
		status             int
		want               string // part of the answer
	}{
		"check-out, no JSON": {
			method: "POST", path: "/circulation/check-out-by-barcode", body: `{`, status: 400, want: "not valid JSON",
		},
		"check-out, wrong type": {
			method: "POST", path: "/circulation/check-out-by-barcode", body: `{"itemBarcode":5}`, status: 400,
			want: "itemBarcode must be of type string, not number",
		},
		"check-out, bad loan date": {
			method: "POST", path: "/circulation/check-out-by-barcode", body: `{"loanDate":"soon"}`, status: 400,
			want: `loanDate must be a date and time`,
		},
		"check-out, no loan date": {
			method: "POST", path: "/circulation/check-out-by-barcode", body: `{"loanDate":5}`, status: 400,
			want: "loanDate must be of type string, not number",
		},
		"check-out, bad due date": {
			method: "POST", path: "/circulation/check-out-by-barcode",
			body: `{"overrideBlocks":{"itemNotLoanableBlock":{"dueDate":"late"}}}`, status: 400,
			want: `overrideBlocks.itemNotLoanableBlock.dueDate must be a date and time`,
		},
		"check-out, no object": {
			method: "POST", path: "/circulation/check-out-by-barcode", body: `[]`, status: 400, want: "must be of type object",
		},
		"check-out, nothing": {
			method: "POST", path: "/circulation/check-out-by-barcode", body: ``, status: 400, want: "The body is empty",
		},
		"check-out, huge": {
			method: "POST", path: "/circulation/check-out-by-barcode",
			body: `{"itemBarcode":"` + strings.Repeat("1", 2000) + `"}`, status: 413, want: "at most 1000 bytes",
		},
		"check-in, wrong type": {
			method: "POST", path: "/circulation/check-in-by-barcode", body: `{"checkInDate":1}`, status: 400,
			want: "checkInDate must be of type string",
		},
		"loans, negative offset": {
			method: "GET", path: "/circulation/loans?offset=-1", body: "", status: 400, want: "allowed are integers from 0",
		},
		"loans, huge limit": {
			method: "GET", path: "/circulation/loans?limit=99999999999", body: "", status: 400,
			want: "allowed are integers from 0",
		},
		"loans, limit in words": {
			method: "GET", path: "/circulation/loans?limit=ten", body: "", status: 400, want: "ten",
		},
		"loan, an id that is none": {
			method: "GET", path: "/circulation/loans/1%27%20OR%201=1", body: "", status: 400, want: "must be a UUID",
		},
		"loan, unknown": {
			method: "GET", path: "/circulation/loans/" + other, body: "", status: 404,
			want: "There is no loan with the id " + other,
		},
		"rules, no JSON": {
			method: "PUT", path: "/circulation/rules", body: `priority: t`, status: 422,
			want: `{"message":"The body is not valid JSON`,
		},
		"rules, nothing": {
			method: "PUT", path: "/circulation/rules", body: ``, status: 422, want: `{"message":"The body is empty`,
		},
		"rules, no text": {
			method: "PUT", path: "/circulation/rules", body: `{}`, status: 422,
			want: `{"message":"The body must be a JSON object with the string rulesAsText"}`,
		},
		"rules, null": {
			method: "PUT", path: "/circulation/rules", body: `{"rulesAsText":null}`, status: 422, want: `rulesAsText"}`,
		},
		"rules, a number": {
			method: "PUT", path: "/circulation/rules", body: `{"rulesAsText":5}`, status: 422,
			want: `{"message":"rulesAsText must be of type string, not number"}`,
		},
		"rules, huge": {
			method: "PUT", path: "/circulation/rules", body: `{"rulesAsText":"` + strings.Repeat("#", 2000) + `"}`, status: 413,
			want: "at most 1000 bytes",
		},
		"another method":            {method: "DELETE", path: "/circulation/rules", body: ``, status: 405, want: ""},
		"a path that is not served": {method: "GET", path: "/circulation/items", body: ``, status: 404, want: ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, _, body := (&backend{}).send(t, tt.method, tt.path, tt.body)
			if status != tt.status || !strings.Contains(body, tt.want) {
				t.Errorf("got %d %s, want %d with %s", status, body, tt.status, tt.want)
			}
		})
	}
}

func TestRoutes_KeepTheStatusOfFaults(t *testing.T) {
	t.Parallel()
	requests := []struct{ method, path, body string }{
		{method: "POST", path: "/circulation/check-out-by-barcode", body: `{}`},
		{method: "POST", path: "/circulation/check-in-by-barcode", body: `{}`},
		{method: "GET", path: "/circulation/loans", body: ``},
		{method: "GET", path: "/circulation/loans/" + loanID, body: ``},
		{method: "GET", path: "/circulation/rules", body: ``},
		{method: "PUT", path: "/circulation/rules", body: `{"rulesAsText":` + quoted(goodRules) + `}`},
		{method: "GET", path: "/circulation/requests", body: ``},
		{method: "GET", path: "/circulation/settings", body: ``},
		{method: "POST", path: "/circulation/requests/" + loanID + "/move", body: `{"destinationItemId":"` + loanID + `"}`},
	}
	down := fault.New(fault.Unavailable, "down")
	for _, path := range []string{"/circulation/loans", "/circulation/loans/" + loanID} {
		if status, _, answer := (&backend{noUsers: down}).send(t, "GET", path, ""); status != http.StatusServiceUnavailable {
			t.Errorf("%s without users: got %d %s, want %d", path, status, answer, http.StatusServiceUnavailable)
		}
	}
	b := &backend{notStored: down}
	if status, _, answer := b.send(t, "PUT", "/circulation/rules", `{"rulesAsText":`+quoted(goodRules)+`}`); status !=
		http.StatusServiceUnavailable {
		t.Errorf("rules that are not stored: got %d %s, want %d", status, answer, http.StatusServiceUnavailable)
	}
	for _, r := range requests {
		for _, code := range []fault.Code{fault.Unavailable, fault.Conflict, fault.Internal, fault.Timeout} {
			status, header, _ := (&backend{err: fault.New(code, "x")}).send(t, r.method, r.path, r.body)
			if status != fault.Status(code) || header.Get(fault.Header) != string(code) {
				t.Errorf("%s %s: got %d %s, want %d %s", r.method, r.path, status, header.Get(fault.Header), fault.Status(code),
					code)
			}
		}
	}
}

const goodRules = "priority: first-line\nm book: l " + policyID + " r " + requestPolicyID + " n " + noticePolicyID +
	" o o1 i i1\nfallback-policy: l " + policyID + " r " + requestPolicyID + " n " + noticePolicyID + " o o1 i i1\n"

func quoted(s string) string {
	raw, _ := json.Marshal(s) // a string can always be written
	return string(raw)
}

func TestRules_AreStoredWithAWarningForEachUncountedLimit(t *testing.T) {
	t.Parallel()
	_, policies, _ := strings.Cut(goodRules, "m book")
	line, _, _ := strings.Cut(policies, "\n")
	text := strings.Replace(goodRules, "m book", "g adults"+line+"\nm book", 1)
	var logged bytes.Buffer
	log := config.Log{}.New(&logged, "")
	b := &backend{itemLimit: 3, log: log}
	status, header, _ := b.send(t, "PUT", "/circulation/rules", `{"rulesAsText":`+quoted(text)+`}`)
	want := func(line int, rule string) string {
		return fmt.Sprintf("line %d: the item limit 3 of the loan policy %s counts nothing, because %s names neither a "+
			"material type nor a loan type", line, policyID, rule)
	}
	if got := header.Values("X-Rules-Warning"); status != http.StatusNoContent || b.rules != text ||
		!slices.Equal(got, []string{want(2, "the rule"), want(4, "the fallback")}) {
		t.Errorf("got %d with %q, stored %q", status, got, b.rules)
	}
	if line := logged.String(); strings.Count(line, `"level":"WARN"`) != 1 || !strings.Contains(line, `"rules":2`) ||
		!strings.Contains(line, "line 2: ") ||
		!strings.Contains(line, `"policy_id":"`+policyID+`"`) {
		t.Errorf("logged %s, want one warning with the policy", line)
	}

	logged.Reset()
	b = &backend{log: log}
	status, header, _ = b.send(t, "PUT", "/circulation/rules", `{"rulesAsText":`+quoted(text)+`}`)
	if status != http.StatusNoContent || header.Get("X-Rules-Warning") != "" || strings.Contains(logged.String(), "WARN") {
		t.Errorf("without a limit: got %d %v, logged %s", status, header, &logged)
	}
	b = &backend{itemLimit: 3}
	refused := strings.Replace(text, " i i1", "", 1)
	if _, header, _ = b.send(t, "PUT", "/circulation/rules", `{"rulesAsText":`+quoted(refused)+
		`}`); header.Get("X-Rules-Warning") != "" {
		t.Errorf("refused rules have the warning %q", header.Get("X-Rules-Warning"))
	}
}

func TestRules_AreStoredOnlyIfUsable(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text   string
		status int
		want   string
	}{
		"good": {text: goodRules, status: 204, want: ""},
		"a tab": {
			text: "\t" + goodRules, status: 422,
			want: `{"message":"Tabulator character is not allowed, use spaces instead.","line":1,"column":1}`,
		},
		"blank": {
			text: " \n", status: 422, want: `{"message":"Cannot apply blank circulation rules","line":1,"column":1}`,
		},
		"an unknown policy": {
			text: strings.Replace(goodRules, policyID, loanID, 1), status: 422,
			want: `{"message":"The policy l does not exist","line":2,"column":11}`,
		},
		"no request policy": {
			text: strings.Replace(goodRules, requestPolicyID, policyID, 1), status: 422,
			want: `{"message":"The policy r does not exist","line":2,"column":50}`,
		},
		"no notice policy": {
			text: strings.Replace(goodRules, noticePolicyID, policyID, 1), status: 422,
			want: `{"message":"The policy n does not exist","line":2,"column":89}`,
		},
		"no overdue fine policy": {
			text: strings.Replace(goodRules, "o o1", "o o2", 1), status: 422,
			want: `{"message":"The policy o does not exist","line":2,"column":128}`,
		},
		"a missing policy": {
			text: strings.Replace(goodRules, " i i1", "", 1), status: 422,
			want: `{"message":"Must contain one of each policy type, missing type i","line":2,"column":7}`,
		},
		"a line without policies": {
			text: strings.Replace(goodRules, "m book", "m all\n  g x\nm book", 1), status: 422,
			want: `{"message":"Policy missing","line":3,"column":3}`,
		},
		"a policy without id": {
			text: strings.Replace(goodRules, policyID, "mine", 1), status: 422,
			want: `{"message":"The policy l does not exist","line":2,"column":11}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &backend{rules: "old"}
			status, _, body := b.send(t, "PUT", "/circulation/rules", `{"rulesAsText":`+quoted(tt.text)+`}`)
			if status != tt.status || body != tt.want {
				t.Errorf("got %d %s, want %d %s", status, body, tt.status, tt.want)
			}
			stored := "old"
			if tt.status == http.StatusNoContent {
				stored = tt.text
			}
			if b.rules != stored {
				t.Errorf("stored %q, want %q", b.rules, stored)
			}
		})
	}
	if status, _, body := (&backend{rules: "text"}).send(t, "GET", "/circulation/rules", ""); status != 200 ||
		body != `{"id":"1","rulesAsText":"text"}` {
		t.Errorf("got %d %s", status, body)
	}
}
