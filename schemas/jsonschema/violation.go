package jsonschema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
)

// violations converts the leaves of a validation's tree of errors into Details.
func violations(doc any, root *santhosh.ValidationError) error {
	var wrong fault.List
	var walk func(*santhosh.ValidationError)
	walk = func(e *santhosh.ValidationError) {
		if len(e.Causes) == 0 {
			wrong = append(wrong, violation(doc, e)...)
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(root)
	return wrong.Err()
}

// numberText is a number of JSON in its plain form.
var numberText = regexp.MustCompile(`^-?(0|[1-9]\d{0,29})(\.\d{1,30})?$`)

// readTexts reads the texts in doc that stand where a schema wants a number or a boolean, and drops empty
// ones there and in place of dates. It reports whether it changed doc.
func readTexts(doc any, e *santhosh.ValidationError) (changed bool) {
	for _, cause := range e.Causes {
		changed = readTexts(doc, cause) || changed
	}
	var want string
	switch wrong := e.ErrorKind.(type) {
	case *kind.Type:
		want = wrong.Want[0] // a record's property has one
	case *kind.Format:
		want = wrong.Want
	}
	last := max(len(e.InstanceLocation)-1, 0)
	object, _ := valueAt(doc, e.InstanceLocation[:last]).(map[string]any)
	name := strings.Join(e.InstanceLocation[last:], "")
	text, ok := object[name].(string)
	number := want == "number" || want == "integer"
	switch {
	case !ok:
		return changed
	case text == "" && (number || want == "boolean" || want == "date-time"):
		delete(object, name)
	case want == "boolean" && (text == "true" || text == "false"):
		object[name] = text == "true"
	case number && numberText.MatchString(text):
		object[name] = json.Number(text)
	default:
		return changed
	}
	return true
}

// violation describes one leaf; a list of missing properties is one each.
func violation(doc any, e *santhosh.ValidationError) fault.List {
	code := strings.Join(e.ErrorKind.KeywordPath(), ".")
	if missing, ok := e.ErrorKind.(*kind.Required); ok {
		return convert.All(missing.Missing, func(property string) fault.Detail {
			key := jsonPath(doc, append(slices.Clip(e.InstanceLocation), property))
			return fault.TypedDetail(code, key+" is required", fault.Parameter{Key: key})
		})
	}
	key := jsonPath(doc, e.InstanceLocation)
	return fault.List{fault.TypedDetail(code, key+" "+rule(e.ErrorKind), fault.Param(key, fault.Shown(valueAt(doc, e.InstanceLocation))))}
}

// rule says what a violated keyword allows.
func rule(k santhosh.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return fmt.Sprintf("must be of type %s, not %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Enum:
		return "must be one of: " + strings.Join(convert.All(k.Want, fault.Shown), ", ")
	case *kind.Format:
		return k.Err.Error()
	case *kind.MinLength:
		return fmt.Sprintf("must have %d or more characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters, not %d", k.Want, k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have %d or more elements", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d elements, not %d", k.Want, k.Got)
	case *kind.Minimum:
		return "must be at least " + decimal(k.Want)
	case *kind.Maximum:
		return "must be at most " + decimal(k.Want)
	}
	return "breaks the rule " + strings.Join(k.KeywordPath(), ".")
}

func decimal(r *big.Rat) string { return r.FloatString(0) } // our bounds are integers

// jsonPath writes a location with dots and [i]; "$" is the whole document. doc
// distinguishes an array's index from a property of the same name.
func jsonPath(doc any, location []string) string {
	var b strings.Builder
	for _, token := range location {
		if list, ok := doc.([]any); ok {
			b.WriteString("[" + token + "]")
			doc = element(list, token)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
		object, _ := doc.(map[string]any)
		doc = object[token]
	}
	if b.Len() == 0 {
		return "$"
	}
	return fault.Shown(b.String())
}

func valueAt(doc any, location []string) any {
	for _, token := range location {
		switch v := doc.(type) {
		case map[string]any:
			doc = v[token]
		case []any:
			doc = element(v, token)
		}
	}
	return doc
}

func element(list []any, index string) any {
	if i, err := strconv.Atoi(index); err == nil && i >= 0 && i < len(list) {
		return list[i]
	}
	return nil
}
