package web

import (
	"bytes"
	"encoding/json"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// DecodeExact is Decode for a body that has one meaning only: see ReadUnique and
// UnmarshalExact.
func DecodeExact(c echo.Context, v any) error {
	body, err := ReadUnique(c)
	if err != nil {
		return err
	}
	return UnmarshalExact(body, v)
}

// DecodeChecked reads the request's JSON body into T and checks it against the schema.
func DecodeChecked[T any](c echo.Context, schema jsonschema.Typed[T]) (T, error) {
	var v T
	if err := Decode(c, &v); err != nil {
		return v, err
	}
	return v, schema.Check(&v)
}

// DecodeStorable is DecodeChecked for texts that PostgreSQL stores. It refuses what
// jsonschema.Decode refuses, half of a surrogate pair for one, which encoding/json
// would replace silently.
func DecodeStorable[T any](c echo.Context, schema jsonschema.Typed[T]) (T, error) {
	var v T
	body, err := ReadBody(c)
	if err != nil {
		return v, err
	}
	if _, err := jsonschema.Decode(body); err != nil {
		return v, err
	}
	if err := Unmarshal(body, &v); err != nil {
		return v, err
	}
	return v, schema.Check(&v)
}

// ReadUnique is ReadBody for a body in which no object has a property twice. A
// repeat is Malformed and named, because programs differ in which one they read.
func ReadUnique(c echo.Context) (json.RawMessage, error) {
	body, err := ReadBody(c)
	if err != nil {
		return nil, err
	}
	if err := checkRepeats(json.NewDecoder(bytes.NewReader(body))); err != nil {
		return nil, err
	}
	return body, nil
}

// checkRepeats reads one value and refuses a repeated property in it.
func checkRepeats(dec *json.Decoder) error {
	token, err := dec.Token()
	if err != nil {
		return refuseJSON(err)
	}
	bracket, opens := token.(json.Delim)
	if !opens {
		return nil
	}
	seen := map[string]bool{}
	for dec.More() {
		if bracket == '{' {
			token, err := dec.Token()
			if err != nil {
				return refuseJSON(err)
			}
			name, _ := token.(string)
			if seen[name] {
				return fault.New(fault.Malformed, "The body has the property %s more than once in one object, allowed is once", fault.Shown(name))
			}
			seen[name] = true
		}
		if err := checkRepeats(dec); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil { // the closing bracket
		return refuseJSON(err)
	}
	return nil
}

func refuseJSON(err error) error {
	return fault.Wrap(err, fault.Malformed, "The body is not valid JSON: %v", err)
}

// UnmarshalExact is Unmarshal that reads a property only under its exact name.
func UnmarshalExact(body []byte, v any) error {
	return describeJSONError(jsonschema.UnmarshalExact(body, v))
}
