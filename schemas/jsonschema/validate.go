// Package jsonschema checks documents against the JSON Schemas of FOLIO's records and
// of the services' own bodies, and decodes them without losing a digit.
package jsonschema

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
)

// The JSON Schemas, draft 2020-12, one file for each kind of document, and the
// definitions they share. Known fields are checked, unknown ones are allowed.
//
//go:embed json/*.json
var files embed.FS

// baseURL makes the schemas refer to each other by file name. Nothing is fetched.
const baseURL = "schema:///"

// Names returns the names that Validate knows, sorted.
func Names() []string {
	paths, _ := fs.Glob(files, "json/*.json") // the pattern is well-formed
	names := make([]string, 0, len(paths))
	for _, path := range paths {
		name := strings.TrimSuffix(strings.TrimPrefix(path, "json/"), ".json")
		if name != "definitions" {
			names = append(names, name)
		}
	}
	return names
}

// Source returns the JSON Schema called name, or the definitions that the others share.
func Source(name string) ([]byte, error) {
	raw, err := files.ReadFile("json/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("reading JSON Schema %s: %w", name, err)
	}
	return raw, nil
}

// Validate checks a JSON document against the schema called name, "item" for
// one, after Decode. It returns nil, Decode's fault, or an Invalid fault with one
// Detail for each violation: its message says what is allowed, its parameter
// names the place (dots and [i]) and the value found there, its code is the
// schema's keyword. Safe for concurrent use.
func Validate(name string, doc []byte) error {
	v, err := Decode(doc)
	if err != nil {
		return err
	}
	return Check(name, v)
}

// ReadChecked is Validate that also reads the document by exact names. Of a property that is there twice,
// both take the last. Faults: those of Validate.
func ReadChecked[T any](name string, doc []byte) (read T, err error) {
	v, err := Decode(doc)
	if err != nil {
		return read, err
	}
	if err := Check(name, v); err != nil {
		return read, err
	}
	once, err := json.Marshal(v)
	if err == nil {
		err = UnmarshalExact(once, &read)
	}
	if err != nil {
		return read, fmt.Errorf("reading a checked document: %w", err)
	}
	return read, nil
}

// Check is Validate for a document that Decode returned.
func Check(name string, doc any) error { return check(name, doc, false) }

// CheckRecord is Check for a record from a client. It first reads the texts of numbers and booleans as
// these, where the schema wants them, and drops empty ones and empty dates. FOLIO's forms send them.
func CheckRecord(name string, record map[string]any) error { return check(name, record, true) }

func check(name string, doc any, reads bool) error {
	schema, err := find(name)
	if err != nil {
		return err
	}
	if allows(schema, doc) {
		return nil
	}
	err = schema.Validate(doc)
	if v, ok := errors.AsType[*santhosh.ValidationError](err); ok {
		if reads && readTexts(doc, v) {
			return check(name, doc, false)
		}
		return violations(doc, v)
	}
	if err != nil {
		return fmt.Errorf("checking against JSON Schema %s: %w", name, err)
	}
	return nil
}

// compiled has a function for each name, which compiles the schema at its first call: a service uses few of
// them. They share the compiler, so one is compiled at a time.
var compiled = sync.OnceValue(func() map[string]func() (*santhosh.Schema, error) {
	var compiling sync.Mutex
	compiler, all := newCompiler(), map[string]func() (*santhosh.Schema, error){}
	for _, name := range Names() {
		all[name] = sync.OnceValues(func() (*santhosh.Schema, error) {
			compiling.Lock()
			defer compiling.Unlock()
			schema, err := compiler.Compile(baseURL + name + ".json")
			if err != nil {
				return nil, fmt.Errorf("compiling JSON Schema %s: %w", name, err)
			}
			return schema, nil
		})
	}
	return all
})

// find returns the compiled JSON Schema called name.
func find(name string) (*santhosh.Schema, error) {
	compile, ok := compiled()[name]
	if !ok {
		return nil, fmt.Errorf("there is no JSON Schema called %q", name)
	}
	return compile()
}

func newCompiler() *santhosh.Compiler {
	c := santhosh.NewCompiler()
	c.AssertFormat()
	for _, f := range formats {
		c.RegisterFormat(&santhosh.Format{Name: f.name, Validate: func(v any) error {
			if s, ok := v.(string); ok && !f.fits(s) { // a format says nothing about other types
				return errors.New(f.rule)
			}
			return nil
		}})
	}
	c.UseLoader(embedded{})
	return c
}

// embedded loads the schemas of the package by their URL.
type embedded struct{}

func (embedded) Load(url string) (doc any, err error) {
	raw, err := Source(strings.TrimSuffix(strings.TrimPrefix(url, baseURL), ".json"))
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(raw, &doc)
	return doc, err
}
