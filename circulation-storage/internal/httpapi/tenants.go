// Package httpapi is circulation-storage's HTTP front: its routes, and how requests and
// answers look. It knows the domain packages, not PostgreSQL.
package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

// Refuser knows which tenants are not served, and why.
type Refuser interface {
	// Check returns why the tenant in ctx is not served, nil when it is.
	Check(ctx context.Context) error
	// Explain returns err, or why the tenant in ctx is not served if that is the
	// cause.
	Explain(ctx context.Context, err error) error
}

// ForServedTenants returns the routes, which refuse tenants that are not served.
func ForServedTenants(r Refuser, routes []web.Route) []web.Route {
	return web.WithGuard(routes, func(route web.Route) echo.MiddlewareFunc {
		return func(next echo.HandlerFunc) echo.HandlerFunc {
			if route.NoTenant {
				return next
			}
			return func(c echo.Context) error {
				ctx := c.Request().Context()
				if err := r.Check(ctx); err != nil {
					return err
				}
				if err := next(c); err != nil {
					return r.Explain(ctx, err)
				}
				return nil
			}
		}
	})
}

// Tenants installs and drops what the service keeps for a tenant.
type Tenants interface {
	// Install creates what the tenant lacks; installing again is an upgrade.
	Install(ctx context.Context, id okapi.Tenant) error
	// Purge drops everything of the tenant. One that is not there is no error.
	Purge(ctx context.Context, id okapi.Tenant) error
}

// Loader writes records that come with the service, for the tenant in ctx. It may
// be called again for the same tenant.
type Loader interface {
	LoadReference(ctx context.Context) error
	LoadSample(ctx context.Context) error
}

// tenantAttributes is the body of POST /_/tenant (FOLIO's _tenant 2.0).
type tenantAttributes struct {
	ModuleTo   string `json:"module_to"`
	ModuleFrom string `json:"module_from"`
	Purge      bool   `json:"purge"`
	Parameters []struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	} `json:"parameters"`
}

// wants reports whether the parameter key is "true".
func (a tenantAttributes) wants(key string) bool {
	for _, p := range a.Parameters {
		if p.Key == key {
			return p.Value == "true"
		}
	}
	return false
}

type tenantHandlers struct {
	tenants Tenants
	loader  Loader
}

// TenantRoutes are the calls with which the platform installs, upgrades and
// purges a tenant. The work is done before the answer, because not every caller
// polls for a job; so there are no jobs. timeout bounds the work.
func TenantRoutes(tenants Tenants, loader Loader, timeout time.Duration) []web.Route {
	h := tenantHandlers{tenants: tenants, loader: loader}
	noJob := web.Handle(h.noJob, web.Answer{Status: http.StatusNotFound})
	return []web.Route{
		{
			Method: http.MethodPost, Path: "/_/tenant", Body: tenantAttributes{}, Endpoint: web.Empty(http.StatusNoContent, h.post),
			Timeout: timeout, NoTenant: true,
		},
		{Method: http.MethodGet, Path: "/_/tenant/:id", Endpoint: noJob, NoTenant: true},
		{Method: http.MethodDelete, Path: "/_/tenant/:id", Endpoint: noJob, NoTenant: true},
	}
}

// post handles POST /_/tenant: 204 when the work is done.
func (h tenantHandlers) post(c echo.Context) error {
	id, err := okapi.ParseTenant(c.Request().Header.Get(okapi.TenantHeader))
	if err != nil {
		return fault.New(fault.Malformed, "Header %s: %v", okapi.TenantHeader, err)
	}
	var a tenantAttributes
	if err := web.Decode(c, &a); err != nil {
		return err
	}
	return h.apply(okapi.WithTenant(c.Request().Context(), id), id, a)
}

func (h tenantHandlers) apply(ctx context.Context, id okapi.Tenant, a tenantAttributes) error {
	switch {
	case a.ModuleTo != "" && a.Purge:
		return fault.StorageRefusal("module_to and purge exclude each other: install the tenant or drop it", fault.Param("purge", "true"))
	case a.ModuleTo != "":
		return h.install(ctx, id, a)
	case a.Purge:
		if err := h.tenants.Purge(ctx, id); err != nil {
			return fmt.Errorf("purging: %w", err)
		}
		return nil
	case a.ModuleFrom != "":
		return nil // disabled: the records stay
	}
	return fault.StorageRefusal("one of module_to (install or upgrade), module_from (disable) and purge is required", fault.Param("module_to", ""))
}

func (h tenantHandlers) install(ctx context.Context, id okapi.Tenant, a tenantAttributes) error {
	if err := h.tenants.Install(ctx, id); err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	if a.wants("loadReference") {
		if err := h.loader.LoadReference(ctx); err != nil {
			return fmt.Errorf("loading reference records: %w", err)
		}
	}
	if a.wants("loadSample") {
		if err := h.loader.LoadSample(ctx); err != nil {
			return fmt.Errorf("loading sample records: %w", err)
		}
	}
	return nil
}

// noJob handles GET and DELETE /_/tenant/{id}: there are no jobs.
func (h tenantHandlers) noJob(c echo.Context) error {
	return fault.New(fault.NotFound, "There is no such job: tenant calls are done when they are answered")
}
