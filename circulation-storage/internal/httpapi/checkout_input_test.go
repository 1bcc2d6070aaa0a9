package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/schemas/okapi"
)

func TestCommitRoutes_RefuseBadBodies(t *testing.T) {
	t.Parallel()
	a := newCommitAPI(t)
	item := a.addItem()
	lend := checkOutBody(uuid.New(), uuid.New(), item, fmt.Sprintf(`"settingsVersion":%q`, a.settingsVersion()))
	const sql = `'; DROP TABLE item; --`
	bodies := map[string][]string{
		"POST /loan-storage/check-outs": {
			strings.Replace(lend, `"itemVersion":1`, `"itemVersion":"1"`, 1),
			strings.Replace(lend, `"itemVersion":1`, `"itemVersion":-1`, 1),
			strings.Replace(lend, `"itemVersion":1`, `"itemVersion":1e99`, 1),
			strings.Replace(lend, `"itemVersion":1`, `"itemVersion":99999999999999999999`, 1),
			strings.Replace(lend, item.String(), sql, 1), strings.Replace(lend, `checkedout`, `\u0000`, 1),
			strings.Replace(lend, `checkedout`, `\ud800`, 1),
			strings.Replace(lend, `"2026-03-04T05:06:00Z"`, `"`+sql+`"`, 1),
			strings.Replace(lend, `"settingsVersion"`, `"lockId"`, 1),
			strings.Replace(lend, `"action"`, `"status":{"name":"Closed"},"action"`, 1),
		},
		"POST /loan-storage/check-ins": {
			`{"itemId":"1"}`, fmt.Sprintf(`{"itemId":%q,"servicePointId":"%s","checkInDate":"now","itemVersion":1,`+
				`"itemStatus":"Lent"}`, item, sql),
			fmt.Sprintf(`{"itemId":%q,"servicePointId":%q,"checkInDate":"2026-03-05T00:00:00Z","itemVersion":1,`+
				`"itemStatus":"Checked out"}`, item, item),
			fmt.Sprintf(`{"itemId":%q,"servicePointId":%q,"checkInDate":"2026-13-05T00:00:00Z","itemVersion":1,`+
				`"itemStatus":"Available"}`, item, item),
			fmt.Sprintf(`{"itemId":%q,"servicePointId":%q,"checkInDate":"2026-03-05T00:00:00Z","itemVersion":1,`+
				`"itemStatus":"Available"}`, uuid.New(), item),
		},
		"PUT /check-out-lock-settings-storage": {
			`{"value":7}`, `{"value":null}`, `{"value":"{"}`, `{"value":{"lockTtl":1}}`, `{"value":{"lockTtl":"300"}}`,
			`{"value":{"lockTTL_":300}}`,
			`{"value":{"retryInterval":-1}}`, `{"value":{"lockTtl":300},"version":7}`,
			`{"value":{"lockTtl":300},"version":"'; DROP TABLE item"}`, `{"value":"\u0000"}`,
			`{"value":{"lockTtl":300},"note":"\u0000"}`,
		},
		"PUT /circulation-rules-storage": {
			`{"rulesAsText":7}`, `{"rulesAsText":"a\u0000b"}`, `{"rulesAsText":null}`, `{"id":"1","rulesAsText":"x"}`,
		},
	}
	everywhere := []string{
		"", "{", "{}", "[]", "null", "7", `"text"`, "{} {}", "\xff", `{"a":` + strings.Repeat("[", 20000) +
			strings.Repeat("]", 20000) + "}",
		`{"a":` + strings.Repeat("9", 5000) + "}",
	}
	for route, own := range bodies {
		method, path, _ := strings.Cut(route, " ")
		for _, body := range slices.Concat(everywhere, own) {
			w := a.do(method, path, body)
			if w.Code < 400 || w.Code >= 500 || w.Body.Len() == 0 {
				t.Errorf("%s with %.120q: got %d %s, want a 4xx that says why", route, body, w.Code, w.Body)
			}
			if strings.Contains(w.Body.String(), "SQLSTATE") {
				t.Errorf("%s with %.120q: the answer speaks of the database: %s", route, body, w.Body)
			}
		}
		w := a.do(method, path, `{"a":"`+strings.Repeat("a", bodyLimit)+`"}`)
		wantStatus(t, route+" with a huge body", w, http.StatusRequestEntityTooLarge)
		w = a.call(method, path, "{}", map[string]string{okapi.TenantHeader: a.id.String(), "Content-Type": "text/xml"})
		wantStatus(t, route+" with XML", w, http.StatusBadRequest)
	}
	a.wantNothingWritten()
}

func TestCommitRoutes_RequireAKnownTenant(t *testing.T) {
	t.Parallel()
	a := newCommitAPI(t)
	lend := checkOutBody(uuid.New(), uuid.New(), uuid.New(), `"settingsVersion":"1"`)
	checkIn := fmt.Sprintf(`{"itemId":%[1]q,"servicePointId":%[1]q,"checkInDate":"2026-03-05T00:00:00Z","itemVersion":1,`+
		`"itemStatus":"Available"}`, uuid.New())
	for name, status := range map[string]int{
		"": http.StatusBadRequest, "unknown": http.StatusNotFound, "No Name": http.StatusBadRequest,
		"x'; DROP SCHEMA public": http.StatusBadRequest,
	} {
		for _, r := range [][3]string{
			{http.MethodPost, "/loan-storage/check-outs", lend},
			{http.MethodPost, "/loan-storage/check-ins", checkIn},
			{http.MethodGet, "/check-out-lock-settings-storage", ""},
			{http.MethodPut, "/check-out-lock-settings-storage", `{"value":{}}`},
			{http.MethodDelete, "/check-out-lock-settings-storage", ""},
			{http.MethodGet, "/circulation-rules-storage", ""},
			{http.MethodPut, "/circulation-rules-storage", `{"rulesAsText":""}`},
		} {
			w := a.call(r[0], r[1], r[2], map[string]string{okapi.TenantHeader: name})
			wantStatus(t, fmt.Sprintf("%s %s of tenant %q", r[0], r[1], name), w, status)
		}
	}
}
