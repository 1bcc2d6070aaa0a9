package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const (
	injection = `'; DROP TABLE loan; --`
	bodyLimit = 1 << 20 // of both services
)

// checkRefused fails the test unless the answer is a 4xx with a reason and without
// internals.
func checkRefused(t *testing.T, what string, a stack.Answer) {
	t.Helper()
	body := string(a.Body)
	if len(what) > 200 {
		what = what[:200] + "…"
	}
	if a.Status < 400 || a.Status > 499 || strings.TrimSpace(body) == "" || !utf8.ValidString(body) {
		t.Errorf("%s: got %d %.300q, want a 4xx with a reason", what, a.Status, body)
	}
	if code := a.Header.Get(fault.Header); code == string(fault.Internal) {
		t.Errorf("%s: %d has the code %s", what, a.Status, code)
	}
	for _, inside := range []string{"SQLSTATE", "pgx", "goroutine", "runtime error", "ERROR:", ".go:"} {
		if strings.Contains(body, inside) {
			t.Errorf("%s: the answer shows %s: %.300s", what, inside, body)
		}
	}
}

// Afterwards no stored record has changed, and a check-out succeeds.
func TestBadInput_AtEachEndpoint(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 5)
	_, patron := p.addPatron(t)
	readObject(t, p.lendBook(t, 0, p.addBooks(t, 1)[0], patron), http.StatusCreated)
	endpoints := p.endpoints(t)
	last := p.addBooks(t, 1)[0]
	for _, c := range p.collections(t) {
		if c.key != "items" { // items exist, and an entry of /settings/entries would take effect
			p.findOrAddRecord(t, c.path, c.key, c.body)
		}
	}
	before := p.readEverything(t)
	t.Run("at", func(t *testing.T) {
		for _, e := range endpoints {
			t.Run(e.String(), func(t *testing.T) {
				t.Parallel()
				sendBadBodies(t, e)
				sendBadPropertyTypes(t, e)
				sendBadTenants(t, e)
				sendBadIDs(t, e)
				sendBadQueries(t, e)
			})
		}
	})
	after := p.readEverything(t)
	for path, were := range before {
		if are := after[path]; are != were {
			t.Errorf("%s was\n%.2000s\nand is\n%.2000s", path, were, are)
		}
	}
	readObject(t, p.lendBook(t, 0, last, patron), http.StatusCreated)
}

// readEverything returns what is stored, by path.
func (p *pair) readEverything(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, c := range p.collections(t) {
		list, _ := p.readRecord(t, c.path+"?limit=1000")[c.key].([]any)
		if len(list) == 0 && c.key != "items" {
			t.Errorf("%s is empty", c.path)
		}
		records := make([]string, len(list))
		for i, r := range list {
			records[i] = fmt.Sprint(r)
		}
		slices.Sort(records)
		all[c.path] = strings.Join(records, "\n")
	}
	for _, path := range []string{
		"/circulation-rules-storage", "/check-out-lock-settings-storage", "/check-out-lock-storage",
	} {
		stored := p.readRecord(t, path)
		delete(stored, "environmentOnMs") // decreases over time
		all[path] = fmt.Sprint(stored)
	}
	var events int
	queryValue(t, p.databaseURL, &events, "SELECT count(*) FROM "+p.tableName("outbox"))
	all["outbox"] = fmt.Sprint(events)
	return all
}

func sendBadBodies(t *testing.T, e endpoint) {
	t.Helper()
	if e.body == nil {
		return
	}
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	bodies := []string{
		"", " \n", "{", `{"a":1`, `{"a" 1}`, "{'a':1}", "nonsense", "<xml/>", "[]", `[{}]`, "[[[[", `"text"`, "17", "true",
		"null", "NaN", "{}",
		"{}{}", "{} x", "\ufeff{}", "\x00", "{\"a\x00\":1}", "{\"a\":\"\x00\"}", "{\"\xff\xfe\":\"\xff\"}", "{\"a\":1,}",
		"/* */ {}",
		deep(20000), strings.Repeat("[", 50000), `{"a":"` + strings.Repeat("x", 100000), injection,
	}
	path := e.fillPath(uuid.NewString())
	for _, body := range bodies {
		if body == "{}" && slices.Contains([]string{
			"/users", "/proxiesfor", "/proxiesfor/:id", settingsPath, factsPath,
			"/tlr-feature-toggle-job-storage/tlr-feature-toggle-jobs",
			"/tlr-feature-toggle-job-storage/tlr-feature-toggle-jobs/:id",
		}, e.path) {
			continue // these bodies have no required property
		}
		checkRefused(t, fmt.Sprintf("%q", body), callEndpoint(t, e.client, e.method, path, []byte(body)))
	}
	good, err := json.Marshal(e.body)
	if err != nil {
		t.Fatal(err)
	}
	if e.ofStorage { // circulation takes JSON of any content type
		c := e.client
		c.Header = http.Header{"Content-Type": {"text/plain"}}
		checkRefused(t, "a body of another content type", callEndpoint(t, c, e.method, path, good))
	}
	checkRefused(t, "a body that ends inside a character",
		callEndpoint(t, e.client, e.method, path, append(bytes.TrimSuffix(good, []byte("}")), `,"x":"`+"\xc3"+`"}`...)))
	if e.ofStorage && !e.noTenant && e.path != acquirePath {
		checkRefused(t, "a deeply nested body",
			callEndpoint(t, e.client, e.method, path,
				slices.Concat(bytes.TrimSuffix(good, []byte("}")), []byte(`,"x":`+deep(200)+"}"))))
	}
	huge := []byte(`{"x":"` + strings.Repeat("x", bodyLimit) + `"}`)
	for _, announced := range []bool{true, false} {
		a := sendHugeBody(t, e, path, huge, announced)
		if checkRefused(t, "a huge body", a); a.Status != http.StatusRequestEntityTooLarge {
			t.Errorf("a huge body, announced is %t: got %d, want 413", announced, a.Status)
		}
	}
}

