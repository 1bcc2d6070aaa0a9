package httpapi

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
	"checkoutlock/web"
)

// Renewals commits renewals of the tenant in ctx.
type Renewals interface {
	Renew(ctx context.Context, r commit.Renewal) (schemas.RenewalResult, error)
}

type renewalHandlers struct{ renewals Renewals }

// RenewalRoutes are the guarded write of a renewal (ours).
func RenewalRoutes(renewals Renewals) []web.Route {
	h := renewalHandlers{renewals: renewals}
	return []web.Route{
		{Method: http.MethodPost, Path: "/loan-storage/renewals", Handler: h.renew, Permission: "circulation-storage.renewals.item.post"},
	}
}

// renew handles POST /loan-storage/renewals: 200 with the loan; 409 when loan or
// item changed meanwhile; 422 for what never succeeds as sent.
func (h renewalHandlers) renew(c echo.Context) error {
	body, err := web.ReadBody(c)
	if err != nil {
		return err
	}
	r, err := commit.ParseRenewal(body)
	if err != nil {
		return err
	}
	result, err := h.renewals.Renew(c.Request().Context(), r)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, result)
}
