package httpapi

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/web"
)

// RulesStore keeps the circulation rules of the tenant in ctx.
type RulesStore interface {
	Rules(ctx context.Context) (schemas.CirculationRules, error)
	// SetRules replaces the text. It does not compile the text.
	SetRules(ctx context.Context, text string) error
}

type rulesHandlers struct{ store RulesStore }

// RulesRoutes are FOLIO's /circulation-rules-storage.
func RulesRoutes(store RulesStore) []web.Route {
	const path, permission = "/circulation-rules-storage", "circulation-storage.circulation-rules"
	h := rulesHandlers{store: store}
	return []web.Route{
		{Method: http.MethodGet, Path: path, Permission: permission + ".get", Endpoint: web.JSON(http.StatusOK, h.get)},
		{Method: http.MethodPut, Path: path, Permission: permission + ".put", Body: web.Schema("circulation-rules"), Endpoint: web.Empty(http.StatusNoContent, h.put)},
	}
}

// get handles GET /circulation-rules-storage: 200 with the text.
func (h rulesHandlers) get(c echo.Context) (schemas.CirculationRules, error) {
	return h.store.Rules(c.Request().Context())
}

// put handles PUT /circulation-rules-storage: 204.
func (h rulesHandlers) put(c echo.Context) error {
	body, err := web.ReadBody(c)
	if err != nil {
		return err
	}
	if err := jsonschema.Validate("circulation-rules", body); err != nil {
		return err
	}
	var r schemas.CirculationRules
	if err := web.Unmarshal(body, &r); err != nil {
		return err
	}
	return h.store.SetRules(c.Request().Context(), r.RulesAsText)
}
