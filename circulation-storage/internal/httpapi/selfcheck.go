package httpapi

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/web"
)

var terminalReport = jsonschema.For[schemas.TerminalReport]("self-check-report")

// TerminalStore keeps what self-check machines of the tenant in ctx do.
type TerminalStore interface {
	// ReportTerminals keeps a report of one instance. A note that is there already stays as it is.
	ReportTerminals(ctx context.Context, instance string, r schemas.TerminalReport) error
	// TerminalActivity returns what all instances reported.
	TerminalActivity(ctx context.Context) (schemas.TerminalActivity, error)
}

type terminalHandlers struct{ store TerminalStore }

// TerminalRoutes are /self-check-activity (ours): what self-check machines do, and what staff should
// look at.
func TerminalRoutes(store TerminalStore) []web.Route {
	const path, permission = "/self-check-activity", "circulation-storage.self-check-activity."
	h := terminalHandlers{store: store}
	return []web.Route{
		{
			Method: http.MethodPost, Path: path, Permission: permission + "post", Query: web.Strict(), Headers: ofHolder,
			Body: web.Schema(terminalReport.Name), Endpoint: web.Empty(http.StatusNoContent, h.report),
		},
		{
			Method: http.MethodGet, Path: path, Permission: permission + "get", Query: web.Strict(),
			Endpoint: web.JSON(http.StatusOK, web.FromContext(store.TerminalActivity)),
		},
	}
}

// report handles POST /self-check-activity: 204. The instance is that of X-Lock-Holder.
func (h terminalHandlers) report(c echo.Context) error {
	report, err := web.DecodeStorable(c, terminalReport)
	if err != nil {
		return err
	}
	if len(report.Terminals)+len(report.Notes) == 0 {
		var wrong fault.List
		wrong.Add("terminals", "or notes is required", "")
		return wrong.Err()
	}
	return h.store.ReportTerminals(c.Request().Context(), readHolder(c), report)
}
