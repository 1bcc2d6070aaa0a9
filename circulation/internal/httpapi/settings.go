package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/config/edge"
)

type settingsHandlers struct {
	settings    Settings
	environment settings.Environment
}

// get handles GET /circulation/check-out-lock-settings.
func (h settingsHandlers) get(c echo.Context) error {
	s, problem, err := h.settings.Read(c.Request().Context())
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, s.View(problem))
}

// put handles PUT /circulation/check-out-lock-settings: the tenant's settings
// are replaced, and what the body leaves out is the environment's again. See
// settings.Environment.ParseChange for the body; the answer of get is one too.
func (h settingsHandlers) put(c echo.Context) error {
	body, err := edge.ReadBody(c)
	if err != nil {
		return err
	}
	change, err := h.environment.ParseChange(body)
	if err != nil {
		return err
	}
	s, err := h.settings.Update(c.Request().Context(), change)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, s.View(nil))
}
