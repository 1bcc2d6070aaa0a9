package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/records"
)

func TestRecordRoutes_RefuseBadParameters(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	tests := map[string]struct{ parameters, want string }{
		"a negative offset":          {"offset=-1", "allowed are integers from 0 to 2147483647"},
		"a huge offset":              {"offset=2147483648", "allowed are integers"},
		"an offset beyond integers":  {"offset=99999999999999999999", "allowed are integers"},
		"an offset in words":         {"offset=ten", "allowed are integers"},
		"an empty limit":             {"limit=", "allowed are integers"},
		"a negative limit":           {"limit=-1", "allowed are integers"},
		"a broken limit":             {"limit=1.5", "allowed are integers"},
		"SQL in limit":               {"limit=1;drop%20table%20users", "semicolon"},
		"SQL in limit, escaped":      {"limit=1%3Bdrop%20table%20users", "allowed are integers"},
		"SQL in offset":              {"offset=0%20union%20select%201", "allowed are integers"},
		"an unknown totalRecords":    {"totalRecords=maybe", "allowed are exact, estimated, none, auto"},
		"a query that is cut off":    {"query=username==", "search term expected at position 10"},
		"an unknown index":           {"query=shoeSize==43", "unknown index"},
		"SQL as an index":            {"query=" + escaped(`"x')) or true --"==1`), "unknown index"},
		"SQL as a relation":          {"query=" + escaped(`username or 1=1`), "name the index"},
		"NUL in the query":           {"query=username==%00", "NUL"},
		"bytes that are no UTF-8":    {"query=username==%ff", "UTF-8"},
		"a semicolon not escaped":    {"query=barcode==a;b", "semicolon"},
		"a broken escape":            {"query=barcode==%zz", "invalid URL escape"},
		"a query longer than 16 KiB": {"query=username==" + strings.Repeat("a", 17000), "at most 16384"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRefusal(t, a.do(http.MethodGet, "/users?"+tt.parameters, ""), http.StatusBadRequest, tt.want)
		})
	}
}

func TestRecordRoutes_ReadSQLAsText(t *testing.T) {
	t.Parallel()
	a := newRecordAPI(t)
	a.fill(t)
	for _, typ := range records.Types() {
		for _, query := range []string{
			`id=="' or '1'='1"`, `id=="${jndi}" or id=="$1::uuid"`, `metadata.createdByUserId=="x') or (true"`,
		} {
			page := parseJSON(t, a.must(t, http.MethodGet, typ.Path+"?query="+escaped(query), "", http.StatusOK).Body.String())
			if got := page[typ.Collection].([]any); len(got) != 0 {
				t.Errorf("%s?query=%s: got %v, want nothing", typ.Path, query, got)
			}
		}
	}
	query := `username=="'; DROP TABLE users; --" or barcode="{table} {where} $1 %s"`
	a.must(t, http.MethodGet, "/users?query="+escaped(query), "", http.StatusOK)
	a.must(t, http.MethodGet, "/users/"+userID, "", http.StatusOK)
}
