package jsonschema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"checkoutlock/schemas/fault"
)

// Typed checks values of a Go type against a JSON Schema. It serves bodies that are
// decoded into a struct: it decodes nothing, allocates nothing for a value that is
// right, and sees exactly what the service works with.
//
// It knows the keywords type, required, properties, items, maxItems, minimum and
// maximum together, minLength, maxLength, pattern, format and $ref. An optional
// property is absent if it is zero.
type Typed[T any] struct {
	Name    string // of the schema
	compile func() (*typedRule, error)
}

// For returns the check of T against the schema called name.
func For[T any](name string) Typed[T] {
	return Typed[T]{name, sync.OnceValues(func() (*typedRule, error) {
		schema, err := find(name)
		if err != nil {
			return nil, err
		}
		return compileRule(schema, reflect.TypeFor[T]())
	})}
}

// maxWrong keeps the answer to a body of which nothing is right readable.
const maxWrong = 100

// Check returns an Invalid fault with a Detail for each violation, at most 100. Its
// details have fault.List's form, as FOLIO's pattern of ids has its own.
func (t Typed[T]) Check(v *T) error {
	rule, err := t.compile()
	if err != nil {
		return fmt.Errorf("compiling JSON Schema %s for %T: %w", t.Name, v, err)
	}
	var wrong fault.List
	rule.check(&wrong, "", reflect.ValueOf(v).Elem())
	return wrong.Err()
}

// BrokenRule returns the rule that a string property would break with value, "" for
// none.
func (t Typed[T]) BrokenRule(property, value string) string {
	rule, err := t.compile()
	if err != nil {
		return err.Error()
	}
	for _, p := range rule.properties {
		if p.name == property {
			return p.rule.textRule(value)
		}
	}
	return "is no property of " + t.Name
}

// typedRule is a schema for a Go type.
type typedRule struct {
	kind       reflect.Kind // of the values; Invalid for any
	properties []typedProperty
	items      *typedRule
	maxItems   *int
	least      int64
	most       int64
	minLength  int
	maxLength  *int
	pattern    santhosh.Regexp
	format     *format
}

type typedProperty struct {
	name     string
	index    int
	required bool
	rule     *typedRule
}

func compileRule(s *santhosh.Schema, t reflect.Type) (*typedRule, error) {
	for s.Ref != nil {
		s = s.Ref
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s.Bool != nil || t == reflect.TypeFor[json.RawMessage]() {
		return &typedRule{}, nil
	}
	if len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) > 0 || s.Not != nil || s.If != nil || s.Enum != nil || s.Const != nil || s.MinItems != nil {
		return nil, fmt.Errorf("%s has a keyword that typed checks do not know", s.Location)
	}
	r := &typedRule{kind: t.Kind(), maxItems: s.MaxItems, maxLength: s.MaxLength, pattern: s.Pattern}
	var err error
	switch kind := t.Kind(); kind {
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			property, ok := s.Properties[name]
			if !ok {
				continue
			}
			p := typedProperty{name: name, index: field.Index[0], required: slices.Contains(s.Required, name)}
			if p.rule, err = compileRule(property, field.Type); err != nil {
				return nil, err
			}
			r.properties = append(r.properties, p)
		}
		if len(r.properties) != len(s.Properties) {
			return nil, fmt.Errorf("%s has properties that %s lacks", s.Location, t)
		}
	case reflect.Slice:
		r.items, err = compileRule(s.Items2020, t.Elem())
	case reflect.Int, reflect.Int64:
		if s.Minimum == nil || s.Maximum == nil {
			return nil, fmt.Errorf("%s lacks a bound", s.Location)
		}
		r.least, r.most = s.Minimum.Num().Int64(), s.Maximum.Num().Int64()
	case reflect.String:
		if s.MinLength != nil {
			r.minLength = *s.MinLength
		}
		for i := range formats {
			if s.Format != nil && s.Format.Name == formats[i].name {
				r.format = &formats[i]
			}
		}
	case reflect.Bool:
	default:
		err = fmt.Errorf("%s: typed checks do not know %s", s.Location, kind)
	}
	return r, err
}

// check adds what is wrong with v. prefix is the path of v and ends with a dot, unless
// it is empty.
func (r *typedRule) check(wrong *fault.List, prefix string, v reflect.Value) {
	for _, p := range r.properties {
		value := v.Field(p.index)
		absent := value.IsZero()
		if absent && !p.required {
			continue
		}
		if value.Kind() == reflect.Pointer && !absent {
			value = value.Elem()
		}
		p.check(wrong, prefix, value, absent)
	}
}

func (p typedProperty) check(wrong *fault.List, prefix string, v reflect.Value, absent bool) {
	rule, shown := "", ""
	switch r := p.rule; v.Kind() {
	case reflect.Pointer: // absent
		rule = "is required"
		if r.kind == reflect.Bool {
			rule = "must be true or false"
		}
	case reflect.Struct:
		r.check(wrong, prefix+p.name+".", v)
	case reflect.Slice:
		switch n := v.Len(); {
		case absent:
			rule = "is required"
		case r.maxItems != nil && n > *r.maxItems:
			rule, shown = fmt.Sprintf("must have at most %d elements, not %d", *r.maxItems, n), strconv.Itoa(n)
		case r.items != nil:
			for i := range n {
				r.items.check(wrong, prefix+p.name+"["+strconv.Itoa(i)+"].", v.Index(i))
			}
		}
	case reflect.Int, reflect.Int64:
		if n := v.Int(); n < r.least || n > r.most {
			rule, shown = fmt.Sprintf("must be from %d to %d", r.least, r.most), strconv.FormatInt(n, 10)
		}
	case reflect.String:
		rule, shown = r.textRule(v.String()), v.String()
	default: // a bool is right
	}
	switch {
	case rule == "" || len(*wrong) >= maxWrong:
	case p.rule.format != nil && p.rule.format.name == folioUUID:
		const folioCode = "jakarta.validation.constraints.Pattern.message"
		*wrong = append(*wrong, fault.TypedDetail(folioCode, rule, fault.Param(prefix+p.name, fault.Shown(shown))))
	default:
		wrong.Add(prefix+p.name, rule, shown)
	}
}

// textRule returns the rule that a string breaks, "" for none.
func (r *typedRule) textRule(s string) string {
	n := utf8.RuneCountInString(s)
	long := r.maxLength != nil && n > *r.maxLength
	misfit := r.format != nil && !r.format.fits(s)
	switch {
	case r.format != nil && r.format.name == printable && (n < r.minLength || long || misfit):
		return fmt.Sprintf("must have %d to %d printable characters", r.minLength, *r.maxLength)
	case long:
		return fmt.Sprintf("must have at most %d characters, not %d", *r.maxLength, n)
	case n < r.minLength:
		return fmt.Sprintf("must have %d or more characters", r.minLength)
	case r.pattern != nil && !r.pattern.MatchString(s):
		return "must match " + r.pattern.String()
	case misfit:
		return r.format.rule
	}
	return ""
}
