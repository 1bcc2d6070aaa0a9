package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

const patronID = "77477611-ab44-4a36-9d41-2f6ffb9e6e41"

const userIDPattern = `^[a-fA-F0-9]{8}-[a-fA-F0-9]{4}-[1-5][a-fA-F0-9]{3}-[89abAB][a-fA-F0-9]{3}-[a-fA-F0-9]{12}$`

// countLocks is how many rows the tenant's table has.
func (a *lockAPI) countLocks(t *testing.T) int {
	t.Helper()
	_, total, err := postgres.NewLockStore(a.db).List(okapi.WithTenant(context.WithoutCancel(t.Context()), a.tenant),
		lock.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return total
}

func TestCheckoutLockRoutes_DescribeABadRequest(t *testing.T) {
	t.Parallel()
	a := newLockAPI(t)
	with := func(more string) string { return `{"userId":"` + patronID + `",` + more + `}` }
	tests := map[string]struct {
		body   string
		status int
		want   []string // parts of the answer
	}{
		"no body":       {body: "", status: 400, want: []string{"empty"}},
		"no JSON":       {body: "userId=1", status: 400, want: []string{"not valid JSON"}},
		"JSON cut off":  {body: `{"userId":`, status: 400, want: []string{"not valid JSON"}},
		"two documents": {body: with(`"ttlMs":1`) + `{}`, status: 400, want: []string{"not valid JSON"}},
		"a list": {
			body: `[]`, status: 400, want: []string{"the body must be of type object, not array"},
		},
		"a string": {body: `"x"`, status: 400, want: []string{"the body must be of type object"}},
		"deep nesting": {
			body: with(`"a":` + strings.Repeat("[", 11_000) + strings.Repeat("]", 11_000)), status: 400,
			want: []string{"not valid JSON"},
		},
		"a huge body": {
			body: with(`"x":"` + strings.Repeat("x", bodyLimit) + `"`), status: 413, want: []string{"at most 65536 bytes"},
		},
		"null":           {body: `null`, status: 422, want: []string{`"userId"`}},
		"no userId":      {body: `{"ttlMs":1000}`, status: 422, want: []string{`"userId"`}},
		"null as userId": {body: `{"userId":null}`, status: 422, want: []string{`"userId"`}},
		"a number as userId": {
			body: `{"userId":7}`, status: 400, want: []string{"userId must be of type string, not number"},
		},
		"a userId without version": {
			body: `{"userId":"77477611-ab44-0a36-9d41-2f6ffb9e6e41"}`, status: 422, want: []string{`"userId"`, "must match"},
		},
		"the nil UUID as userId": {
			body: `{"userId":"00000000-0000-0000-0000-000000000000"}`, status: 422, want: []string{`"userId"`},
		},
		"a userId with a line feed": {body: `{"userId":"` + patronID + `\n"}`, status: 422, want: []string{`"userId"`}},
		"a userId with a NUL":       {body: `{"userId":"\u0000"}`, status: 422, want: []string{`"userId"`}},
		"a text as ttlMs": {
			body: with(`"ttlMs":"5"`), status: 400, want: []string{"ttlMs must be of type integer, not string"},
		},
		"a fraction as ttlMs": {
			body: with(`"ttlMs":1.5`), status: 400, want: []string{"ttlMs must be of type integer, not number 1.5"},
		},
		"an exponent as ttlMs": {
			body: with(`"ttlMs":1e3`), status: 400, want: []string{"ttlMs must be of type integer, not number 1e3"},
		},
		"a boolean as ttlMs": {
			body: with(`"ttlMs":true`), status: 400, want: []string{"ttlMs must be of type integer, not bool"},
		},
		"an object as ttlMs": {
			body: with(`"ttlMs":{}`), status: 400, want: []string{"ttlMs must be of type integer, not object"},
		},
		"NaN as ttlMs": {body: with(`"ttlMs":NaN`), status: 400, want: []string{"not valid JSON"}},
		"a ttlMs that fits no integer": {
			body: with(`"ttlMs":99999999999999999999`), status: 400, want: []string{"ttlMs", "99999999999999999999"},
		},
		"a negative ttlMs": {
			body: with(`"ttlMs":-1`), status: 422, want: []string{"ttlMs must be from 0 to 600000", `"value":"-1"`},
		},
		"a ttlMs above the limit": {
			body: with(`"ttlMs":600001`), status: 422, want: []string{"ttlMs must be from 0 to 600000", `"value":"600001"`},
		},
		"the largest integer as ttlMs": {
			body: with(`"ttlMs":9223372036854775807`), status: 422, want: []string{"ttlMs must be from 0 to 600000"},
		},
		"a ttlMs that wraps to 3 s": {
			body: with(`"ttlMs":18446744076710`), status: 422, want: []string{"ttlMs must be from 0 to 600000"},
		},
		"a waitMs that wraps to 1 ms": {
			body: with(`"waitMs":18446744073710`), status: 422, want: []string{"waitMs must be from 0 to 10000"},
		},
		"a negative waitMs": {
			body: with(`"waitMs":-1`), status: 422, want: []string{"waitMs must be from 0 to 10000", `"value":"-1"`},
		},
		"a waitMs above the limit": {
			body: with(`"waitMs":10001`), status: 422, want: []string{"waitMs must be from 0 to 10000"},
		},
		"a text as waitMs": {
			body: with(`"waitMs":"500"`), status: 400, want: []string{"waitMs must be of type integer, not string"},
		},
		"a requestId that is none": {
			body: with(`"requestId":"abc"`), status: 422, want: []string{"requestId must be a UUID", `"value":"abc"`},
		},
		"a requestId in braces": {
			body: with(`"requestId":"{` + patronID + `}"`), status: 422, want: []string{"requestId must be a UUID"},
		},
		"the nil UUID as requestId": {
			body: with(`"requestId":"00000000-0000-0000-0000-000000000000"`), status: 422, want: []string{"requestId"},
		},
		"a number as requestId": {
			body: with(`"requestId":5`), status: 400, want: []string{"requestId must be of type string"},
		},
		"everything wrong": {
			body: `{"userId":"x","ttlMs":-5,"waitMs":-6,"requestId":"y"}`, status: 422,
			want: []string{`"userId"`, `"ttlMs"`, `"waitMs"`, `"requestId"`},
		},
	}
	for name, tt := range tests {
		w := a.do(http.MethodPost, "", tt.body)
		for _, want := range tt.want {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %q is missing in %s", name, want, w.Body)
			}
		}
		wantStatus(t, name, w, tt.status)
	}
	if n := a.countLocks(t); n != 0 {
		t.Errorf("bad requests wrote %d locks", n)
	}
}

