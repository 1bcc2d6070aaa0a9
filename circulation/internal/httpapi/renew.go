package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/loanview"
	"checkoutlock/circulation/internal/renewal"
	"checkoutlock/web"
)

// Renewals extends loans.
type Renewals interface {
	// Renew returns the stored loan.
	Renew(ctx context.Context, req renewal.Request) (json.RawMessage, error)
}

// renewalRoutes are FOLIO's (mod-circulation, interface circulation).
func renewalRoutes(d Deps) []web.Route {
	return []web.Route{{
		Method: http.MethodPost, Path: "/circulation/renew-by-barcode", Handler: circulation{d}.renew,
		Permission: "circulation.renew-by-barcode.post",
	}}
}

// renew handles POST /circulation/renew-by-barcode: 200 with the loan.
func (h circulation) renew(c echo.Context) error {
	var req renewal.Request
	if err := web.DecodeExact(c, &req); err != nil {
		return err
	}
	ctx := c.Request().Context()
	stored, err := h.Renewals.Renew(ctx, req)
	if err != nil {
		return err
	}
	// The loan is renewed whatever happens now: what cannot be found out about its
	// surroundings is left out.
	view, err := loanview.One(ctx, h.Loans, stored)
	if err != nil {
		h.Log.WarnContext(ctx, "renewed, but the loan cannot be described in full", "err", err)
		if view, err = loanview.Render(stored, loanview.Known{}); err != nil {
			return fmt.Errorf("the loan was renewed, but: %w", err)
		}
	}
	return c.JSON(http.StatusOK, view)
}
