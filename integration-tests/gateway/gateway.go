// Package gateway stands in for the gateway of a FOLIO library in tests. All that it knows about the
// services is in their module descriptors.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web/describe"
)

// Gateway routes the requests of users, and those of modules to each other. It is safe for concurrent
// use.
type Gateway struct {
	url    string
	server *http.Server
	served chan struct{} // closed when the server has ended
	check  func(*http.Request, stack.Answer) error
	proxy  *http.Transport

	mu       sync.Mutex
	modules  []*module // in the order of their registration
	routes   []route   // in the order in which they are tried
	sets     map[string][]string
	expanded map[string]map[string]bool // what lists of permissions permit, by the list
	enabled  map[string]bool            // tenants
	grants   map[string]grant
	problems map[string][]string // by tenant
}

// module is a registered service.
type module struct{ id, url string }

// grant is what a token permits.
type grant struct {
	tenant, userID string
	permissions    map[string]bool
	// request is the id of the request that a module serves with the token; empty for the token of a
	// user.
	request string
}

// Start listens at a free port of loopback. check returns why an answer of a module is not one that
// the services describe.
func Start(ctx context.Context, check func(*http.Request, stack.Answer) error) (*Gateway, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		url: "http://" + listener.Addr().String(), served: make(chan struct{}), check: check,
		proxy: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true},
		sets:  map[string][]string{}, expanded: map[string]map[string]bool{}, enabled: map[string]bool{},
		grants: map[string]grant{}, problems: map[string][]string{},
	}
	g.server = &http.Server{Handler: g, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(g.served)
		_ = g.server.Serve(listener) // Stop ends it
	}()
	return g, nil
}

// URL is the gateway's address.
func (g *Gateway) URL() string { return g.url }

// Stop ends the gateway. Problems that were not read are an error.
func (g *Gateway) Stop() error {
	errs := []error{g.server.Close()}
	<-g.served
	g.proxy.CloseIdleConnections()
	for tenant, problems := range g.problems {
		errs = append(errs, fmt.Errorf("tenant %s: %s", tenant, strings.Join(problems, "\n")))
	}
	return errors.Join(errs...)
}

// Register adds a module that runs at an address. As mod-permissions does, it refuses a permission that
// another module has defined.
func (g *Gateway) Register(d describe.Descriptor, url string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := &module{id: d.ID, url: url}
	g.modules = append(g.modules, m)
	for _, p := range d.Provides {
		for _, h := range p.Handlers {
			r, err := newRoute(m, h, p.Type == "system")
			if err != nil {
				return fmt.Errorf("%s of %s: %w", p.ID, d.ID, err)
			}
			g.routes = append(g.routes, r)
		}
	}
	slices.SortStableFunc(g.routes, func(a, b route) int { return cmp.Compare(b.literal, a.literal) })
	for _, p := range d.PermissionSets {
		if _, defined := g.sets[p.Name]; defined {
			return fmt.Errorf("%s defines %s, as another module does", d.ID, p.Name)
		}
		g.sets[p.Name] = p.Sub
	}
	clear(g.expanded)
	return nil
}

// Enable makes the modules work for a tenant. It calls their _tenant interface.
func (g *Gateway) Enable(ctx context.Context, tenant string) error {
	g.mu.Lock()
	g.enabled[tenant] = true
	modules := slices.Clone(g.modules)
	g.mu.Unlock()
	for _, m := range modules {
		c := stack.Client{Base: m.url, Tenant: tenant, Check: g.check}
		if err := c.InstallTenant(ctx, false); err != nil {
			return fmt.Errorf("enabling %s: %w", m.id, err)
		}
	}
	return nil
}

// AddUser returns the token of a new session of a user with these permissions, or sets of them.
func (g *Gateway) AddUser(tenant, userID string, permissions ...string) (token string) {
	return g.addGrant(grant{tenant: tenant, userID: userID}, permissions)
}

func (g *Gateway) addGrant(of grant, permissions []string) (token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := strings.Join(permissions, " ")
	if g.expanded[list] == nil {
		g.expanded[list] = map[string]bool{}
		g.expand(permissions, g.expanded[list])
	}
	of.permissions = g.expanded[list]
	token = uuid.NewString()
	g.grants[token] = of
	return token
}

// expand adds the permissions, and those in them.
func (g *Gateway) expand(permissions []string, all map[string]bool) {
	for _, p := range permissions {
		if !all[p] {
			all[p] = true
			g.expand(g.sets[p], all)
		}
	}
}

// Required returns the permissions that the handlers of the module require, by its name.
func (g *Gateway) Required(module string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[string]bool{}
	for _, r := range g.routes {
		if strings.HasPrefix(r.module.id, module+"-") {
			for _, p := range r.handler.Required {
				all[p] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// CallTimer calls the timer of a module for the tenant, as if its time had come.
func (g *Gateway) CallTimer(ctx context.Context, tenant, path string) (stack.Answer, error) {
	g.mu.Lock()
	i := slices.IndexFunc(g.routes, func(r route) bool { return r.handler.Delay != "" && r.handler.Path == path })
	if i < 0 {
		g.mu.Unlock()
		return stack.Answer{}, fmt.Errorf("there is no timer %s", path)
	}
	r := g.routes[i]
	g.mu.Unlock()
	id := newRequestID("", path)
	token := g.addGrant(grant{tenant: tenant, request: id}, r.handler.Module)
	c := stack.Client{Base: r.module.url, Tenant: tenant, Check: g.check, Header: http.Header{
		okapi.TokenHeader: {token}, okapi.RequestIDHeader: {id},
	}}
	return c.Do(ctx, r.handler.Methods[0], path, nil)
}

// Problems returns what went wrong for a tenant, and forgets it: requests that were refused, and
// answers that no OpenAPI document describes.
func (g *Gateway) Problems(tenant string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	found := strings.Join(g.problems[tenant], "\n")
	delete(g.problems, tenant)
	return found
}

// addProblem records one. Requests without a tenant are those of operators.
func (g *Gateway) addProblem(tenant, problem string) {
	if tenant == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.problems[tenant] = append(g.problems[tenant], problem)
}
