package records

import (
	"encoding/json"
	"strconv"
	"strings"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// Record is one decoded JSON object. Numbers are json.Number, so that they keep their
// value.
type Record map[string]any

// Decode reads a record with jsonschema.Decode, which drops nulls and refuses what
// PostgreSQL cannot store. Fault: Invalid for a document that is no object.
func Decode(doc []byte) (Record, error) {
	v, err := jsonschema.Decode(doc)
	if err != nil {
		return nil, err
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, fault.Validation(fault.TypedDetail("type", "the body must be a JSON object", fault.Param("$", fault.Shown(v))))
	}
	return object, nil
}

// Text returns the string at a path with dots, "" if there is none.
func (r Record) Text(path string) string {
	s, _ := r.value(path).(string)
	return s
}

// ID returns the record's id.
func (r Record) ID() string { return r.Text("id") }

// Version returns _version, false if there is none.
func (r Record) Version() (int, bool) {
	switch n := r["_version"].(type) {
	case int:
		return n, true
	case json.Number:
		f, err := strconv.ParseFloat(n.String(), 64) // an integer may be written 2.0
		return int(f), err == nil
	}
	return 0, false
}

// Object returns the object at key, nil if there is none. Writing to it writes to the
// record.
func (r Record) Object(key string) Record {
	object, _ := r[key].(map[string]any)
	return object
}

// value returns the value at a path with dots, nil if there is none.
func (r Record) value(path string) any {
	var v any = map[string]any(r)
	for key := range strings.SplitSeq(path, ".") {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

// Set stores value under key. It removes the key if value is "".
func (r Record) Set(key, value string) {
	if value == "" {
		delete(r, key)
		return
	}
	r[key] = value
}
