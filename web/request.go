package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// requestIDPattern is what a request id may look like: enough for Okapi's
// "123456/circulation;654321/loan-storage", too little to forge log lines.
var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9/;:._-]{1,200}$`)

// readCall reads the call's data from its headers. It replaces a request id that is
// missing or unusable. checkHeaders reads the permissions.
func readCall(r *http.Request) okapi.Call {
	info := okapi.Call{
		RequestID: r.Header.Get(okapi.RequestIDHeader),
		Token:     r.Header.Get(okapi.TokenHeader),
	}
	if !requestIDPattern.MatchString(info.RequestID) {
		info.RequestID = uuid.NewString()
	}
	if id, err := uuid.Parse(r.Header.Get(okapi.UserIDHeader)); err == nil {
		info.UserID = id.String()
	}
	return info
}

// requireTenant refuses a call without a usable tenant; there is no default.
func requireTenant(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		name := c.Request().Header.Get(okapi.TenantHeader)
		if name == "" {
			return fault.New(fault.Malformed, "Unable to process request Tenant must be set")
		}
		id, err := okapi.ParseTenant(name)
		if err != nil {
			return fault.New(fault.Malformed, "Header %s: %v", okapi.TenantHeader, err)
		}
		c.SetRequest(c.Request().WithContext(okapi.WithTenant(c.Request().Context(), id)))
		return next(c)
	}
}

// checkQuery refuses a query string that is badly escaped. net/url drops such
// parameters, so a filtered list would become the whole list.
func checkQuery(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if _, err := url.ParseQuery(c.Request().URL.RawQuery); err != nil {
			return fault.Wrap(err, fault.Malformed, "The query string cannot be read: %v", err)
		}
		return next(c)
	}
}

// ReadBody returns the request's JSON body. A body above the limit is TooLarge;
// another content type, an empty body, or anything that is not exactly one JSON
// value in UTF-8 is Malformed.
func ReadBody(c echo.Context) (json.RawMessage, error) {
	if ct := c.Request().Header.Get(echo.HeaderContentType); ct != "" {
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
	if err := Unmarshal(body, new(json.RawMessage)); err != nil {
		return nil, err
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
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fault.New(fault.Malformed, "The body is not valid JSON: %v at byte %d", syntax, syntax.Offset)
	case errors.As(err, &kind):
		field := kind.Field
		if field == "" {
			field = "the body"
		}
		return fault.New(fault.Malformed, "%s must be of type %s, not %s", field, jsonType(kind.Type.Kind().String()), kind.Value)
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
