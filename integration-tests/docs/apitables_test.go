package docs_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	storage "checkoutlock/circulation-storage/app"
	circulation "checkoutlock/circulation/app"
	"checkoutlock/schemas/fault"
)

// operation is an endpoint as the OpenAPI documents describe it.
type operation struct {
	method, path string
	Tags         []string
	Description  string
	Parameters   []struct {
		Ref, Name, In string
		Required      bool
	}
	RequestBody *struct{ Content map[string]content }
	Responses   map[string]response
}

type response struct {
	Headers map[string]struct {
		Required bool
		Schema   struct{ Enum []string }
	}
	Content map[string]content
}

type content struct {
	Schema struct {
		Ref        string                     `json:"$ref"`
		Properties map[string]json.RawMessage // a property may be true
	}
}

// operations returns the endpoints of a service, except its pages.
func operations(t *testing.T, service string) []operation {
	t.Helper()
	doc, err := map[string]func() (map[string]any, error){
		"circulation": circulation.Module().OpenAPI, "circulation-storage": storage.Module().OpenAPI,
	}[service]()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(doc["paths"])
	if err != nil {
		t.Fatal(err)
	}
	var paths map[string]map[string]operation
	if err := json.Unmarshal(raw, &paths); err != nil {
		t.Fatal(err)
	}
	var all []operation
	for path, methods := range paths {
		for method, o := range methods {
			o.method, o.path = strings.ToUpper(method), path
			if _, isPage := o.Responses["default"]; !isPage {
				all = append(all, o)
			}
		}
	}
	methods := []string{http.MethodPost, http.MethodGet, http.MethodPut, http.MethodDelete}
	slices.SortFunc(all, func(a, b operation) int {
		return cmp.Or(strings.Compare(a.path, b.path), slices.Index(methods, a.method)-slices.Index(methods, b.method))
	})
	return all
}

func (o operation) String() string { return o.method + " " + o.path }

func (o operation) permission() string {
	return strings.TrimPrefix(o.Description, "Permission: ")
}

