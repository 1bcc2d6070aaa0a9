package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/web"
)

type placementHandlers struct{ placements commit.Placements }

// PlacementRoutes are the all-or-nothing placing of requests (ours).
func PlacementRoutes(placements commit.Placements) []web.Route {
	h := placementHandlers{placements: placements}
	return []web.Route{{
		Method: http.MethodPost, Path: "/request-storage/placements", Handler: h.post,
		Permission: "circulation-storage.request-placements.item.post",
	}}
}

// post handles POST /request-storage/placements: 201 with the request and its
// item, for a repeat too; 409 when item or queue changed meanwhile; 422 for what
// never succeeds as sent.
func (h placementHandlers) post(c echo.Context) error {
	body, err := web.ReadBody(c)
	if err != nil {
		return err
	}
	p, err := commit.ParsePlacement(body)
	if err != nil {
		return err
	}
	placed, err := h.placements.Place(c.Request().Context(), p)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, "/request-storage/requests/"+p.RequestID.String())
	return c.JSON(http.StatusCreated, placed)
}
