package describe

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

// object is a JSON object.
type object = map[string]any

// OpenAPI returns the description of the routes and of those that all services have, in OpenAPI 3.1.
// The service answers it at OpenAPIPath.
func (m Module) OpenAPI() (map[string]any, error) {
	routes, err := m.ListRoutes()
	if err != nil {
		return nil, err
	}
	c, err := newComponents(m.Records)
	if err != nil {
		return nil, err
	}
	parameters, paths := object{}, object{}
	for _, p := range tenantHeaders {
		parameters[p.Name] = describeParameter(p, "header")
	}
	for _, r := range slices.Concat(routes, web.PlatformRoutes(web.Options{})) {
		operation, err := m.operation(c, r)
		if err != nil {
			return nil, fmt.Errorf("describing %s %s: %w", r.Method, r.Path, err)
		}
		path := Path(r.Path)
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path].(object)[strings.ToLower(r.Method)] = operation //nolint:forcetypeassert // it is one
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": m.Title, "version": Version,
			"description": "Each GET has HEAD too. A path that is not here is 404, a method that is not here 405.",
		},
		"paths": paths,
		"components": object{
			"schemas": c.schemas, "examples": c.refusalExamples(), "headers": commonHeaders, "parameters": parameters,
		},
	}, nil
}

// operation describes a route.
func (m Module) operation(c *components, r web.Route) (object, error) {
	o := object{"operationId": operationID(r), "tags": []string{cmp.Or(r.Interface, m.Own)}}
	if r.Permission != "" {
		o["description"] = "Permission: " + r.Permission
	}
	if parameters := describeParameters(r); len(parameters) > 0 {
		o["parameters"] = parameters
	}
	if r.Body != nil {
		schema, err := c.requestSchema(r.Body)
		if err != nil {
			return nil, err
		}
		o["requestBody"] = object{"required": true, "content": object{
			"application/json": object{"schema": schema, "example": c.example(r, "body", r.Body)},
		}}
	}
	responses, err := c.responses(r)
	o["responses"] = responses
	return o, err
}

// operationID names a route by its method and path, because FOLIO uses some permissions twice.
func operationID(r web.Route) string {
	words := strings.FieldsFunc(r.Method+" "+r.Path, func(char rune) bool { return strings.ContainsRune(" /:_*", char) })
	return strings.ToLower(strings.Join(words, "-")) + strings.Repeat("-", strings.Count(r.Path, "/")-len(words)+1)
}

func describeParameters(r web.Route) []object {
	var all []object
	for part := range strings.SplitSeq(Path(r.Path), "/") {
		if strings.HasPrefix(part, "{") {
			all = append(all, object{"name": strings.Trim(part, "{}"), "in": "path", "required": true, "schema": object{"type": "string"}})
		}
	}
	if !r.NoTenant {
		for _, p := range tenantHeaders {
			all = append(all, object{"$ref": "#/components/parameters/" + p.Name})
		}
	}
	for _, p := range r.Headers {
		all = append(all, describeParameter(p, "header"))
	}
	for _, p := range r.Query.Parameters {
		all = append(all, describeParameter(p, "query"))
	}
	return all
}

func describeParameter(p web.Parameter, in string) object {
	return object{"name": p.Name, "in": in, "required": p.Required, "description": p.Meaning, "schema": parameterSchema(p)}
}

// tenantHeaders are the headers that all calls for a tenant may have.
var tenantHeaders = []web.Parameter{
	{Name: okapi.PermissionsHeader, Meaning: "the permissions of the caller, a JSON list of strings"},
	{Name: okapi.RequestIDHeader, Meaning: "finds the call in logs; made if it is missing"},
	{Name: okapi.TenantHeader, Meaning: "the tenant, such as diku", Required: true},
	{Name: okapi.TokenHeader, Meaning: "the gateway's token, which is passed on"},
	{Name: okapi.UserIDHeader, Meaning: "the user who calls", Type: web.UUID},
}

