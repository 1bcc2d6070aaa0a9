package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

const (
	pastPath    = "/check-out-history-storage/check-outs"
	figuresPath = "/check-out-history-storage/figures"
)

func newHistoryAPI(t *testing.T) recordAPI {
	t.Helper()
	db, id := pgtest.New(t)
	return recordAPI{newAPI(t, httpapi.HistoryRoutes(postgres.NewHistoryStore(db, false))), id}
}

// entry is a check-out as circulation reports it; more replaces or adds properties.
func entry(more string) string {
	return fmt.Sprintf(`{"id":%q,"outcome":"refused","tookMs":3%s}`, uuid.NewString(), more)
}

func report(waiting int, entries ...string) string {
	return fmt.Sprintf(`{"checkOuts":[%s],"waiting":%d}`, strings.Join(entries, ","), waiting)
}

func TestHistoryRoutes_ShowReports(t *testing.T) {
	t.Parallel()
	a := newHistoryAPI(t)
	body := report(2, entry(`,"userBarcode":"P-1","reason":"no"`),
		entry(`,"userBarcode":"P-2","waitMs":0,"outcome":"lent"`))
	tell := func() {
		t.Helper()
		w := a.call(http.MethodPost, pastPath, body, map[string]string{
			okapi.TenantHeader: a.tenant.String(), schemas.HolderHeader: "desk 1",
		})
		wantStatus(t, "POST", w, http.StatusNoContent)
	}
	tell()
	page := decode[schemas.PastCheckOuts](t, a.must(t, http.MethodGet, pastPath+"?userBarcode=p-1", "", http.StatusOK))
	if len(page.CheckOuts) != 1 || page.CheckOuts[0].Reason != "no" || page.CheckOuts[0].Instance != "desk 1" ||
		page.CheckOuts[0].WaitMs != nil {
		t.Errorf("got %+v", page)
	}
	var figures schemas.Figures
	for soon := false; !soon; { // a report of waiting check-outs counts for five seconds
		reported := time.Now()
		tell() // a repeat whose answer got lost
		figures = decode[schemas.Figures](t, a.must(t, http.MethodGet, figuresPath, "", http.StatusOK))
		soon = time.Since(reported) < 4*time.Second
	}
	if len(figures.Minutes) != 60 || figures.Waiting != 2 || figures.Total.CheckOuts != 2 || figures.Total.Locked != 1 {
		t.Errorf("got %d minutes, %d waiting and %+v", len(figures.Minutes), figures.Waiting, figures.Total)
	}
	if figures := decode[schemas.Figures](t,
		a.must(t, http.MethodGet, figuresPath+"?minutes=1", "", http.StatusOK)); len(figures.Minutes) != 1 {
		t.Errorf("got %d minutes, want one", len(figures.Minutes))
	}
}

func TestHistoryRoutes_AnswerFiftyByDefault(t *testing.T) {
	t.Parallel()
	a := newHistoryAPI(t)
	entries := make([]string, 201)
	for i := range entries {
		entries[i] = entry("")
	}
	a.must(t, http.MethodPost, pastPath, report(0, entries...), http.StatusNoContent)
	for query, want := range map[string]int{
		"": 50, "?limit=200": 200, "?limit=1": 1, "?offset=200&limit=200": 1, "?offset=10000": 0,
	} {
		w := a.must(t, http.MethodGet, pastPath+query, "", http.StatusOK)
		page := decode[schemas.PastCheckOuts](t, w)
		if len(page.CheckOuts) != want || page.More != !strings.Contains(query, "offset") || page.CheckOuts == nil {
			t.Errorf("%s: got %d, more %t, want %d", query, len(page.CheckOuts), page.More, want)
		}
	}
}

