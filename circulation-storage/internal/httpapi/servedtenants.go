// Package httpapi is circulation-storage's HTTP front: its routes, and how requests and
// answers look. It knows the domain packages, not PostgreSQL.
package httpapi

import (
	"context"

	"github.com/labstack/echo/v4"

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
