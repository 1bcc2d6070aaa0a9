package openapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	storage "checkoutlock/circulation-storage/app"
	circulation "checkoutlock/circulation/app"
	locks "checkoutlock/resource-locks/app"
	"checkoutlock/schemas/fault"
)

// described is an operation with the examples of its body and answers.
type described struct {
	RequestBody struct{ Content map[string]media }
	Responses   map[string]struct {
		Headers map[string]header
		Content map[string]media
	}
}

type media struct {
	Schema   json.RawMessage
	Example  json.RawMessage
	Examples map[string]example
}

type example struct {
	Ref   string `json:"$ref"`
	Value json.RawMessage
}

// Each body and each answer of all services has an example that keeps to its schema, except pages. A
// refusal has one for each of its codes.
func TestExamples_KeepToTheirSchemas(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../web/describe/examples.json")
	if err != nil {
		t.Fatal(err)
	}
	var unused struct {
		Operations map[string]map[string]json.RawMessage
		Refusals   map[fault.Code]string
	}
	if err := json.Unmarshal(raw, &unused); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() (map[string]any, error){
		"circulation": circulation.Module().OpenAPI, "circulation-storage": storage.Module().OpenAPI,
		"resource-locks": locks.Module().OpenAPI,
	} {
		doc, err := read()
		if err != nil {
			t.Fatal(err)
		}
		e := newExamples(t, name, doc)
		for path, methods := range e.Paths {
			for method, o := range methods {
				key := strings.ToUpper(method) + " " + path
				at := []string{"paths", path, method}
				e.check(t, key+" body", append(at, "requestBody"), o.RequestBody.Content, nil)
				delete(unused.Operations[key], "body")
				for status, r := range o.Responses {
					codes := r.Headers[fault.Header].Schema.Enum
					e.check(t, key+" "+status, append(at, "responses", status), r.Content, codes)
					delete(unused.Operations[key], status)
				}
			}
		}
	}
	for key, parts := range unused.Operations {
		for part := range parts {
			t.Errorf("nothing has the example of %s of %s", part, key)
		}
	}
	for _, code := range fault.Codes() {
		delete(unused.Refusals, code)
	}
	for code := range unused.Refusals {
		t.Errorf("%q has an example and is no code", code)
	}
}

// examples are a document's operations with the compiler of its schemas.
type examples struct {
	name       string // of the service
	Paths      map[string]map[string]described
	Components struct{ Examples map[string]example }
	compiler   *jsonschema.Compiler
	compiled   map[string]*jsonschema.Schema // by their JSON, because most are alike
}

func newExamples(t *testing.T, name string, doc map[string]any) *examples {
	t.Helper()
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	e := &examples{name: name, compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	if err := json.Unmarshal(raw, e); err != nil {
		t.Fatal(err)
	}
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.compiler.AddResource("openapi:///doc.json", plain); err != nil {
		t.Fatal(err)
	}
	return e
}

// check fails the test unless the content at a place of the document has examples that keep to its
// schemas: one for each code, or one if there is none.
func (e *examples) check(t *testing.T, what string, at []string, content map[string]media, codes []string) {
	t.Helper()
	for kind, m := range content {
		if kind == "*/*" {
			continue // a page for people
		}
		schema := e.schema(t, append(at, "content", kind, "schema"), m.Schema)
		for name, ex := range m.Examples {
			if ex.Ref != "" {
				ex = e.Components.Examples[strings.TrimPrefix(ex.Ref, "#/components/examples/")]
			}
			checkExample(t, what+" "+name, schema, ex.Value)
		}
		named := slices.Sorted(maps.Keys(m.Examples))
		for _, code := range codes {
			if _, ok := m.Examples[code]; !ok {
				t.Errorf("%s: %s: %s has no example of %s, but of %v", e.name, what, kind, code, named)
			}
		}
		if len(codes) == 0 || m.Example != nil {
			checkExample(t, e.name+": "+what+" "+kind, schema, m.Example)
		}
	}
}

func checkExample(t *testing.T, what string, schema *jsonschema.Schema, example json.RawMessage) {
	t.Helper()
	if len(example) == 0 || string(example) == "null" {
		t.Errorf("%s has no example", what)
		return
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(example))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("the example of %s: %v", what, err)
	}
}

// schema returns the compiled schema at a place of the document.
func (e *examples) schema(t *testing.T, at []string, source json.RawMessage) *jsonschema.Schema {
	t.Helper()
	if known, ok := e.compiled[string(source)]; ok {
		return known
	}
	pointer := ""
	for _, part := range at {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(part)
	}
	schema, err := e.compiler.Compile("openapi:///doc.json#" + pointer)
	if err != nil {
		t.Fatal(err)
	}
	e.compiled[string(source)] = schema
	return schema
}