func TestHistoryRoutes_RefuseABadReport(t *testing.T) {
	t.Parallel()
	a := newHistoryAPI(t)
	second := func(more string) string { return report(0, entry(""), entry(more)) }
	tooMany := make([]string, 501)
	for i := range tooMany {
		tooMany[i] = `{}`
	}
	tests := map[string]struct {
		body   string
		status int
		want   []string // parts of the answer
	}{
		"no body":            {body: "", status: 400, want: []string{"empty"}},
		"no JSON":            {body: "{", status: 400, want: []string{"not valid JSON"}},
		"a list":             {body: "[]", status: 400, want: []string{"of type object"}},
		"a text as a number": {body: second(`,"agoMs":"1"`), status: 400, want: []string{"agoMs must be of type integer"}},
		"a fraction":         {body: second(`,"waitMs":1.5`), status: 400, want: []string{"waitMs must be of type integer"}},
		"too large an agoMs": {body: second(`,"agoMs":9223372036854775808`), status: 400, want: []string{"agoMs"}},
		"a NUL":              {body: second(`,"reason":"a\u0000b"`), status: 422, want: []string{`\\u0000`}},
		"half a character":   {body: second(`,"userBarcode":"\ud800"`), status: 422, want: []string{`\\ud800`}},
		"null as an entry": {
			body: `{"checkOuts":[null]}`, status: 422, want: []string{"checkOuts[0].id must be a UUID", "checkOuts[0].outcome"},
		},
		"no id":   {body: second(`,"id":""`), status: 422, want: []string{"checkOuts[1].id must be a UUID"}},
		"nothing": {body: `{}`, status: 422, want: []string{"checkOuts is required"}},
		"nothing, in words": {
			body: `{"checkOuts":null,"waiting":null}`, status: 422, want: []string{"checkOuts is required"},
		},
		"the nil id": {
			body: second(`,"id":"00000000-0000-0000-0000-000000000000"`), status: 422, want: []string{"checkOuts[1].id"},
		},
		"an id in braces": {body: second(`,"id":"{` + patronID + `}"`), status: 422, want: []string{"checkOuts[1].id"}},
		"other ids": {
			body: second(`,"userId":"x","loanId":"y","servicePointId":"z"`), status: 422,
			want: []string{"checkOuts[1].userId", "checkOuts[1].loanId", "checkOuts[1].servicePointId"},
		},
		"a negative agoMs": {
			body: second(`,"agoMs":-1`), status: 422, want: []string{"checkOuts[1].agoMs must be from 0 to 3600000", `"-1"`},
		},
		"more than an hour": {body: second(`,"agoMs":3600001`), status: 422, want: []string{"checkOuts[1].agoMs"}},
		"negative numbers": {
			body: second(`,"waitMs":-1,"tookMs":-1,"repeats":-1`), status: 422,
			want: []string{"checkOuts[1].waitMs", "checkOuts[1].tookMs", "checkOuts[1].repeats"},
		},
		"large numbers": {
			body: second(`,"waitMs":2147483648,"tookMs":2147483648,"repeats":2147483648`), status: 422,
			want: []string{"checkOuts[1].waitMs", "checkOuts[1].tookMs", "checkOuts[1].repeats"},
		},
		"no outcome": {
			body: second(`,"outcome":""`), status: 422, want: []string{"checkOuts[1].outcome must match ^[a-z_]{1,40}$"},
		},
		"a line as outcome": {body: second(`,"outcome":"lent\n"`), status: 422, want: []string{"checkOuts[1].outcome"}},
		"a long outcome": {
			body: second(`,"outcome":"` + strings.Repeat("a", 41) + `"`), status: 422, want: []string{"checkOuts[1].outcome"},
		},
		"a long reason": {
			body: second(`,"reason":"` + strings.Repeat("ü", 1001) + `"`), status: 422,
			want: []string{"checkOuts[1].reason must have at most 1000 characters, not 1001"},
		},
		"long texts": {
			body: second(fmt.Sprintf(`,"code":%[1]q,"userBarcode":%[1]q,"itemBarcode":%[1]q,"requestId":%[1]q`,
				strings.Repeat("x", 256))),
			status: 422,
			want: []string{
				"checkOuts[1].code", "checkOuts[1].userBarcode", "checkOuts[1].itemBarcode", "checkOuts[1].requestId",
			},
		},
		"501 check-outs": {
			body: report(0, tooMany...), status: 422, want: []string{"checkOuts must have at most 500 elements"},
		},
		"a negative waiting": {body: report(-1), status: 422, want: []string{"waiting must be from 0"}},
		"wrong in two places": {
			body: `{"checkOuts":[{},` + entry("") + `,{}],"waiting":-5}`, status: 422,
			want: []string{"waiting", "checkOuts[0].id", "checkOuts[2].id"},
		},
	}
	for name, tt := range tests {
		w := a.do(http.MethodPost, pastPath, tt.body)
		wantStatus(t, name, w, tt.status)
		for _, want := range tt.want {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %q is missing in %s", name, want, w.Body)
			}
		}
	}
	if page := decode[schemas.PastCheckOuts](t, a.do(http.MethodGet, pastPath, "")); len(page.CheckOuts) != 0 {
		t.Errorf("bad reports left %+v", page)
	}
}

func TestHistoryRoutes_AcceptTheLargestReport(t *testing.T) {
	t.Parallel()
	a := newHistoryAPI(t)
	long := strings.Repeat("ü", 255)
	largest := entry(fmt.Sprintf(`,"outcome":%q,"agoMs":3600000,"waitMs":3600000,"tookMs":3600000,"repeats":1000000,
		"reason":%q,
		"code":%[3]q,"userBarcode":%[3]q,"itemBarcode":%[3]q,"requestId":%[3]q`, strings.Repeat("_", 40), strings.Repeat("𝔞",
		1000), long))
	for name, body := range map[string]string{
		"the largest entry": report(1_000_000, largest),
		"the smallest":      `{"checkOuts":[{"id":"` + patronID + `","outcome":"a"}]}`,
		"no entries":        `{"checkOuts":[],"waiting":1}`,
		"more than we know": `{"checkOuts":[],"news":{"a":[null]}}`,
	} {
		wantStatus(t, name, a.do(http.MethodPost, pastPath, body), http.StatusNoContent)
	}
	if page := decode[schemas.PastCheckOuts](t,
		a.do(http.MethodGet, pastPath+"?userBarcode="+escaped(strings.ToUpper(long)), "")); len(page.CheckOuts) != 1 {
		t.Errorf("got %+v, want the largest entry", page)
	}
}

