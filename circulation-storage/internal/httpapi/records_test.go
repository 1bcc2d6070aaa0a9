package httpapi_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/okapi"
)

// recordAPI is all record endpoints, on PostgreSQL, as one tenant sees them.
type recordAPI struct {
	api
	tenant okapi.Tenant
}

func newRecordAPI(t *testing.T) recordAPI {
	t.Helper()
	db, id := pgtest.New(t)
	return recordAPI{newAPI(t, httpapi.RecordRoutes(postgres.NewRecordStore(db, func() {}))), id}
}

const actingUser = "00000000-0000-4000-8000-0000000000ff"

func (a recordAPI) do(method, target, body string) *httptest.ResponseRecorder {
	return a.call(method, target, body, map[string]string{
		okapi.TenantHeader: a.tenant.String(), okapi.UserIDHeader: actingUser, "Content-Type": "application/json",
	})
}

func (a recordAPI) must(t *testing.T, method, target, body string, status int) *httptest.ResponseRecorder {
	t.Helper()
	w := a.do(method, target, body)
	if w.Code != status {
		t.Fatalf("%s %s %.200s: %d %s, want %d", method, target, body, w.Code, w.Body, status)
	}
	return w
}

// fill writes one record of each type.
func (a recordAPI) fill(t *testing.T) {
	t.Helper()
	for _, typ := range records.Types() {
		status := http.StatusCreated
		if typ.Path == "/settings/entries" {
			status = http.StatusNoContent
		}
		a.must(t, http.MethodPost, typ.Path, samples()[typ.Path], status)
	}
}

func parseJSON(t *testing.T, doc string) (v map[string]any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(doc))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%q: %v", doc, err)
	}
	return v
}

// lost returns the first path at which got lacks what was sent, "" when nothing is
// lost. Null is absent; numbers are compared by value.
func lost(sent, got any, path string) string {
	switch sent := sent.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return path
		}
		for key, value := range sent {
			if value == nil {
				continue
			}
			if at := lost(value, object[key], path+"."+key); at != "" {
				return at
			}
		}
		return ""
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(sent) {
			return path
		}
		for i := range sent {
			if at := lost(sent[i], list[i], fmt.Sprintf("%s[%d]", path, i)); at != "" {
				return at
			}
		}
		return ""
	case json.Number:
		want, _ := new(big.Rat).SetString(sent.String())
		number, _ := got.(json.Number)
		if have, ok := new(big.Rat).SetString(number.String()); !ok || have.Cmp(want) != 0 {
			return path
		}
		return ""
	}
	if sent != got {
		return path
	}
	return ""
}

func wantWhole(t *testing.T, sent, got string) {
	t.Helper()
	want := parseJSON(t, sent)
	delete(want, "metadata") // the server's
	if at := lost(want, parseJSON(t, got), "$"); at != "" {
		t.Errorf("%s was lost or changed: sent %s, got %s", at, sent, got)
	}
}

func TestRecordRoutes_KeepEveryType(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	types := records.Types()
	for _, typ := range types {
		doc, ok := samples()[typ.Path]
		if !ok {
			t.Fatalf("%s has no sample", typ.Path)
		}
		one := typ.Path + "/" + parseJSON(t, doc)["id"].(string)
		a.must(t, http.MethodGet, one, "", http.StatusNotFound)
		w := a.do(http.MethodPost, typ.Path, doc)
		if got := w.Header().Get("Location"); got != one {
			t.Fatalf("POST %s: %d %s, Location is %q, want %q", typ.Path, w.Code, w.Body, got, one)
		}
		if w.Code == http.StatusCreated {
			wantWhole(t, doc, w.Body.String())
		}
		stored := a.must(t, http.MethodGet, one, "", http.StatusOK).Body.String()
		wantWhole(t, doc, stored)
		if got := parseJSON(t, stored)["metadata"].(map[string]any)["createdByUserId"]; got != actingUser {
			t.Errorf("%s: createdByUserId is %v, want %s", typ.Path, got, actingUser)
		}
		a.updateOne(t, one, stored)
		a.listOne(t, typ, one)
	}
	slices.Reverse(types)
	for _, typ := range types {
		one := typ.Path + "/" + parseJSON(t, samples()[typ.Path])["id"].(string)
		a.must(t, http.MethodDelete, one, "", http.StatusNoContent)
		a.must(t, http.MethodDelete, one, "", http.StatusNotFound)
		a.must(t, http.MethodGet, one, "", http.StatusNotFound)
	}
}