// row is the endpoint in a table.
func (o operation) row() string {
	endpoint := "`" + o.String() + "`"
	if strings.Contains(o.Tags[0], "checkoutlock") {
		endpoint += " (ours)"
	}
	permission := "none"
	if o.permission() != "" {
		permission = "`" + o.permission() + "`"
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", endpoint, permission, o.takes(), o.answers())
}

// takes lists the parameters, the required ones in bold, and the body.
func (o operation) takes() string {
	var all []string
	for _, p := range o.Parameters {
		name := "`" + p.Name + "`"
		if p.Required {
			name = "**" + name + "**"
		}
		switch p.In {
		case "query":
			all = append(all, name)
		case "header":
			all = append(all, "header "+name)
		}
	}
	if o.RequestBody != nil {
		schema := o.RequestBody.Content["application/json"].Schema.Ref
		if schema == "" {
			all = append(all, "a body")
		} else {
			all = append(all, "`"+strings.TrimPrefix(schema, "#/components/schemas/")+"`")
		}
	}
	return strings.Join(all, ", ")
}

// shared are the codes that docs/api.md names once, for all endpoints.
var shared = []fault.Code{
	fault.Malformed, fault.UnknownTenant, fault.Unauthorized, fault.Forbidden, fault.TooLarge, fault.InUse, fault.Internal,
	fault.TenantNotReady, fault.Overloaded, fault.Unavailable, fault.Timeout,
}

// answers lists the statuses with their codes. A code that its status has alone is left out.
func (o operation) answers() string {
	var all []string
	statuses := make([]string, 0, len(o.Responses))
	for status := range o.Responses {
		statuses = append(statuses, status)
	}
	slices.Sort(statuses)
	for _, status := range statuses {
		r := o.Responses[status]
		switch codes := r.Headers[fault.Header].Schema.Enum; {
		case codes != nil:
			codes = slices.DeleteFunc(codes, func(code string) bool { return slices.Contains(shared, fault.Code(code)) })
			if len(codes) == 1 && (codes[0] == string(fault.NotFound) || codes[0] == string(fault.Invalid)) {
				all = append(all, status)
			} else if len(codes) > 0 {
				all = append(all, status+" `"+strings.Join(codes, "`, `")+"`")
			}
		case status != "431":
			if _, ok := r.Headers["Location"]; ok {
				status += " with `Location`"
			}
			all = append(all, status)
		}
	}
	return strings.Join(all, "; ")
}

// recordPaths are the paths of the collections of records.
func recordPaths(all []operation) []string {
	has := func(method, path string) bool {
		return slices.ContainsFunc(all, func(o operation) bool { return o.method == method && o.path == path })
	}
	var paths []string
	for _, o := range all {
		if o.method == http.MethodPost && has("GET", o.path) && has("GET", o.path+"/{id}") && has("PUT", o.path+"/{id}") {
			paths = append(paths, o.path)
		}
	}
	return paths
}

// recordRow is a collection of records in a table. Its endpoints are o, by method, and those below it.
func recordRow(path string, of map[string]operation) string {
	list := of["GET "+path].Responses["200"].Content["application/json"].Schema.Properties
	for key, raw := range list {
		var property struct {
			Items struct {
				Ref string `json:"$ref"`
			}
		}
		if json.Unmarshal(raw, &property) != nil || property.Items.Ref == "" {
			continue
		}
		_, byQuery := of["DELETE "+path]
		refused := of["PUT "+path+"/{id}"].Responses["409"].Headers[fault.Header].Schema.Enum
		isVersioned := slices.Contains(refused, string(fault.Conflict))
		yes := map[bool]string{true: "yes"}
		return fmt.Sprintf("| `%s` | `%s` | `%s` | `%s` | %s | %s |\n", path, key,
			strings.TrimPrefix(property.Items.Ref, "#/components/schemas/"),
			strings.TrimSuffix(of["POST "+path].permission(), ".item.post"), yes[byQuery], yes[isVersioned])
	}
	return ""
}

var marker = regexp.MustCompile(`(?s)(<!-- (routes|records|codes)\s*(.*?) -->\n).*?(<!-- end -->)`)

// The documents have the tables of the endpoints between markers: "routes", a service and the paths,
// "records" and a service, or "codes". A path that ends in * stands for all that begin so.
func TestAPI_HasTheTablesOfTheRoutes(t *testing.T) {
	t.Parallel()
	left := map[string][]operation{}
	for _, service := range []string{"circulation", "circulation-storage"} {
		left[service] = operations(t, service)
	}
	for _, file := range []string{
		"docs/api.md", "docs/api/desk.md", "docs/api/requests.md", "docs/api/staff.md", "docs/api/storage.md",
	} {
		text := marker.ReplaceAllStringFunc(read(t, file), func(found string) string {
			parts := marker.FindStringSubmatch(found)
			words := strings.Fields(parts[3])
			table := ""
			switch parts[2] {
			case "routes":
				table = routeTable(t, left, words[0], words[1:])
			case "records":
				table = recordTable(left, words[0])
			case "codes":
				table = codeTable()
			}
			return parts[1] + table + parts[4]
		})
		compareFile(t, file, []byte(text))
	}
	for service, operations := range left {
		for _, o := range operations {
			if service == "circulation" || !strings.HasPrefix(o.path, "/admin/") && o.path != "/metrics" {
				t.Errorf("no document has %s of %s", o, service)
			}
		}
	}
}

// routeTable takes the endpoints at the paths from those that are left.
func routeTable(t *testing.T, left map[string][]operation, service string, paths []string) string {
	t.Helper()
	table := "| Endpoint | Permission | Takes | Answers |\n| --- | --- | --- | --- |\n"
	for _, path := range paths {
		before := len(left[service])
		left[service] = slices.DeleteFunc(left[service], func(o operation) bool {
			begin, isPrefix := strings.CutSuffix(path, "*")
			fits := o.path == path || isPrefix && strings.HasPrefix(o.path, begin)
			if fits {
				table += o.row()
			}
			return fits
		})
		if len(left[service]) == before {
			t.Errorf("%s has no endpoint at %s that no other table has", service, path)
		}
	}
	return table
}

// recordTable takes the endpoints of all collections of records from those that are left.
func recordTable(left map[string][]operation, service string) string {
	table := "| Path | List | Schema | Permissions begin with | `DELETE` by query | `_version` |\n" +
		strings.Repeat("| --- ", 6) + "|\n"
	of := map[string]operation{}
	for _, o := range left[service] {
		of[o.String()] = o
	}
	for _, path := range recordPaths(left[service]) {
		table += recordRow(path, of)
		left[service] = slices.DeleteFunc(left[service], func(o operation) bool {
			return o.path == path || o.path == path+"/{id}"
		})
	}
	return table
}

// codeTable lists the codes of faults by status.
func codeTable() string {
	codes := map[int][]string{}
	for _, code := range fault.Codes() {
		codes[fault.Status(code)] = append(codes[fault.Status(code)], "`"+string(code)+"`")
	}
	var table bytes.Buffer
	table.WriteString("| Status | Codes |\n| --- | --- |\n")
	for status := range 600 {
		if codes[status] != nil {
			fmt.Fprintf(&table, "| %d | %s |\n", status, strings.Join(codes[status], ", "))
		}
	}
	return table.String()
}
