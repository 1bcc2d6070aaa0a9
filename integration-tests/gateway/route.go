package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web/describe"
)

// route is a handler of a module.
type route struct {
	module  *module
	handler describe.Handler
	pattern *regexp.Regexp
	literal int // the length of the path before its first parameter
	system  bool
}

// pathParameter is a part of a path that may be any text: {id} without a slash, * with slashes.
var pathParameter = regexp.MustCompile(`\{\w+\}|\*`)

func newRoute(m *module, h describe.Handler, system bool) (route, error) {
	r := route{module: m, handler: h, system: system, literal: len(h.Path)}
	expression, end := "^", 0
	for i, at := range pathParameter.FindAllStringIndex(h.Path, -1) {
		if i == 0 {
			r.literal = at[0]
		}
		any := "[^/]+"
		if h.Path[at[0]] == '*' {
			any = ".*"
		}
		expression += regexp.QuoteMeta(h.Path[end:at[0]]) + any
		end = at[1]
	}
	pattern, err := regexp.Compile(expression + regexp.QuoteMeta(h.Path[end:]) + "$")
	r.pattern = pattern
	return r, err
}

// find returns the route with the longest literal beginning, as Okapi does. Of two, it is the
// one registered first.
func (g *Gateway) find(method, path string) (route, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.routes, func(r route) bool {
		return !r.system && slices.Contains(r.handler.Methods, method) && r.pattern.MatchString(path)
	})
	if i < 0 {
		return route{}, false
	}
	return g.routes[i], true
}

// refusal is an answer of the gateway itself.
type refusal struct {
	status int
	text   string
}

// admit returns the route of a request and what its caller may do.
func (g *Gateway) admit(r *http.Request) (route, grant, *refusal) {
	tenant := r.Header.Get(okapi.TenantHeader)
	token := r.Header.Get(okapi.TokenHeader)
	g.mu.Lock()
	caller, known := g.grants[token]
	enabled := g.enabled[tenant]
	g.mu.Unlock()
	if tenant != "" && !enabled {
		return route{}, caller, &refusal{http.StatusBadRequest, fmt.Sprintf("No such tenant %q", tenant)}
	}
	found, ok := g.find(r.Method, r.URL.EscapedPath())
	switch {
	case !ok:
		return found, caller, &refusal{http.StatusNotFound, "No suitable module found for this path and method"}
	case token != "" && !known:
		return found, caller, &refusal{http.StatusUnauthorized, "Invalid token"}
	case known && caller.tenant != tenant:
		return found, caller, &refusal{http.StatusForbidden, "The token is one of the tenant " + caller.tenant}
	case !strings.HasPrefix(r.Header.Get(okapi.RequestIDHeader), caller.request):
		return found, caller, &refusal{http.StatusBadRequest, "The module sent another request id than " + caller.request}
	}
	for _, p := range found.handler.Required {
		switch {
		case !known:
			return found, caller, &refusal{http.StatusUnauthorized, "A token is required"}
		case !caller.permissions[p]:
			return found, caller, &refusal{http.StatusForbidden, "Access requires permission: " + p}
		}
	}
	return found, caller, nil
}

// newRequestID returns the id that a request has got so far, and one more.
func newRequestID(sent, path string) string {
	if sent != "" {
		sent += ";"
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return fmt.Sprintf("%s%06d/%s", sent, rand.IntN(1_000_000), first) //nolint:gosec // no secret
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found, caller, refused := g.admit(r)
	if refused != nil {
		g.addProblem(r.Header.Get(okapi.TenantHeader), fmt.Sprintf("%s %s (request id %q): %d %s",
			r.Method, r.URL.Path, r.Header.Get(okapi.RequestIDHeader), refused.status, refused.text))
		http.Error(w, refused.text, refused.status)
		return
	}
	target, err := url.Parse(found.module.url)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	proxy := httputil.ReverseProxy{
		Transport: g.proxy, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Header.Del("Accept-Encoding") // checkAnswer reads the body
			g.setHeaders(p.Out.Header, found, caller)
		},
		ModifyResponse: func(resp *http.Response) error { return g.checkAnswer(r, caller, resp) },
	}
	proxy.ServeHTTP(w, r)
}

// setHeaders makes the headers of a request those of the gateway.
func (g *Gateway) setHeaders(h http.Header, to route, caller grant) {
	tenant := h.Get(okapi.TenantHeader)
	id := newRequestID(h.Get(okapi.RequestIDHeader), to.handler.Path)
	for name := range h {
		if strings.HasPrefix(name, "X-Okapi-") {
			h.Del(name)
		}
	}
	h.Set(okapi.TenantHeader, tenant)
	h.Set(okapi.RequestIDHeader, id)
	h.Set("X-Okapi-Url", g.url)
	h.Set(okapi.TokenHeader, g.addGrant(grant{tenant: tenant, userID: caller.userID, request: id}, to.handler.Module))
	if caller.userID != "" {
		h.Set(okapi.UserIDHeader, caller.userID)
	}
	granted := []string{}
	for _, p := range to.handler.Desired {
		if caller.permissions[p] {
			granted = append(granted, p)
		}
	}
	list, _ := json.Marshal(granted) //nolint:errchkjson // strings have JSON
	h.Set(okapi.PermissionsHeader, string(list))
}

// checkAnswer records an answer that no OpenAPI document describes.
func (g *Gateway) checkAnswer(r *http.Request, caller grant, resp *http.Response) error {
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	_ = resp.Body.Close() // it is read
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if err := g.check(r, stack.Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}); err != nil {
		g.addProblem(caller.tenant, err.Error())
	}
	return nil
}
