package web

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
)

// jsonSerializer writes each JSON answer in one piece, with its length.
type jsonSerializer struct{ echo.DefaultJSONSerializer }

// answers are the buffers of answers that were written.
var answers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// keptAnswer is the size in bytes of the largest buffer that is kept for the next answer.
const keptAnswer = 64 << 10

// Serialize implements echo.JSONSerializer.
func (s jsonSerializer) Serialize(c echo.Context, v any, indent string) error {
	if indent != "" {
		return s.DefaultJSONSerializer.Serialize(c, v, indent)
	}
	body, _ := answers.Get().(*bytes.Buffer)
	defer func() {
		if body.Cap() <= keptAnswer {
			body.Reset()
			answers.Put(body)
		}
	}()
	if err := writeValue(body, reflect.ValueOf(v)); err != nil {
		return err
	}
	body.WriteByte('\n')
	c.Response().Header().Set(echo.HeaderContentLength, strconv.Itoa(body.Len()))
	_, err := c.Response().Write(body.Bytes())
	return err
}

var (
	rawType  = reflect.TypeFor[json.RawMessage]()
	rawsType = reflect.TypeFor[[]json.RawMessage]()
)

// writeValue writes v as encoding/json does, except for a json.RawMessage: it stays as it is. It came
// from the database or from storage, so it is valid, and encoding/json would parse it again.
func writeValue(to *bytes.Buffer, v reflect.Value) error {
	var fields []rawField
	switch {
	case !v.IsValid():
	case v.Type() == rawType && v.Len() > 0:
		to.Write(v.Bytes())
		return nil
	case v.Type() == rawsType && !v.IsNil():
		return writeList(to, v)
	case v.Kind() == reflect.Struct:
		fields = rawFieldsOf(v.Type())
	}
	if fields != nil {
		return writeFields(to, v, fields)
	}
	var value any // nil if v is not valid
	if v.IsValid() {
		value = v.Interface()
	}
	err := json.NewEncoder(to).Encode(value)
	if err == nil {
		to.Truncate(to.Len() - 1) // the line's end
	}
	return err
}

func writeList(to *bytes.Buffer, list reflect.Value) error {
	to.WriteByte('[')
	for i := range list.Len() {
		if i > 0 {
			to.WriteByte(',')
		}
		if err := writeValue(to, list.Index(i)); err != nil {
			return err
		}
	}
	to.WriteByte(']')
	return nil
}

func writeFields(to *bytes.Buffer, v reflect.Value, fields []rawField) error {
	to.WriteByte('{')
	separator := ""
	for _, f := range fields {
		value := v.Field(f.index)
		if f.omitEmpty && isEmpty(value) {
			continue
		}
		to.WriteString(separator)
		to.WriteString(f.key)
		separator = ","
		if err := writeValue(to, value); err != nil {
			return err
		}
	}
	to.WriteByte('}')
	return nil
}

// isEmpty is what encoding/json means by omitempty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String, reflect.Array:
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}

// rawField is a field of a struct that has a json.RawMessage, or a list of them.
type rawField struct {
	index     int
	key       string // as it is written, with quotes and colon
	omitEmpty bool
}

var rawFields sync.Map // reflect.Type to []rawField

// rawFieldsOf returns the fields of a struct that writeFields writes; nil leaves the struct to
// encoding/json.
func rawFieldsOf(t reflect.Type) []rawField {
	known, ok := rawFields.Load(t)
	if !ok {
		known, _ = rawFields.LoadOrStore(t, listRawFields(t))
	}
	fields, _ := known.([]rawField)
	return fields
}

func listRawFields(t reflect.Type) []rawField {
	var fields []rawField
	hasRaw := false
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "" || name == "-" || option != "" && option != "omitempty" {
			return nil
		}
		hasRaw = hasRaw || f.Type == rawType || f.Type == rawsType
		fields = append(fields, rawField{i, strconv.Quote(name) + ":", option != ""})
	}
	if !hasRaw || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
		return nil
	}
	return fields
}
