package openapi

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	storage "checkoutlock/circulation-storage/app"
	circulation "checkoutlock/circulation/app"
)

// described is an operation with the examples of its body and answers.
type described struct {
	RequestBody struct{ Content map[string]media }
	Responses   map[string]struct{ Content map[string]media }
}

type media struct{ Example json.RawMessage }

// Each example keeps to its schema. All bodies and answers of circulation have one.
func TestExamples_KeepToTheirSchemas(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../web/describe/examples.json")
	if err != nil {
		t.Fatal(err)
	}
	var unused map[string]map[string]json.RawMessage
	if err := json.Unmarshal(raw, &unused); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() (map[string]any, error){
		"circulation": circulation.OpenAPI, "circulation-storage": storage.OpenAPI,
	} {
		doc, err := read()
		if err != nil {
			t.Fatal(err)
		}
		e := newExamples(t, doc)
		for path, methods := range e.Paths {
			for method, o := range methods {
				key := strings.ToUpper(method) + " " + path
				parts := map[string]map[string]media{"body": o.RequestBody.Content}
				for status, r := range o.Responses {
					parts[status] = r.Content
				}
				for part, content := range parts {
					at := []string{"paths", path, method, "responses", part}
					if part == "body" {
						at = []string{"paths", path, method, "requestBody"}
					}
					example := content["application/json"].Example
					delete(unused[key], part)
					_, isJSON := content["application/json"]
					isWanted := name == "circulation" && strings.Contains(path, "circulation") && part[0] != '4' && part[0] != '5'
					switch {
					case example != nil:
						e.check(t, key+" "+part, at, example)
					case isJSON && isWanted:
						t.Errorf("%s has no example of %s", key, part)
					}
				}
			}
		}
	}
	for key, parts := range unused {
		for part := range parts {
			t.Errorf("nothing has the example of %s of %s", part, key)
		}
	}
}

// examples are a document's operations with the compiler of its schemas.
type examples struct {
	Paths    map[string]map[string]described
	compiler *jsonschema.Compiler
}

func newExamples(t *testing.T, doc map[string]any) *examples {
	t.Helper()
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	e := &examples{compiler: jsonschema.NewCompiler()}
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

// check fails the test unless the example keeps to the schema of the JSON below that place.
func (e *examples) check(t *testing.T, what string, at []string, example json.RawMessage) {
	t.Helper()
	pointer := ""
	for _, part := range append(at, "content", "application/json", "schema") {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(part)
	}
	schema, err := e.compiler.Compile("openapi:///doc.json#" + pointer)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(example))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("the example of %s: %v", what, err)
	}
}
