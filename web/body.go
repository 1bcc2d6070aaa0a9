package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// ReadBody returns the request's body, whose JSON the caller parses. A body above the limit is TooLarge;
// another content type, an empty body, or one that is not UTF-8 is Malformed.
func ReadBody(c echo.Context) (json.RawMessage, error) {
	ct := c.Request().Header.Get(echo.HeaderContentType)
	if ct != "" && ct != echo.MIMEApplicationJSON {
		if media, _, err := mime.ParseMediaType(ct); err != nil || media != echo.MIMEApplicationJSON {
			return nil, fault.New(fault.Malformed, "Content-type header must be [\"application/json\"] but it is %q", ct)
		}
	}
	body, err := io.ReadAll(c.Request().Body)
	var limit *http.MaxBytesError
	switch {
	case errors.As(err, &limit):
		return nil, tooLarge(limit.Limit)
	case err != nil:
		return nil, fault.Wrap(err, fault.Malformed, "The body could not be read")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, fault.New(fault.Malformed, "The body is empty; a JSON object is expected")
	}
	if !utf8.Valid(body) { // encoding/json would replace bytes silently
		return nil, fault.New(fault.Malformed, "The body is not valid UTF-8")
	}
	return body, nil
}

// Decode reads the request's JSON body into v. Unknown properties are tolerated,
// as FOLIO tolerates them.
func Decode(c echo.Context, v any) error {
	body, err := ReadBody(c)
	if err != nil {
		return err
	}
	return Unmarshal(body, v)
}

// Unmarshal is json.Unmarshal whose error says where the document is wrong and what was
// expected there.
func Unmarshal(body []byte, v any) error { return describeJSONError(json.Unmarshal(body, v)) }

// describeJSONError turns an error of encoding/json into one for the client.
func describeJSONError(err error) error {
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Type == reflect.TypeFor[time.Time]():
		return fault.New(fault.Malformed, "%s %v, not %s", cmp.Or(kind.Field, "the body"), jsonschema.ErrNoTime, kind.Value)
	case errors.As(err, &syntax):
		return fault.New(fault.Malformed, "The body is not valid JSON: %v at byte %d", syntax, syntax.Offset)
	case errors.As(err, &kind):
		return fault.New(fault.Malformed, "%s must be of type %s, not %s", cmp.Or(kind.Field, "the body"), jsonType(kind.Type.Kind().String()), kind.Value)
	}
	return fault.Wrap(err, fault.Malformed, "The body cannot be read: %v", err)
}

// jsonType names a Go kind as JSON calls it.
func jsonType(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "integer"
	case strings.HasPrefix(kind, "float"):
		return "number"
	case kind == "bool":
		return "boolean"
	case kind == "struct", kind == "map":
		return "object"
	case kind == "slice":
		return "array"
	}
	return kind
}

// DecodeExact is Decode for a body that has one meaning only: see ReadUnique and
// UnmarshalExact.
func DecodeExact(c echo.Context, v any) error {
	body, err := ReadUnique(c)
	if err != nil {
		return err
	}
	if k, keeps := v.(SentKeeper); keeps {
		k.KeepSent(body)
	}
	return UnmarshalExact(body, v)
}

// SentKeeper is a body that keeps how it was sent, for the words of a refusal.
type SentKeeper interface{ KeepSent(body json.RawMessage) }

// DecodeChecked reads the request's JSON body into T and checks it against the schema.
func DecodeChecked[T any](c echo.Context, schema jsonschema.Typed[T]) (T, error) {
	var v T
	if err := Decode(c, &v); err != nil {
		return v, err
	}
	return v, schema.Check(&v)
}

// DecodeStorable is DecodeChecked for texts that PostgreSQL stores. It refuses what
// jsonschema.Decode refuses, for example half of a surrogate pair, which
// encoding/json would replace silently.
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

// FromContext returns the handler of a function that needs nothing else of the request.
func FromContext[T any](f func(context.Context) (T, error)) func(echo.Context) (T, error) {
	return func(c echo.Context) (T, error) { return f(c.Request().Context()) }
}

// FromExact returns the handler of a function that takes what DecodeExact reads.
func FromExact[B, T any](f func(context.Context, B) (T, error)) func(echo.Context) (T, error) {
	return func(c echo.Context) (none T, err error) {
		var body B
		if err := DecodeExact(c, &body); err != nil {
			return none, err
		}
		return f(c.Request().Context(), body)
	}
}

// ReadUnique is ReadBody for a body in which no object has a property twice. A repeat is Malformed and
// named, because programs differ in which one they read. So is what is not exactly one JSON value.
func ReadUnique(c echo.Context) (json.RawMessage, error) {
	body, err := ReadBody(c)
	if err != nil {
		return nil, err
	}
	if !json.Valid(body) {
		return nil, Unmarshal(body, new(json.RawMessage)) // which says what is wrong
	}
	if err := checkRepeats(json.NewDecoder(bytes.NewReader(body))); err != nil {
		return nil, err
	}
	return body, nil
}

// checkRepeats reads one value, which is valid JSON, and refuses a repeated property in it. It also refuses
// a number that is out of range.
func checkRepeats(dec *json.Decoder) error {
	token, err := dec.Token()
	if err != nil {
		return describeJSONError(err)
	}
	bracket, opens := token.(json.Delim)
	if !opens {
		return nil
	}
	seen := map[string]bool{}
	for dec.More() {
		if bracket == '{' {
			token, _ := dec.Token()
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
	_, _ = dec.Token() // the closing bracket
	return nil
}

// UnmarshalExact is Unmarshal that reads a property only under its exact name.
func UnmarshalExact(body []byte, v any) error {
	return describeJSONError(jsonschema.UnmarshalExact(body, v))
}
