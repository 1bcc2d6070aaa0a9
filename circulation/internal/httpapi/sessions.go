package httpapi

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/web"
)

// Sessions ends the sessions of patrons at a desk.
type Sessions interface {
	End(ctx context.Context, req checkin.EndSessionsRequest) error
}

type sessionHandlers struct{ sessions Sessions }

// sessionRoutes are FOLIO's (mod-circulation, interface circulation).
func sessionRoutes(s Sessions) []web.Route {
	return []web.Route{{
		Method: http.MethodPost, Path: "/circulation/end-patron-action-session", Handler: sessionHandlers{s}.end,
		Permission: "circulation.end-patron-action-session.post",
	}}
}

// end handles POST /circulation/end-patron-action-session: 204.
func (h sessionHandlers) end(c echo.Context) error {
	var req checkin.EndSessionsRequest
	if err := web.DecodeExact(c, &req); err != nil {
		return err
	}
	if err := h.sessions.End(c.Request().Context(), req); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
