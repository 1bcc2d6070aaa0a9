// Package httpapi is circulation-storage's HTTP front: its routes, and how requests and
// answers look. It knows the domain packages, not PostgreSQL.
package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/tenantjob"
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
		if route.NoTenant {
			return func(next echo.HandlerFunc) echo.HandlerFunc { return next }
		}
		return func(next echo.HandlerFunc) echo.HandlerFunc {
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

// Tenants drops what the service keeps for a tenant.
type Tenants interface {
	// Purge drops everything of the tenant. One that is not there is no error.
	Purge(ctx context.Context, id okapi.Tenant) error
}

// InstallPatience is how long POST /_/tenant waits for the job before it answers 201. Gateways wait
// longer for an answer.
const InstallPatience = 5 * time.Second

// maxJobWait is the longest wait of GET /_/tenant/{id}, in ms. It is below the least REQUEST_TIMEOUT.
const maxJobWait = 10_000

// tenantJob is a job as FOLIO's _tenant 2.0 answers it.
type tenantJob struct {
	ID         string               `json:"id"`
	Tenant     string               `json:"tenant"`
	Attributes tenantjob.Attributes `json:"tenantAttributes"`
	Complete   bool                 `json:"complete"`
	Error      string               `json:"error,omitempty"`
}

func describeJob(id okapi.Tenant, job tenantjob.Job) tenantJob {
	return tenantJob{ID: job.ID.String(), Tenant: id.String(), Attributes: job.Attributes, Complete: job.Ended, Error: job.Error}
}

type tenantHandlers struct {
	tenants  Tenants
	jobs     *tenantjob.Service
	patience time.Duration
}

// TenantRoutes are the calls with which the platform installs, upgrades, disables and purges a
// tenant. patience is how long an installation is waited for; timeout bounds a purge.
func TenantRoutes(tenants Tenants, jobs *tenantjob.Service, patience, timeout time.Duration) []web.Route {
	const path = "/_/tenant"
	h := tenantHandlers{tenants: tenants, jobs: jobs, patience: patience}
	return web.WithInterface("_tenant 2.0", []web.Route{
		{
			Method: http.MethodPost, Path: path, Body: tenantjob.Attributes{}, Timeout: timeout, NoTenant: true, Headers: ofTenant,
			Endpoint: web.Handle(h.post, web.Answer{Status: http.StatusCreated, Body: tenantJob{}, Headers: []web.Parameter{web.Location}}, web.Answer{Status: http.StatusNoContent}),
		},
		{
			Method: http.MethodGet, Path: path + "/:id", NoTenant: true, Headers: ofTenant, Endpoint: web.JSON(http.StatusOK, h.get),
			Query: web.Query{Parameters: []web.Parameter{{
				Name: "wait", Meaning: "most milliseconds to wait for the end of the job", Type: web.Integer, Most: maxJobWait,
			}}},
		},
		{Method: http.MethodDelete, Path: path + "/:id", NoTenant: true, Headers: ofTenant, Endpoint: web.Empty(http.StatusNoContent, h.delete)},
	})
}

// ofTenant declares the tenant, which need not be installed.
var ofTenant = []web.Parameter{{Name: okapi.TenantHeader, Meaning: "the tenant", Required: true}}

// forTenant returns the context of a call for the tenant that its header names.
func forTenant(c echo.Context) (context.Context, okapi.Tenant, error) {
	id, err := okapi.ParseTenant(c.Request().Header.Get(okapi.TenantHeader))
	if err != nil {
		return nil, id, fault.New(fault.Malformed, "Header %s: %v", okapi.TenantHeader, err)
	}
	ctx := c.Request().Context()
	okapi.Carried(ctx).Tenant = id // the request's line of the log has it too
	return ctx, id, nil
}

// post handles POST /_/tenant: 204 when the work is done, 201 with the job's Location if it takes
// longer than the patience.
func (h tenantHandlers) post(c echo.Context) error {
	ctx, id, err := forTenant(c)
	if err != nil {
		return err
	}
	var a tenantjob.Attributes
	if err := web.Decode(c, &a); err != nil {
		return err
	}
	switch {
	case a.ModuleTo != "" && a.Purge:
		return fault.StorageRefusal("module_to and purge exclude each other: install the tenant or drop it", fault.Param("purge", "true"))
	case a.ModuleTo != "":
		return h.install(ctx, c, id, a)
	case a.Purge:
		if err := h.tenants.Purge(ctx, id); err != nil {
			return fmt.Errorf("purging: %w", err)
		}
	case a.ModuleFrom == "": // else it is disabled: the records stay
		return fault.StorageRefusal("one of module_to (install or upgrade), module_from (disable) and purge is required", fault.Param("module_to", ""))
	}
	return c.NoContent(http.StatusNoContent)
}

func (h tenantHandlers) install(ctx context.Context, c echo.Context, id okapi.Tenant, a tenantjob.Attributes) error {
	job, err := h.jobs.Begin(ctx, a)
	if err == nil {
		job, err = h.jobs.Wait(ctx, job.ID, h.patience)
	}
	switch {
	case err != nil:
		return err
	case !job.Ended:
		c.Response().Header().Set(echo.HeaderLocation, "/_/tenant/"+job.ID.String())
		return c.JSON(http.StatusCreated, describeJob(id, job))
	case job.Fault != "":
		return job.Err()
	}
	return c.NoContent(http.StatusNoContent)
}

// get handles GET /_/tenant/{id}: how a job stands, after a wait for its end.
func (h tenantHandlers) get(c echo.Context) (tenantJob, error) {
	ctx, id, jobID, err := h.readJob(c)
	if err != nil {
		return tenantJob{}, err
	}
	job, err := h.jobs.Wait(ctx, jobID, time.Duration(web.QueryOf(c).Integer("wait"))*time.Millisecond)
	return describeJob(id, job), err
}

// delete handles DELETE /_/tenant/{id}, which ends the job.
func (h tenantHandlers) delete(c echo.Context) error {
	ctx, _, jobID, err := h.readJob(c)
	if err != nil {
		return err
	}
	return h.jobs.Delete(ctx, jobID)
}

func (h tenantHandlers) readJob(c echo.Context) (context.Context, okapi.Tenant, uuid.UUID, error) {
	ctx, id, err := forTenant(c)
	if err != nil {
		return nil, id, uuid.Nil, err
	}
	jobID, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return nil, id, uuid.Nil, fault.New(fault.NotFound, "There is no such job: its id is no UUID")
	}
	return ctx, id, jobID, nil
}
