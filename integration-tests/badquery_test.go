package integration_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// listBadValues returns values that the query parameter of that name must refuse.
func listBadValues(name string) []string {
	all := []string{"\x00", "\xff\xfe"}
	switch name {
	case "offset", "limit":
		return append(all, "", "-1", "abc", "1.5", "1e3", "0x10", "99999999999999999999999", "-99999999999999999999999",
			"2147483648", " 1", "1,000", "NaN", "١", injection)
	case "totalRecords":
		return append(all, "maybe", "1", injection)
	case "userBarcode", "itemBarcode", "holder": // any text
		return append(all, "", strings.Repeat("x", 256))
	case "outcome":
		return append(all, "", "-1", "%", "Lent", strings.Repeat("x", 41), injection)
	case "query":
		return append(all,
			"(", ")", `"`, `\`, "==", "id==", `id=="`, "a b c", "id==x and", "and", "not id==x", "id==(", "sortby id",
			"nothing==1", "id.x==1", "jsonb==1", "id prox x", "id==x prox id==x", `> dc = "info" id==x`, "id within x",
			"id==x) or (id==y", injection,
			`metadata.createdDate > "the day before"`, `metadata.createdDate > "'; SELECT 1; --"`,
			strings.Repeat("(", 5000), strings.Repeat("id==x or ", 1500)+"id==x", "id=="+
				strings.Repeat("x", 17000), "id==\x00", "id==\"\xff\"")
	}
	return append(all, "", "abc", "-1", "%", injection, strings.ReplaceAll(uuid.NewString(), "-", ""), "{"+
		uuid.NewString()+"}")
}

func sendBadQueries(t *testing.T, e endpoint) {
	t.Helper()
	good := url.Values{}
	if slices.Contains(e.query, "userId") {
		good.Set("userId", uuid.NewString())
	}
	for _, name := range e.query {
		for _, value := range listBadValues(name) {
			values := url.Values{}
			for k, v := range good {
				values[k] = v
			}
			values.Set(name, value)
			checkRefused(t, name+"="+value, callEndpoint(t, e.client, e.method, e.path+"?"+values.Encode(), nil))
		}
		checkRefused(t, name+" badly escaped",
			callEndpoint(t, e.client, e.method, e.path+"?"+good.Encode()+"&"+name+"=%zz", nil))
		checkRefused(t, name+" with a semicolon",
			callEndpoint(t, e.client, e.method, e.path+"?"+good.Encode()+"&"+name+"=1;2", nil))
	}
	if slices.Contains(e.query, "query") {
		checkRefused(t, "a query that grows when circulation escapes it",
			callEndpoint(t, e.client, e.method, e.path+"?query="+strings.Repeat("(", 9000), nil))
	}
}

func TestBadInput_SQLIsAValue(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 5)
	for _, c := range p.collections(t) {
		for _, value := range []string{
			injection, `x' OR '1'='1`, `$1`, `%`, `\'; SELECT pg_sleep(10); --`, `{}`, `x") or (1==1`,
		} {
			quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value)
			for _, relation := range []string{"==", "=", "<", "<>", "any"} {
				if relation == "any" && c.path == "/patron-block-limits" {
					continue // its indexes are no texts
				}
				found := p.readRecord(t, c.path+"?limit=0&query="+url.QueryEscape(c.index+" "+relation+` "`+quoted+`"`))
				if total := readPart(found, "totalRecords"); relation == "==" && total != nil && total != 0.0 {
					t.Errorf("%s: %v records match %q", c.path, total, value)
				}
			}
		}
	}
	// Text that looks like SQL is stored unchanged and found again.
	id := p.addRecord(t, "/groups", record{"group": injection, "desc": `"; DROP TABLE users; --`})
	checkParts(t, "group", p.readRecord(t, "/groups/"+id), record{"group": injection, "desc": `"; DROP TABLE users; --`})
	found := p.readRecord(t, "/groups?query="+url.QueryEscape(`group=="`+injection+`"`))
	checkParts(t, "found by it", found, record{"totalRecords": 1.0})
}

func TestBadInput_HeadersAndPaths(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 5)
	for _, c := range []stack.Client{p.Storage, p.machines[0]} {
		path := "/groups"
		if c.Base != p.Storage.Base {
			path = "/circulation/loans"
		}
		for _, value := range []string{
			injection, "\xff", `["unfinished`, "[[[[", "null", `{"a":1}`, "17", strings.Repeat("x", 8000),
			strings.Repeat("[", 8000),
		} {
			for _, name := range []string{
				okapi.UserIDHeader, okapi.RequestIDHeader, okapi.TokenHeader, schemas.HolderHeader, "Accept",
			} {
				c.Header = http.Header{name: {value}}
				if a := callEndpoint(t, c, http.MethodGet, path, nil); a.Status != http.StatusOK {
					t.Errorf("%s: %.50q: got %d %s", name, value, a.Status, a.Body)
				}
			}
			c.Header = http.Header{okapi.PermissionsHeader: {value}}
			checkRefused(t, "permissions "+value, callEndpoint(t, c, http.MethodGet, path, nil))
		}
		c.Header = http.Header{okapi.TokenHeader: {strings.Repeat("x", 40000)}}
		checkRefused(t, "endless headers", callEndpoint(t, c, http.MethodGet, path, nil))
		c.Header = nil
		checkRefused(t, "an endless path", callEndpoint(t, c, http.MethodGet, "/"+strings.Repeat("x", 40000), nil))
		for _, unknown := range []string{
			"/nothing", path + "/", "//", "/%00", "/.." + path, path + "%2f", "/" + url.PathEscape(injection),
		} {
			checkRefused(t, unknown, callEndpoint(t, c, http.MethodGet, unknown, nil))
		}
		for _, method := range []string{http.MethodPatch, http.MethodTrace, "NONSENSE"} {
			checkRefused(t, method, callEndpoint(t, c, method, path, nil))
		}
	}
}
