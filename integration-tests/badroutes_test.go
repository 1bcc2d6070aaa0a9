package integration_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	storage "checkoutlock/circulation-storage/app"
	circulation "checkoutlock/circulation/app"
	"checkoutlock/integration-tests/stack"
)

// describedRoute is a route as an OpenAPI document has it.
type describedRoute struct {
	RequestBody any
	Parameters  []struct {
		Name, In string
		Schema   struct {
			Type, Format string
			Maximum      *int
			Enum         []string
		}
	}
	Responses map[string]any
}

var inPath = regexp.MustCompile(`\{\w+\}`)

// listRubbish returns calls that the route has to refuse: paths, and bodies for some of them.
func (r describedRoute) listRubbish(path string) map[string]string {
	calls := map[string]string{}
	good := inPath.ReplaceAllString(path, uuid.NewString())
	body := ""
	if r.RequestBody != nil {
		body = "{}"
	}
	if good != path {
		calls[inPath.ReplaceAllString(path, "abc")] = body
	}
	for _, p := range r.Parameters {
		value := ""
		switch {
		case p.In != "query":
		case p.Schema.Maximum != nil && *p.Schema.Maximum > 0:
			value = fmt.Sprint(*p.Schema.Maximum + 1)
		case p.Schema.Enum != nil, p.Schema.Type == "boolean", p.Schema.Format != "":
			value = "rubbish"
		}
		if value != "" {
			calls[good+"?"+url.Values{p.Name: {value}}.Encode()] = body
		}
	}
	return calls
}

// Each route of both documents refuses a wrong id, JSON that is none, a body of another type, and a
// parameter out of its range, and stores nothing.
func TestBadInput_OfEachDescribedRoute(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{}, 5)
	before, calls := p.countRows(t), 0
	refuse := func(client stack.Client, method, path, body string) {
		calls++
		checkRefused(t, method+" "+path+" "+body, callEndpoint(t, client, method, path, bytesOf(body)))
	}
	for client, read := range map[*stack.Client]func() (map[string]any, error){
		&p.machines[0]: circulation.Module().OpenAPI, &p.Storage: storage.Module().OpenAPI,
	} {
		doc, err := read()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(doc["paths"])
		if err != nil {
			t.Fatal(err)
		}
		var paths map[string]map[string]describedRoute
		if err := json.Unmarshal(raw, &paths); err != nil {
			t.Fatal(err)
		}
		for path, methods := range paths {
			for method, route := range methods {
				if _, isPage := route.Responses["default"]; isPage {
					continue
				}
				method = strings.ToUpper(method)
				for bad, body := range route.listRubbish(path) {
					refuse(*client, method, bad, body)
				}
				for _, body := range []string{"", "{", `"text"`, "17", "[17]"} {
					if route.RequestBody != nil {
						refuse(*client, method, inPath.ReplaceAllString(path, uuid.NewString()), body)
					}
				}
			}
		}
	}
	if calls < 500 {
		t.Errorf("made %d calls, want at least 500", calls)
	}
	if after := p.countRows(t); after != before {
		t.Errorf("%d rows are stored, want %d as before", after, before)
	}
}

// bytesOf returns a body to send, or an untyped nil for none.
func bytesOf(body string) any {
	if body == "" {
		return nil
	}
	return []byte(body)
}

// countRows counts what is stored for the tenant.
func (p *pair) countRows(t *testing.T) int {
	t.Helper()
	var rows int
	queryValue(t, p.databaseURL, &rows, `
SELECT sum((xpath('/row/n/text()', query_to_xml(
           format('SELECT count(*) AS n FROM %I.%I', schemaname, tablename), false, true, '')))[1]::text::int)
FROM   pg_tables WHERE schemaname = '`+schemaName(p.Storage.Tenant)+`'`)
	return rows
}