// updateOne sends what was read, with one field more.
func (a recordAPI) updateOne(t *testing.T, one, stored string) {
	t.Helper()
	r := parseJSON(t, stored)
	r["ours2"] = "new"
	doc, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	a.must(t, http.MethodPut, one, string(doc), http.StatusNoContent)
	delete(r, "_version")
	doc, _ = json.Marshal(r)
	wantWhole(t, string(doc), a.must(t, http.MethodGet, one, "", http.StatusOK).Body.String())
}

func (a recordAPI) listOne(t *testing.T, typ records.Type, one string) {
	t.Helper()
	id := one[len(typ.Path)+1:]
	page := parseJSON(t, a.must(t, http.MethodGet, typ.Path+"?query="+escaped(`id=="`+id+`"`), "",
		http.StatusOK).Body.String())
	list, ok := page[typ.Collection].([]any)
	if !ok || len(list) != 1 {
		t.Fatalf("%s: got %v, want one record", typ.Path, page)
	}
	total := page["totalRecords"]
	if typ.Path == "/settings/entries" {
		total = page["resultInfo"].(map[string]any)["totalRecords"]
	}
	if total != json.Number("1") {
		t.Errorf("%s: totalRecords is %v, want 1", typ.Path, total)
	}
}

func TestRecordRoutes_AnswerAnEmptyCollection(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	for target, want := range map[string]string{
		"/users":                   `{"totalRecords":0,"users":[]}`,
		"/users?totalRecords=none": `{"users":[]}`,
		"/users?query=&limit=0":    `{"totalRecords":0,"users":[]}`,
		"/users?totalRecords=auto&limit=2147483647": `{"totalRecords":0,"users":[]}`,
		"/settings/entries":                         `{"items":[],"resultInfo":{"diagnostics":[],"totalRecords":0}}`,
	} {
		if got := strings.TrimSpace(a.must(t, http.MethodGet, target, "", http.StatusOK).Body.String()); got != want {
			t.Errorf("%s: got %s, want %s", target, got, want)
		}
	}
}

func TestRecordRoutes_AnswerTenByDefault(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	for i := range 12 {
		a.must(t, http.MethodPost, "/material-types", fmt.Sprintf(`{"name":"type %d"}`, i), http.StatusCreated)
	}
	for target, want := range map[string]int{"": 10, "?limit=11": 11, "?offset=10": 2, "?query=name==%22type%201*%22": 3} {
		page := parseJSON(t, a.must(t, http.MethodGet, "/material-types"+target, "", http.StatusOK).Body.String())
		if got := len(page["mtypes"].([]any)); got != want {
			t.Errorf("%q: got %d records, want %d", target, got, want)
		}
	}
}

// A PUT with an unknown id creates what it creates in FOLIO.
func TestRecordRoutes_CreateByPut(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	created := []string{
		"/loan-storage/loans", "/request-storage/requests", "/holdings-storage/holdings", "/staff-slips-storage/staff-slips",
		"/loan-policy-storage/loan-policies", "/request-policy-storage/request-policies",
		"/fixed-due-date-schedule-storage/fixed-due-date-schedules",
	}
	for _, typ := range records.Types() {
		doc := samples()[typ.Path]
		one := typ.Path + "/" + parseJSON(t, doc)["id"].(string)
		if !slices.Contains(created, typ.Path) {
			a.must(t, http.MethodPut, one, doc, http.StatusNotFound)
			a.do(http.MethodPost, typ.Path, doc) // others name it
			continue
		}
		a.must(t, http.MethodPut, one, doc, http.StatusNoContent)
		wantWhole(t, doc, a.must(t, http.MethodGet, one, "", http.StatusOK).Body.String())
	}
}

