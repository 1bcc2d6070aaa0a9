package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/web"
)

const printSchema = "print-events"

// printRoutes are FOLIO's (mod-circulation, interface print-events).
func (h circulation) printRoutes() []web.Route {
	return []web.Route{{
		Method: http.MethodPost, Path: "/circulation/print-events-entry", Permission: "circulation.print-events-entry.item.post", Interface: "print-events 1.0",
		Body: web.Schema(printSchema), Endpoint: web.Empty(http.StatusNoContent, h.notePrint),
	}}
}

// notePrint handles POST /circulation/print-events-entry: 204. The setting printEventLogFeature has to
// switch it on, and all requests have to exist.
func (h circulation) notePrint(c echo.Context) error {
	ctx := c.Request().Context()
	body, err := web.ReadUnique(c)
	if err != nil {
		return err
	}
	if err := jsonschema.Validate(printSchema, body); err != nil {
		return err
	}
	var sent struct {
		RequestIDs []string `json:"requestIds"`
	}
	if err := web.Unmarshal(body, &sent); err != nil {
		return err
	}
	if err := h.checkPrintsOn(ctx); err != nil {
		return err
	}
	known, err := h.Storage.ExistingRequests(ctx, sent.RequestIDs)
	if err != nil {
		return err
	}
	if len(known) != len(sent.RequestIDs) {
		return fault.Validation(fault.Refusal("", "invalid request found", fault.Param("requestIds", fault.Shown(sent.RequestIDs))))
	}
	return h.Storage.AddPrint(ctx, body)
}

// checkPrintsOn refuses prints unless the tenant's setting allows them, in mod-circulation's words.
func (h circulation) checkPrintsOn(ctx context.Context) error {
	found, _, err := h.Storage.Settings(ctx, "name==printEventLogFeature", 0, 1)
	if err != nil {
		return err
	}
	about := fault.Param("name", "printEventLogFeature")
	if len(found) == 0 {
		return fault.Validation(fault.Refusal("", "No configuration found for print event feature", about))
	}
	var setting struct {
		Value struct {
			On any `json:"enablePrintLog"`
		} `json:"value"`
	}
	if err := json.Unmarshal(found[0], &setting); err != nil || setting.Value.On != true && setting.Value.On != "true" {
		return fault.Validation(fault.Refusal("", "print event feature is disabled for this tenant", about))
	}
	return nil
}