// commonHeaders are those that answers to different calls have alike.
var commonHeaders = object{
	okapi.RequestIDHeader: describeHeader("the request's id, which finds it in logs", true),
	fault.UnchangedHeader: describeHeader("true: the call changed nothing, and will not until the database can write", false),
	"Retry-After":         describeHeader("the seconds after which a repeat makes sense", false),
	"WWW-Authenticate":    describeHeader("how to sign in", true),
}

func describeHeader(meaning string, always bool) object {
	return object{"description": meaning, "required": always, "schema": object{"type": "string"}}
}

// headers describes the headers of an answer: the common ones of its status, and its own.
func headers(status int, own ...web.Parameter) object {
	names := []string{okapi.RequestIDHeader}
	switch status {
	case http.StatusUnauthorized:
		names = append(names, "WWW-Authenticate")
	case http.StatusConflict, http.StatusUnprocessableEntity, http.StatusTooManyRequests:
		names = append(names, "Retry-After")
	case http.StatusServiceUnavailable:
		names = append(names, "Retry-After", fault.UnchangedHeader)
	}
	all := object{}
	for _, name := range names {
		all[name] = object{"$ref": "#/components/headers/" + name}
	}
	for _, p := range own {
		all[p.Name] = describeHeader(p.Meaning, p.Required)
	}
	return all
}

func parameterSchema(p web.Parameter) object {
	switch p.Type {
	case web.Integer:
		return object{"type": "integer", "default": p.Default, "minimum": p.Least, "maximum": p.Most}
	case web.Boolean:
		return object{"type": "boolean"}
	case web.Time:
		return object{"type": "string", "format": "date-time"}
	case web.UUID:
		return object{"type": "string", "format": "uuid"}
	case web.Text:
	}
	s := object{"type": "string"}
	if p.Most > 0 {
		s["minLength"], s["maxLength"] = 1, p.Most
	}
	if p.Allowed != nil {
		s["enum"] = p.Allowed
	}
	return s
}

// responses describes the answers of a route by status. A route without answers shows pages.
func (c *components) responses(r web.Route) (object, error) {
	if len(r.Endpoint.Answers) == 0 {
		return object{"default": object{"description": "A page for people, or a file of one.", "content": object{"*/*": object{}}}}, nil
	}
	all := object{}
	for _, a := range r.Endpoint.Answers {
		described := object{"description": http.StatusText(a.Status), "headers": headers(a.Status, a.Headers...)}
		media, schema, err := c.answerSchema(a.Body)
		if err != nil {
			return nil, err
		}
		if media != "" {
			described["content"] = object{media: object{"schema": schema, "example": c.example(r, strconv.Itoa(a.Status), a.Body)}}
		}
		all[strconv.Itoa(a.Status)] = described
	}
	all["431"] = object{"description": "The address or the headers are too long.", "content": object{
		"text/plain": object{"schema": object{"type": "string"}, "example": "431 Request Header Fields Too Large"},
	}}
	codes := map[int][]string{}
	for _, code := range r.Codes() {
		codes[fault.Status(code)] = append(codes[fault.Status(code)], string(code))
	}
	for status, names := range codes {
		slices.Sort(names)
		all[strconv.Itoa(status)] = c.refusal(r, status, names, all[strconv.Itoa(status)])
	}
	return all, nil
}

// refusal describes the answers with one of the codes. answered is another answer with the status, or nil.
func (c *components) refusal(r web.Route, status int, codes []string, answered any) object {
	schemas, inJSON := []any{c.ref("errors")}, exampleRefs(codes, "")
	other, _ := answered.(object)
	content, _ := other["content"].(object)
	if media, ok := content["application/json"].(object); ok {
		schemas = append(schemas, media["schema"])
	}
	if own := c.example(r, strconv.Itoa(status), nil); own != nil {
		inJSON["own"] = object{"value": own}
	}
	all := headers(status)
	all[fault.Header] = object{"description": "the code", "required": answered == nil, "schema": object{"type": "string", "enum": codes}}
	return object{
		"description": http.StatusText(status) + ": " + strings.Join(codes, ", "),
		"headers":     all,
		"content": object{
			"application/json": object{"schema": object{"anyOf": schemas}, "examples": inJSON},
			"text/plain":       object{"schema": object{"type": "string"}, "examples": exampleRefs(codes, textSuffix)},
		},
	}
}
