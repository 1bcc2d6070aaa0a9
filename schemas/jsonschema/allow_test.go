package jsonschema_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

func TestCheck_AllocatesNothingForARightDocument(t *testing.T) { //nolint:paralleltest // it counts allocations
	for name, text := range map[string]string{
		"check-out": with("check-out", `"lockId":"`+someID+`","limits":[{"max":15},{"max":3,"lost":true}],"recalled":false`),
		"loan":      with("loan", `"status":{"name":"Open"},"dueDate":"2026-08-22T10:11:12Z","renewalCount":0`),
	} {
		doc, err := jsonschema.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { err = jsonschema.Check(name, doc) }); n != 0 || err != nil {
			t.Errorf("%s: a check allocates %v times (%v)", name, n, err)
		}
	}
}

func TestValidate_RefusesWhatAnyKeywordForbids(t *testing.T) {
	t.Parallel()
	limits := strings.Repeat(`{"max":1},`, 20) + `{"max":1}`
	for _, tt := range []struct{ keyword, schema, doc string }{
		{keyword: "maxItems", schema: "check-out", doc: with("check-out", `"limits":[`+limits+`]`)},
		{keyword: "minItems", schema: "request-batch", doc: `{"requests":[]}`},
		{keyword: "pattern", schema: "past-check-out", doc: with("past-check-out", `"outcome":"Lent"`)},
		{keyword: "if", schema: "request-change", doc: with("request-change", `"request":{"id":"`+someID+`"}`)},
		{
			keyword: "additionalProperties", schema: "self-check-terminal",
			doc: `{"login":"desk-1","name":"Hall","texts":{"machine.busy":3}}`,
		},
		{keyword: "enum", schema: "loan", doc: with("loan", `"status":{"name":true}`)},
	} {
		if err := jsonschema.Validate(tt.schema, []byte(tt.doc)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v for %s, want Invalid", tt.keyword, err, tt.doc)
		}
	}
}

// A keyword that the quick check does not know would be no rule at all.
func TestSchemas_HaveKnownKeywordsOnly(t *testing.T) {
	t.Parallel()
	known := []string{
		"$schema", "$comment", "$defs", "$ref", "title", "type", "properties", "required", "enum", "items", "minimum",
		"maximum", "format", "minLength", "maxLength", "maxItems", "minItems", "pattern", "if", "then", "not", "const",
		"additionalProperties",
	}
	var walk func(place string, schema any)
	walk = func(place string, schema any) {
		object, _ := schema.(map[string]any)
		for keyword, value := range object {
			if !slices.Contains(known, keyword) {
				t.Errorf("%s has the keyword %s", place, keyword)
			}
			switch keyword {
			case "properties", "$defs":
				members, _ := value.(map[string]any)
				for name, member := range members {
					walk(place+"."+name, member)
				}
			case "items", "if", "then", "not", "additionalProperties":
				walk(place+"."+keyword, value)
			}
		}
	}
	for _, name := range append(jsonschema.Names(), "definitions") {
		raw, err := os.ReadFile("json/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var schema any
		if err := json.Unmarshal(raw, &schema); err != nil {
			t.Fatal(err)
		}
		walk(name, schema)
	}
}
