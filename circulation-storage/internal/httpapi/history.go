package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/history"
	"checkoutlock/schemas"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/web"
)

const (
	defaultHistoryPage   = 50
	defaultFigureMinutes = 60
)

type historyHandlers struct{ store history.Store }

// HistoryRoutes are /check-out-history-storage (ours): how check-outs ended, and
// what follows from it about the last minutes.
func HistoryRoutes(store history.Store) []web.Route {
	const path, permission = "/check-out-history-storage", "circulation-storage.check-out-"
	h := historyHandlers{store: store}
	return []web.Route{
		{Method: http.MethodPost, Path: path + "/check-outs", Handler: web.NoParameters(h.add), Permission: permission + "history.collection.post"},
		{Method: http.MethodGet, Path: path + "/check-outs", Handler: h.list, Permission: permission + "history.collection.get"},
		{Method: http.MethodGet, Path: path + "/figures", Handler: h.figures, Permission: permission + "figures.get"},
	}
}

// add handles POST /check-out-history-storage/check-outs: 204 when all are kept,
// also those that were before; 422 naming all that is wrong, and none is kept. The
// instance is that of X-Lock-Holder.
func (h historyHandlers) add(c echo.Context) error {
	raw, err := web.ReadBody(c)
	if err != nil {
		return err
	}
	if _, err := jsonschema.Decode(raw); err != nil { // for characters that PostgreSQL cannot store
		return err
	}
	var report schemas.CheckOutReport
	if err := web.Unmarshal(raw, &report); err != nil {
		return err
	}
	if err := history.Check(report); err != nil {
		return err
	}
	instance := holder(c.Request().Header.Get(schemas.HolderHeader))
	if err := h.store.Add(c.Request().Context(), instance, report); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// list handles GET /check-out-history-storage/check-outs?userBarcode=&itemBarcode=
// &servicePointId=&outcome=&from=&until=&offset=&limit=: 200 with a page, newest first; 422 naming
// all parameters that are wrong.
func (h historyHandlers) list(c echo.Context) error {
	f, err := historyFilter(c)
	if err != nil {
		return err
	}
	page, err := h.store.List(c.Request().Context(), f)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, page)
}

func historyFilter(c echo.Context) (history.Filter, error) {
	q := web.QueryOf(c)
	f := history.Filter{
		UserBarcode:    q.Text("userBarcode", schemas.MaxHistoryText),
		ItemBarcode:    q.Text("itemBarcode", schemas.MaxHistoryText),
		ServicePointID: q.Text("servicePointId", schemas.MaxHistoryText),
		Outcome:        q.Text("outcome", schemas.MaxHistoryText),
		From:           q.Time("from"),
		Until:          q.Time("until"),
		Offset:         q.Integer("offset", 0, 0, schemas.MaxHistoryOffset),
		Limit:          q.Integer("limit", defaultHistoryPage, 1, schemas.MaxHistoryPage),
	}
	if f.ServicePointID != "" && !schemas.IsUUID(f.ServicePointID) {
		q.Wrong("servicePointId", "must be a UUID")
	}
	if rule := history.CheckOutcome(f.Outcome); f.Outcome != "" && rule != "" {
		q.Wrong("outcome", rule)
	}
	if !f.From.IsZero() && !f.Until.IsZero() && f.From.After(f.Until) {
		q.Wrong("from", "must not be after until")
	}
	return f, q.Err()
}

// figures handles GET /check-out-history-storage/figures?minutes=60: 200, or 422
// for a number that is none or out of range.
func (h historyHandlers) figures(c echo.Context) error {
	q := web.QueryOf(c)
	minutes := q.Integer("minutes", defaultFigureMinutes, 1, schemas.MaxFigureMinutes)
	if err := q.Err(); err != nil {
		return err
	}
	f, err := h.store.Figures(c.Request().Context(), minutes)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, f)
}