func TestCheckoutLockRoutes_AnswerABadPatronAsFolio(t *testing.T) {
	t.Parallel()
	a := newLockAPI(t)
	w := a.do(http.MethodPost, "", `{"userId":"not-an-id","ttlMs":1000}`)
	got := decode[web.Errors](t, w)
	if w.Code != 422 || len(got.Errors) != 1 {
		t.Fatalf("got %d %s, want 422 with one error", w.Code, w.Body)
	}
	e := got.Errors[0]
	if e.Message != `must match "`+userIDPattern+`"` || e.Type != "1" ||
		e.Code != "jakarta.validation.constraints.Pattern.message" {
		t.Errorf("the error is %+v", e)
	}
	if len(e.Parameters) != 1 || e.Parameters[0].Key != "userId" || *e.Parameters[0].Value != "not-an-id" {
		t.Errorf("its parameters are %+v", e.Parameters)
	}
}

func TestCheckoutLockRoutes_RefuseBadParameters(t *testing.T) {
	t.Parallel()
	a := newLockAPI(t)
	for _, query := range []string{
		"?userId=", "?userId=abc", "?userId=null", "?userId=" + patronID + "x",
		"?holder=", "?holder=" + strings.Repeat("a", 101), "?holder=a%00", "?holder=%ff", "?holder=%0a",
		"?outdated=", "?outdated=1", "?outdated=TRUE", "?outdated=yes", "?outdated=null",
		"?offset=-1", "?offset=x", "?offset=", "?offset=1.5", "?offset=1e3", "?offset=2147483648",
		"?offset=99999999999999999999",
		"?limit=-1", "?limit=x", "?limit=", "?limit=1001", "?limit=99999999999999999999", "?limit=0x10",
	} {
		w := a.do(http.MethodGet, query, "")
		if w.Code != 422 || !strings.HasPrefix(w.Body.String(), "Invalid Parameters") ||
			!strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
			t.Errorf("%s: %d %s, want 422 with a text on Invalid Parameters", query, w.Code, w.Body)
		}
		if name := query[1:strings.Index(query, "=")]; !strings.Contains(w.Body.String(), name) {
			t.Errorf("%s: %s does not name %s", query, w.Body, name)
		}
	}
	for _, id := range []string{
		"abcd", "00000000-0000-0000-0000-000000000000", patronID + "x", "%00", "%0a" + patronID, "{" + patronID + "}",
		strings.Repeat("a", 5000),
	} {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			wantText(t, method+" "+id, a.do(method, "/"+id, ""), 400, "Invalid lock id")
		}
	}
}