func TestHistoryRoutes_NameAllBadParameters(t *testing.T) {
	t.Parallel()
	a := newHistoryAPI(t)
	for target, names := range map[string]string{
		pastPath + "?limit=0":                          "limit",
		pastPath + "?limit=201":                        "limit",
		pastPath + "?limit=":                           "limit",
		pastPath + "?limit=1e2":                        "limit",
		pastPath + "?offset=-1":                        "offset",
		pastPath + "?offset=10001":                     "offset",
		pastPath + "?offset=99999999999999999999":      "offset",
		pastPath + "?from=yesterday":                   "from",
		pastPath + "?from=2026-08-22":                  "from",
		pastPath + "?until=2026-08-22":                 "until",
		pastPath + "?until=":                           "until",
		pastPath + "?until=2026-02-30T00:00:00Z":       "until",
		pastPath + "?from=2026-08-22T10:00:00+02:00":   "from", // its + is a space
		pastPath + "?userBarcode=":                     "userBarcode",
		pastPath + "?userBarcode=%00":                  "userBarcode",
		pastPath + "?itemBarcode=a%ffb":                "itemBarcode",
		pastPath + "?servicePointId=":                  "servicePointId",
		pastPath + "?servicePointId=desk":              "servicePointId",
		pastPath + "?limit=5&limit=6":                  "limit",
		pastPath + "?outcome=":                         "outcome",
		pastPath + "?outcome=Lent":                     "outcome",
		pastPath + "?outcome=lent%00":                  "outcome",
		figuresPath + "?minutes=0":                     "minutes",
		figuresPath + "?minutes=1441":                  "minutes",
		figuresPath + "?minutes=43201":                 "minutes",
		figuresPath + "?minutes=60&bucketMinutes=7":    "minutes",
		figuresPath + "?minutes=241&bucketMinutes=241": "bucketMinutes",
		figuresPath + "?servicePointId=desk":           "servicePointId",
		figuresPath + "?minutes=x":                     "minutes",
		figuresPath + "?minutes=":                      "minutes",

		pastPath + "?userBarcode=" + strings.Repeat("x", 256): "userBarcode",

		pastPath + "?limit=x&offset=y&from=z&until=1&itemBarcode=&outcome=%27": "limit offset from until itemBarcode outcome",
		pastPath + "?from=2026-08-22T10:00:01Z&until=2026-08-22T10:00:00Z":     "from",
	} {
		w := a.do(http.MethodGet, target, "")
		wantStatus(t, target, w, http.StatusUnprocessableEntity)
		for _, name := range strings.Fields(names) {
			if !strings.Contains(w.Body.String(), `"`+name+` must `) {
				t.Errorf("%s: %s is not named in %s", target, name, w.Body)
			}
		}
		if n := strings.Count(w.Body.String(), `"message"`); n != len(strings.Fields(names)) {
			t.Errorf("%s: %d errors in %s, want %d", target, n, w.Body, len(strings.Fields(names)))
		}
	}
	for target, want := range map[string]string{
		pastPath + "?minutes=5": "minutes is unknown; allowed are userBarcode, itemBarcode, servicePointId, outcome, code," +
			" from, until, offset, limit",
		figuresPath + "?limit=5": "limit is unknown; allowed are minutes, bucketMinutes, servicePointId",
	} {
		wantRefusal(t, a.do(http.MethodGet, target, ""), http.StatusUnprocessableEntity, want)
	}
	wantRefusal(t, a.do(http.MethodPost, pastPath+"?minutes=5", report(1, entry(""))), http.StatusUnprocessableEntity,
		"no parameters are allowed")
	for _, query := range []string{
		"?servicePointId=" + userID, "?from=2026-08-22T10:00:00Z&until=2026-08-22T10:00:00Z",
		"?from=2026-08-22T10:00:00%2B02:00", "?until=9999-12-31T23:59:59Z", "?from=0001-01-01T00:00:00Z",
	} {
		a.must(t, http.MethodGet, pastPath+query, "", http.StatusOK)
	}
}

func TestHistoryRoutes_RequireAnInstalledTenant(t *testing.T) {
	t.Parallel()
	a := newHistoryAPI(t)
	for tenant, status := range map[string]int{
		"": http.StatusBadRequest, "Unknown!": http.StatusBadRequest, "unknown": http.StatusNotFound,
	} {
		headers := map[string]string{okapi.TenantHeader: tenant}
		wantStatus(t, "POST", a.call(http.MethodPost, pastPath, report(1, entry("")), headers), status)
		wantStatus(t, "GET", a.call(http.MethodGet, pastPath, "", headers), status)
		wantStatus(t, "figures", a.call(http.MethodGet, figuresPath, "", headers), status)
	}
}