// sendHugeBody sends a body in chunks. If announced is set, it sends the length first and
// waits for 100 Continue.
func sendHugeBody(t *testing.T, e endpoint, path string, body []byte, announced bool) stack.Answer {
	t.Helper()
	var content io.Reader = struct{ io.Reader }{bytes.NewReader(body)}
	if announced {
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), e.method, e.client.Base+path, content)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(okapi.TenantHeader, e.client.Tenant)
	req.Header.Set("Content-Type", "application/json")
	if announced {
		req.Header.Set("Expect", "100-continue")
	}
	resp, err := continueClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return stack.Answer{Status: resp.StatusCode, Header: resp.Header, Body: answer}
}

// continueClient waits for 100 Continue before it sends a body.
var continueClient = &http.Client{
	Timeout: time.Minute, Transport: &http.Transport{ExpectContinueTimeout: 10 * time.Second},
}

func sendBadPropertyTypes(t *testing.T, e endpoint) {
	t.Helper()
	values := map[string][]string{ // by JSON type
		"boolean": {"true"},
		"number":  {"17", "-1", "1.5", "1e400", "99999999999999999999999", "-0.0e-400"},
		"string":  {`""`, `"x"`, `"17"`, `"true"`, `"2026-13-45"`, `"'; DROP TABLE loan; --"`, `"00000000"`},
		"array":   {"[]", "[null]", `["x"]`, "[[]]", "[17]"},
		"object":  {"{}", `{"x":1}`, `{"name":17}`, `{"name":"x"}`, `{"lockTtl":"x"}`},
	}
	unstorable := []string{`"\u0000"`, `"a\u0000b"`, `"\ud800"`, `"\udc00x"`, "\"\xff\""}
	for _, name := range slices.Sorted(maps.Keys(e.body)) {
		kind := jsonKind(e.body[name])
		var bad, good []string
		switch {
		case name == "loanDate" && !e.ofStorage: // an empty date means now
			good = []string{`""`}
		case e.ofStorage && kind == "number": // a record may have the text of one
			good = []string{`""`, `"17"`}
		case e.ofStorage && kind == "boolean":
			good = []string{`""`, `"true"`}
		case e.ofStorage && strings.HasSuffix(name, "Date"): // an empty date of a record is none
			good = []string{`""`}
		}
		for other, list := range values {
			if strings.Contains(e.path, ":id") && other != kind {
				list = list[:1] // the collection got the same record with all values
			}
			switch {
			case other != kind:
				bad = append(bad, list...)
			case kind == "string" && !slices.Contains(e.texts, name) && name != "requestId" && name != "version":
				bad = append(bad, list...) // neither ids nor dates
			case kind == "number":
				bad = append(bad, list[1:5]...)
			}
		}
		if kind == "string" && e.ofStorage && !e.noTenant {
			bad = append(bad, unstorable...)
		}
		for _, value := range bad {
			if slices.Contains(good, value) {
				continue
			}
			body := setFields(maps.Clone(e.body), record{name: json.RawMessage("0")})
			raw, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			raw = bytes.Replace(raw, fmt.Appendf(nil, "%q:0", name), fmt.Appendf(nil, "%q:%s", name, value), 1)
			checkRefused(t, string(raw), callEndpoint(t, e.client, e.method, e.fillPath(uuid.NewString()), raw))
		}
	}
}

func jsonKind(v any) string {
	switch v.(type) {
	case bool:
		return "boolean"
	case int:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

func sendBadTenants(t *testing.T, e endpoint) {
	t.Helper()
	names := []string{
		"", "not_installed", "Diku", "1diku", "di-ku", "di ku", "diku;", "pg_catalog", strings.Repeat("a", 32),
		strings.Repeat("a", 4000), "../diku", "*", "\xff", "ä",
		"diku\"", "diku'", injection, `"; DROP SCHEMA public CASCADE; --`, "%00", "null",
	}
	for _, name := range names {
		if e.noTenant && (name == "not_installed" || name == "pg_catalog" || name == "null") {
			continue // these routes accept any valid name
		}
		c := e.client
		c.Tenant = name
		checkRefused(t, fmt.Sprintf("tenant %q", name),
			callEndpoint(t, c, e.method, e.fillPath(uuid.NewString()), e.bodyToSend()))
	}
}

func sendBadIDs(t *testing.T, e endpoint) {
	t.Helper()
	if !strings.Contains(e.path, ":id") {
		return
	}
	id := uuid.NewString()
	ids := []string{
		"abc", "1", "-1", "null", "*", "%25", "%00", "%ff%fe", "..%2f..", url.PathEscape(injection),
		strings.ReplaceAll(id, "-", ""), "%7B" + id + "%7D",
		"urn:uuid:" + id, id + "x", id[1:], strings.Replace(id, "-", "g", 1), strings.Repeat("a", 8000),
		strings.Repeat("%00", 1000), id + "/" + id,
		"%F0%9F%92%A5", strings.Repeat("a", 40000),
	}
	for _, bad := range ids {
		checkRefused(t, bad, callEndpoint(t, e.client, e.method, e.fillPath(bad), e.bodyToSend()))
	}
	if e.body == nil && !e.alwaysThere { // a PUT of an unknown id creates the record, as in FOLIO
		checkRefused(t, "an unknown id", callEndpoint(t, e.client, e.method, e.fillPath(id), nil))
	}
}