func TestCheckoutLockRoutes_RefuseOtherRequests(t *testing.T) {
	t.Parallel()
	a := newLockAPI(t)
	body := `{"userId":"` + patronID + `"}`
	for what, tt := range map[string]struct {
		method, path string
		headers      map[string]string
		status       int
	}{
		"no tenant": {
			method: http.MethodPost, path: "", headers: map[string]string{okapi.TenantHeader: ""}, status: 400,
		},
		"a tenant that is none": {
			method: http.MethodPost, path: "", headers: map[string]string{okapi.TenantHeader: "Ä"}, status: 400,
		},
		"a tenant never installed": {
			method: http.MethodPost, path: "", headers: map[string]string{okapi.TenantHeader: "unknown"}, status: 404,
		},
		"a body of another kind": {
			method: http.MethodPost, path: "", headers: map[string]string{"Content-Type": "text/plain"}, status: 400,
		},
		"PUT":           {method: http.MethodPut, path: "/" + patronID, headers: nil, status: 405},
		"DELETE of all": {method: http.MethodDelete, path: "", headers: nil, status: 400},
		"a path below":  {method: http.MethodGet, path: "/" + patronID + "/x", headers: nil, status: 404},
	} {
		wantStatus(t, what, a.do(tt.method, tt.path, body, tt.headers), tt.status)
	}
	if n := a.countLocks(t); n != 0 {
		t.Errorf("bad requests wrote %d locks", n)
	}
}

func TestCheckoutLockRoutes_ReadSQLAsText(t *testing.T) {
	t.Parallel()
	a := newLockAPI(t)
	a.mustPost(t, uuid.New(), `,"ttlMs":60000`)
	for _, sql := range []string{
		`'; DROP TABLE check_out_lock; --`,
		`' OR '1'='1`,
		patronID + `' OR 'a'='a`,
		`0 UNION SELECT 1`,
		`$1`, `\`, `"`, `%`,
	} {
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sql)
		for what, got := range map[string]int{
			"userId":    a.do(http.MethodPost, "", `{"userId":"`+quoted+`"}`).Code,
			"requestId": a.do(http.MethodPost, "", `{"userId":"`+patronID+`","requestId":"`+quoted+`"}`).Code,
			"ttlMs":     a.do(http.MethodPost, "", `{"userId":"`+patronID+`","ttlMs":"`+quoted+`"}`).Code,
			"waitMs":    a.do(http.MethodPost, "", `{"userId":"`+patronID+`","waitMs":"`+quoted+`"}`).Code,
			"id":        a.do(http.MethodGet, "/"+escaped(sql), "").Code,
			"DELETE id": a.do(http.MethodDelete, "/"+escaped(sql), "").Code,
			"filter":    a.do(http.MethodGet, "?userId="+escaped(sql), "").Code,
			"outdated":  a.do(http.MethodGet, "?outdated="+escaped(sql), "").Code,
			"offset":    a.do(http.MethodGet, "?offset="+escaped(sql), "").Code,
			"limit":     a.do(http.MethodGet, "?limit="+escaped(sql), "").Code,
			"tenant":    a.do(http.MethodGet, "", "", map[string]string{okapi.TenantHeader: sql}).Code,
		} {
			if got < 400 || got > 499 {
				t.Errorf("%s %s: %d, want 4xx", what, sql, got)
			}
		}
		w := a.do(http.MethodPost, "", `{"userId":"`+patronID+`","ttlMs":0}`, map[string]string{schemas.HolderHeader: sql})
		if got := decode[schemas.CheckoutLock](t, w); w.Code != 201 || got.Holder != sql {
			t.Errorf("holder %s: %d, stored as %s", sql, w.Code, got.Holder)
		}
	}
	if n := a.countLocks(t); n != 2 {
		t.Errorf("%d locks are there, want 2", n)
	}
}

func TestCheckoutLockRoutes_IgnoreABadHolder(t *testing.T) {
	t.Parallel()
	a := newLockAPI(t)
	for holder, want := range map[string]string{
		"":                       "",
		strings.Repeat("ü", 100): strings.Repeat("ü", 100),
		strings.Repeat("ü", 101): "",
		"a\x00b":                 "",
		"a\tb":                   "",
		"a\nb":                   "",
		"\xff":                   "",
		"a\u202eb":               "",
	} {
		w := a.do(http.MethodPost, "", `{"userId":"`+uuid.NewString()+`"}`, map[string]string{schemas.HolderHeader: holder})
		if got := decode[schemas.CheckoutLock](t, w); w.Code != 201 || got.Holder != want {
			t.Errorf("%q: %d, holder %q, want %q", holder, w.Code, got.Holder, want)
		}
	}
}
