// Package openapi checks the answers of the services against their OpenAPI documents.
package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	storage "checkoutlock/circulation-storage/app"
	circulation "checkoutlock/circulation/app"
	"checkoutlock/schemas/fault"
)

// Checker knows the documents of circulation and circulation-storage. It is safe for concurrent use.
type Checker struct{ operations map[string][]operation } // by method

// operation is an operation of one of the documents.
type operation struct {
	path      []string // its parts
	responses map[string]response
}

type response struct {
	Headers map[string]header
	Content map[string]struct{ Schema json.RawMessage }
	schema  *jsonschema.Schema // of JSON; nil for none
}

type header struct {
	Ref      string `json:"$ref"`
	Required bool
	Schema   struct{ Enum []string }
}

// NewChecker compiles the schemas of all answers, so that a check takes microseconds.
func NewChecker() (*Checker, error) {
	c := &Checker{operations: map[string][]operation{}}
	for name, read := range map[string]func() (map[string]any, error){
		"circulation": circulation.Module().OpenAPI, "circulation-storage": storage.Module().OpenAPI,
	} {
		doc, err := read()
		if err == nil {
			err = c.add("openapi:///"+name+".json", doc)
		}
		if err != nil {
			return nil, fmt.Errorf("the OpenAPI document of %s: %w", name, err)
		}
	}
	return c, nil
}

func (c *Checker) add(url string, doc map[string]any) error {
	raw, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(url, plain); err != nil {
		return err
	}
	var typed struct {
		Paths      map[string]map[string]struct{ Responses map[string]response }
		Components struct{ Headers map[string]header }
	}
	if err := json.Unmarshal(raw, &typed); err != nil {
		return err
	}
	compiled := map[string]*jsonschema.Schema{}
	for path, methods := range typed.Paths {
		for method, described := range methods {
			for status, r := range described.Responses {
				for name, h := range r.Headers {
					if h.Ref != "" {
						r.Headers[name] = typed.Components.Headers[strings.TrimPrefix(h.Ref, "#/components/headers/")]
					}
				}
				content, ok := r.Content["application/json"]
				if !ok {
					continue
				}
				at := fmt.Sprintf("%s#/paths/%s/%s/responses/%s/content/application~1json/schema",
					url, strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(path), method, status)
				same := string(content.Schema) // most refusals are described alike
				if compiled[same] == nil {
					if compiled[same], err = compiler.Compile(at); err != nil {
						return err
					}
				}
				r.schema = compiled[same]
				described.Responses[status] = r
			}
			o := operation{responses: described.Responses}
			for part := range strings.SplitSeq(path, "/") {
				if strings.HasPrefix(part, "{") {
					part = parameter
				}
				o.path = append(o.path, part)
			}
			method = strings.ToUpper(method)
			c.operations[method] = append(c.operations[method], o)
		}
	}
	return nil
}

// mutexPath is that of the mutex, whose published protocol has no document here.
const mutexPath = "/api/lock/"

// Check returns why no document describes the answer to a request. Both documents have some paths,
// so the answer may be that of either.
func (c *Checker) Check(r *http.Request, status int, header http.Header, body []byte) error {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if strings.HasPrefix(r.URL.Path, mutexPath) {
		return nil
	}
	found := c.find(method, r.URL.EscapedPath())
	if len(found) == 0 {
		switch status {
		case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestHeaderFieldsTooLarge:
			return nil
		}
		return fmt.Errorf("%s %s is not described, but answered %d", r.Method, r.URL.Path, status)
	}
	var errs []error
	for _, o := range found {
		err := o.check(r.Method, status, header, body)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("the answer to %s %s is not described: %w: %.300s", r.Method, r.URL.Path, errors.Join(errs...), body)
}

// find returns the operations with the fewest parameters that the path fits.
func (c *Checker) find(method, path string) []operation {
	parts := strings.Split(path, "/")
	var found []operation
	least := math.MaxInt
	for _, o := range c.operations[method] {
		parameters, ok := o.match(parts)
		if !ok || parameters > least {
			continue
		}
		if parameters < least {
			found, least = nil, parameters
		}
		found = append(found, o)
	}
	return found
}

// parameter stands for a parameter in the parts of a path.
const parameter = "{}"

// match counts the parameters of a path. As in Echo, a parameter at the end takes all that is left.
func (o operation) match(parts []string) (parameters int, ok bool) {
	last := len(o.path) - 1
	if more := len(parts) - len(o.path); more > 0 && last > 0 && o.path[last] == parameter {
		parts, parameters = parts[:len(o.path)], more
	}
	if len(parts) != len(o.path) {
		return 0, false
	}
	for i, part := range o.path {
		switch {
		case part == parameter:
			parameters++
		case part != parts[i]:
			return 0, false
		}
	}
	return parameters, true
}

func (o operation) check(method string, status int, header http.Header, body []byte) error {
	described, ok := o.responses[strconv.Itoa(status)]
	if !ok {
		if _, ok := o.responses["default"]; ok {
			return nil
		}
		return fmt.Errorf("the status %d with the code %q", status, header.Get(fault.Header))
	}
	for name, h := range described.Headers {
		if h.Required && header.Get(name) == "" {
			return fmt.Errorf("no header %s of %d", name, status)
		}
	}
	if code := header.Get(fault.Header); code != "" && !slices.Contains(described.Headers[fault.Header].Schema.Enum, code) {
		return fmt.Errorf("the code %s of %d", code, status)
	}
	if method == http.MethodHead || len(body) == 0 && len(described.Content) == 0 {
		return nil
	}
	media, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if _, ok := described.Content[media]; !ok {
		return fmt.Errorf("the type %q of %d", media, status)
	}
	if media != "application/json" {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return described.schema.Validate(doc)
}