func TestRecordRoutes_MakeNewStaffSlipsActive(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	const slips = "/staff-slips-storage/staff-slips"
	for body, want := range map[string]bool{
		`{"name":"a","template":"t"}`: true, `{"name":"b","template":"t","active":false}`: false,
	} {
		stored := parseJSON(t, a.must(t, http.MethodPost, slips, body, http.StatusCreated).Body.String())
		if got := stored["active"]; got != want {
			t.Errorf("%s: active is %v, want %v", body, got, want)
		}
	}
}

func TestRecordRoutes_AnswerEmptyLists(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	for _, typ := range records.Types() {
		if len(typ.Lists) == 0 {
			a.do(http.MethodPost, typ.Path, samples()[typ.Path]) // others name it
			continue
		}
		doc := parseJSON(t, samples()[typ.Path])
		for _, list := range typ.Lists {
			delete(doc, list)
		}
		body, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		stored := parseJSON(t, a.must(t, http.MethodPost, typ.Path, string(body), http.StatusCreated).Body.String())
		for _, list := range typ.Lists {
			if got, ok := stored[list].([]any); !ok || len(got) > 0 {
				t.Errorf("%s of a %s is %v, want an empty list", list, typ.Name, stored[list])
			}
		}
	}
	const policies = "/patron-notice-policy-storage/patron-notice-policies"
	policy := a.must(t, http.MethodPost, policies, `{"name":"n"}`, http.StatusCreated)
	wantWhole(t, `{"loanNotices":[],"requestNotices":[],"feeFineNotices":[]}`, policy.Body.String())
}

// The forms of FOLIO's settings send numbers and booleans as texts, which FOLIO reads as it stores them.
func TestRecordRoutes_ReadTheTextsOfForms(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	tests := []struct{ path, sent, refused, want string }{
		{
			path: "/overdue-fines-policies", refused: `"maxOverdueFine":"01"`,
			sent: `"overdueFine":{"quantity":"5.25","intervalId":"day"},"countClosed":"false","maxOverdueFine":"0.50"`,
			want: `"overdueFine":{"quantity":5.25,"intervalId":"day"},"countClosed":false,"maxOverdueFine":0.5`,
		},
		{
			path: "/loan-policy-storage/loan-policies", refused: `"loanable":"yes","renewable":true`,
			sent: `"loanable":"true","renewable":"false","loansPolicy":{"itemLimit":"7"},"renewalsPolicy":{"numberAllowed":""}`,
			want: `"loanable":true,"loansPolicy":{"itemLimit":7},"renewalsPolicy":{}`,
		},
		{
			path: "/groups", refused: `"group":"g","expirationOffsetInDays":"1.5"`,
			sent: `"group":"g","expirationOffsetInDays":"365"`, want: `"group":"g","expirationOffsetInDays":365`,
		},
		{
			path: "/users", refused: `"expirationDate":"17"`, sent: `"active":true,"expirationDate":"","enrollmentDate":""`,
			want: `"active":true`,
		},
	}
	for _, tt := range tests {
		a.must(t, http.MethodPost, tt.path, `{"name":"n",`+tt.refused+`}`, http.StatusUnprocessableEntity)
		stored := a.must(t, http.MethodPost, tt.path, `{"name":"n",`+tt.sent+`}`, http.StatusCreated)
		wantWhole(t, `{`+tt.want+`}`, stored.Body.String())
	}
}

func TestRecordRoutes_AcceptAnIDInUpperCase(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	a.must(t, http.MethodPost, "/loan-policy-storage/loan-policies", samples()["/loan-policy-storage/loan-policies"],
		http.StatusCreated)
	a.must(t, http.MethodGet, "/loan-policy-storage/loan-policies/"+strings.ToUpper(policyID), "", http.StatusOK)
}
