package jsonschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// UnmarshalExact is json.Unmarshal that reads a property only under its exact name, as
// FOLIO does. encoding/json also reads one that differs by case, and prefers it to an
// exact one that stands before it.
func UnmarshalExact(body []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // a number keeps its digits
	var doc any
	if err := dec.Decode(&doc); err != nil || dec.More() {
		return json.Unmarshal(body, v) // which says what is wrong
	}
	exact, err := json.Marshal(keepExact(doc, reflect.TypeOf(v)))
	if err != nil {
		return fmt.Errorf("writing the known properties: %w", err)
	}
	return json.Unmarshal(exact, v)
}

// keepExact drops from doc the properties that t has no field of exactly that name
// for.
func keepExact(doc any, t reflect.Type) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	object, isObject := doc.(map[string]any)
	list, isList := doc.([]any)
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return doc // it reads the value by itself
	case isObject && t.Kind() == reflect.Struct:
		kept := map[string]any{}
		for _, field := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if value, sent := object[name]; sent && name != "-" {
				kept[name] = keepExact(value, field.Type)
			}
		}
		return kept
	case isList && t.Kind() == reflect.Slice:
		for i, element := range list {
			list[i] = keepExact(element, t.Elem())
		}
	}
	return doc
}
