package jsonschema

import (
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
)

// The types of JSON values, as compiled schemas have them.
var (
	booleans = typesOf("boolean")
	integers = typesOf("integer", "number")
	texts    = typesOf("string")
	lists    = typesOf("array")
	objects  = typesOf("object")
)

func typesOf(names ...string) (types santhosh.Types) {
	for _, name := range names {
		types.Add(name)
	}
	return types
}

// allows reports whether a schema allows a value, and allocates nothing. Most documents are right, and the
// library takes memory for each of their values. It is false for what is wrong, and also for what only
// the library judges: rare keywords, null, and numbers that are no plain integers.
//
// The keywords that it knows are those of Typed, and enum of texts.
func allows(s *santhosh.Schema, value any) bool {
	if s.Bool != nil {
		return *s.Bool
	}
	if s.Not != nil || s.If != nil || s.Const != nil || s.MinItems != nil || s.AdditionalProperties != nil ||
		s.Ref != nil && !allows(s.Ref, value) {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		return allowsType(s, objects) && allowsProperties(s, v)
	case []any:
		return allowsType(s, lists) && allowsElements(s, v)
	case string:
		return allowsType(s, texts) && allowsLength(s, v) && (s.Pattern == nil || s.Pattern.MatchString(v)) &&
			(s.Format == nil || s.Format.Validate(value) == nil) && (s.Enum == nil || slices.Contains(s.Enum.Values, value))
	case json.Number:
		return allowsType(s, integers) && allowsInteger(s, v)
	case bool:
		return allowsType(s, booleans)
	}
	return false
}

func allowsType(s *santhosh.Schema, types santhosh.Types) bool {
	return (s.Types == nil || *s.Types&types != 0) && (s.Enum == nil || types == texts)
}

func allowsProperties(s *santhosh.Schema, object map[string]any) bool {
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			return false
		}
	}
	for name, value := range object {
		if property := s.Properties[name]; property != nil && !allows(property, value) {
			return false
		}
	}
	return true
}

func allowsElements(s *santhosh.Schema, list []any) bool {
	if s.MaxItems != nil && len(list) > *s.MaxItems {
		return false
	}
	return s.Items2020 == nil || !slices.ContainsFunc(list, func(element any) bool { return !allows(s.Items2020, element) })
}

func allowsLength(s *santhosh.Schema, text string) bool {
	n := utf8.RuneCountInString(text)
	return (s.MinLength == nil || n >= *s.MinLength) && (s.MaxLength == nil || n <= *s.MaxLength)
}

// allowsInteger knows bounds that are integers, as ours are.
func allowsInteger(s *santhosh.Schema, number json.Number) bool {
	n, err := strconv.ParseInt(number.String(), 10, 64)
	return err == nil && (s.Minimum == nil || n >= s.Minimum.Num().Int64()) && (s.Maximum == nil || n <= s.Maximum.Num().Int64())
}
