package describe

import (
	"cmp"
	_ "embed" // of the examples
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	infer "github.com/google/jsonschema-go/jsonschema"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/web"
)

// components are the schemas that operations refer to, by name, and the examples.
type components struct {
	schemas  object
	examples struct {
		// Operations has those of bodies and of answers by status, for each method and path.
		Operations map[string]map[string]json.RawMessage
		// Records has one for each schema of records; an operation without one of its own shows it.
		Records map[string]json.RawMessage
		// Refusals has a text for each code.
		Refusals map[fault.Code]string
	}
}

//go:embed examples.json
var examples []byte

// newComponents returns all JSON Schemas, and that of errors.
func newComponents(records map[string]json.RawMessage) (*components, error) {
	c := &components{schemas: object{}}
	if err := json.Unmarshal(examples, &c.examples); err != nil {
		return nil, fmt.Errorf("reading the examples: %w", err)
	}
	maps.Copy(c.examples.Records, records)
	for _, name := range append(jsonschema.Names(), "definitions") {
		source, err := jsonschema.Source(name)
		if err != nil {
			return nil, err
		}
		var doc object
		if err := json.Unmarshal(source, &doc); err != nil {
			return nil, fmt.Errorf("reading JSON Schema %s: %w", name, err)
		}
		defs, _ := doc["$defs"].(object)
		delete(doc, "$defs")
		delete(doc, "$schema")
		for def, schema := range defs {
			c.schemas[name+"."+def] = moveRefs(name, schema)
		}
		if name != "definitions" {
			c.schemas[name] = moveRefs(name, doc)
		}
	}
	errors, err := inferSchema(reflect.TypeFor[web.Errors]())
	c.schemas["errors"] = errors
	return c, err
}

func (c *components) ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// example returns that of a route's body, or of its answer with a status; nil for none.
func (c *components) example(r web.Route, of string, body any) any {
	if own, ok := c.examples.Operations[r.Method+" "+Path(r.Path)][of]; ok {
		return own
	}
	switch body := body.(type) {
	case web.Schema:
		if record, ok := c.examples.Records[string(body)]; ok {
			return record
		}
	case web.Collection:
		if record, ok := c.examples.Records[string(body.Of)]; ok {
			return object{body.Key: []any{record}, "totalRecords": 1}
		}
	}
	return nil
}

// refusalExamples returns those that all routes share: a text and FOLIO's errors JSON for each code.
func (c *components) refusalExamples() object {
	all := object{}
	for code, text := range c.examples.Refusals {
		all[string(code)] = object{"value": web.Errors{Errors: fault.List{fault.Refusal(string(code), text)}}}
		all[string(code)+textSuffix] = object{"value": text}
	}
	return all
}

// textSuffix ends the names of examples that are texts.
const textSuffix = ".text"

func exampleRefs(codes []string, suffix string) object {
	all := object{}
	for _, code := range codes {
		all[code] = object{"$ref": "#/components/examples/" + code + suffix}
	}
	return all
}

// moveRefs makes the references of a schema in the file name those of the document.
func moveRefs(name string, v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = moveRefs(name, v[i])
		}
	case object:
		for key, value := range v {
			to, isText := value.(string)
			if key != "$ref" || !isText {
				v[key] = moveRefs(name, value)
				continue
			}
			file, def, _ := strings.Cut(to, "#/$defs/")
			to = strings.TrimSuffix(cmp.Or(file, name), ".json")
			if def != "" {
				to += "." + def
			}
			v[key] = "#/components/schemas/" + to
		}
	}
	return v
}

// answerSchema returns the media type and the schema of an answer's body; no media type for none.
func (c *components) answerSchema(body any) (media string, schema any, err error) {
	switch body := body.(type) {
	case nil:
		return "", nil, nil
	case web.Media:
		return string(body), object{}, nil
	case web.Collection:
		items := object{"type": "object"}
		if body.Of != "" {
			items = c.ref(string(body.Of))
		}
		return "application/json", object{
			"type": "object", "required": []string{body.Key}, "properties": object{
				body.Key:       object{"type": "array", "items": items},
				"totalRecords": c.ref("definitions.count"),
			},
		}, nil
	}
	schema, err = c.bodySchema(body)
	return "application/json", schema, err
}

// requestSchema returns the schema of a request's body. Unknown properties are allowed, and the
// handler knows which are required.
func (c *components) requestSchema(body any) (any, error) {
	schema, err := c.bodySchema(body)
	if _, named := body.(web.Schema); !named {
		relax(schema)
	}
	return schema, err
}

// bodySchema returns the schema that a body names, or that of its Go type.
func (c *components) bodySchema(body any) (any, error) {
	if name, ok := body.(web.Schema); ok {
		return c.ref(string(name)), nil
	}
	return inferSchema(reflect.TypeOf(body))
}

// relax takes from a schema what only answers keep to.
func relax(v any) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			relax(element)
		}
	case object:
		delete(v, "required")
		if v["additionalProperties"] == false {
			delete(v, "additionalProperties")
		}
		for _, value := range v {
			relax(value)
		}
	}
}

// listKnown adds the types below t whose JSON does not follow from their fields: times under names of
// their own.
func listKnown(t reflect.Type, known map[reflect.Type]*infer.Schema) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		listKnown(t.Elem(), known)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Anonymous && f.Type == reflect.TypeFor[time.Time]() {
				known[t] = &infer.Schema{Type: "string"}
				return
			}
			if f.Type != t && f.Type != reflect.TypeFor[time.Time]() {
				listKnown(f.Type, known)
			}
		}
	default:
	}
}

// inferSchema returns the schema of the JSON of a Go type.
func inferSchema(t reflect.Type) (object, error) {
	known := map[reflect.Type]*infer.Schema{reflect.TypeFor[json.RawMessage](): {}}
	listKnown(t, known)
	inferred, err := infer.ForType(t, &infer.ForOptions{TypeSchemas: known})
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(inferred)
	if err != nil {
		return nil, fmt.Errorf("writing the schema of %s: %w", t, err)
	}
	if string(raw) == "true" {
		return object{}, nil
	}
	var schema object
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", t, err)
	}
	return schema, nil
}
