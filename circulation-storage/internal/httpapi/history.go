package httpapi

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/history"
	"checkoutlock/schemas"
	"checkoutlock/web"
)

const (
	defaultHistoryPage   = 50
	defaultFigureMinutes = 60
)

type historyHandlers struct{ store history.Store }

// HistoryRoutes are /check-out-history-storage (ours): how check-outs ended, and figures
// of the last minutes.
func HistoryRoutes(store history.Store) []web.Route {
	const path, permission = "/check-out-history-storage", "circulation-storage.check-out-"
	h := historyHandlers{store: store}
	return []web.Route{
		{
			Method: http.MethodPost, Path: path + "/check-outs", Permission: permission + "history.collection.post",
			Query: web.Strict(), Headers: ofHolder, Body: web.Schema(history.Report.Name), Endpoint: web.Empty(http.StatusNoContent, h.add),
		},
		{
			Method: http.MethodGet, Path: path + "/check-outs", Permission: permission + "history.collection.get",
			Query: web.Query{Strict: true, Parameters: historyFilters, Check: checkTimes}, Endpoint: web.JSON(http.StatusOK, h.list),
		},
		{
			Method: http.MethodGet, Path: path + "/figures", Permission: permission + "figures.get",
			Query: web.Query{Strict: true, Check: checkBuckets, Parameters: []web.Parameter{
				{
					Name: "minutes", Meaning: "minutes that the figures are made of", Type: web.Integer,
					Default: defaultFigureMinutes, Least: 1, Most: schemas.MaxFigureSpan,
				},
				{
					Name: "bucketMinutes", Meaning: "minutes that are counted together", Type: web.Integer,
					Default: 1, Least: 1, Most: schemas.MaxFigureBucket,
				},
				ofServicePoint,
			}},
			Endpoint: web.JSON(http.StatusOK, h.figures),
		},
		{
			Method: http.MethodGet, Path: path + "/waits", Permission: permission + "figures.get",
			Query: web.Strict(), Endpoint: web.JSON(http.StatusOK, web.FromContext(store.Waits)),
		},
		{
			Method: http.MethodGet, Path: path + "/limit-check", Permission: permission + "figures.get",
			Query:    web.Strict(web.Parameter{Name: "since", Meaning: "the beginning of the count of refused check-outs", Type: web.Time, Required: true}),
			Endpoint: web.JSON(http.StatusOK, h.checkLimit),
		},
	}
}

// historyFilters are the parameters of GET /check-out-history-storage/check-outs.
var historyFilters = []web.Parameter{
	{Name: "userBarcode", Meaning: "the patron's barcode", Most: schemas.MaxHistoryText},
	{Name: "itemBarcode", Meaning: "the item's barcode", Most: schemas.MaxHistoryText},
	ofServicePoint,
	{Name: "outcome", Meaning: "how the check-out ended", Most: schemas.MaxHistoryText, Check: history.CheckOutcome},
	{Name: "code", Meaning: "the code of the refusal", Most: schemas.MaxHistoryText},
	{Name: "from", Meaning: "the earliest end of the check-out", Type: web.Time},
	{Name: "until", Meaning: "the latest end of the check-out", Type: web.Time},
	web.Offset(schemas.MaxHistoryOffset),
	web.Limit(defaultHistoryPage, 1, schemas.MaxHistoryPage),
}

// ofServicePoint is the parameter of check-outs at one service point.
var ofServicePoint = web.Parameter{
	Name: "servicePointId", Meaning: "the service point's id", Most: schemas.MaxHistoryText, Check: func(value string) string {
		if !schemas.IsUUID(value) {
			return "must be a UUID"
		}
		return ""
	},
}

func checkBuckets(q *web.Values) {
	minutes, bucket := q.Integer("minutes"), q.Integer("bucketMinutes")
	switch {
	case bucket < 1 || minutes < 1: // wrong already
	case minutes%bucket != 0:
		q.Wrong("minutes", "must be a multiple of bucketMinutes")
	case minutes/bucket > schemas.MaxFigureMinutes:
		q.Wrong("minutes", fmt.Sprintf("must be at most %d times bucketMinutes", schemas.MaxFigureMinutes))
	}
}

func checkTimes(q *web.Values) {
	if from, until := q.Time("from"), q.Time("until"); !from.IsZero() && !until.IsZero() && from.After(until) {
		q.Wrong("from", "must not be after until")
	}
}

// add handles POST /check-out-history-storage/check-outs: 204 if it keeps all of
// them, also those that it had; 422 if it keeps none. The instance is that of
// X-Lock-Holder.
func (h historyHandlers) add(c echo.Context) error {
	report, err := web.DecodeStorable(c, history.Report)
	if err != nil {
		return err
	}
	return h.store.Add(c.Request().Context(), readHolder(c), report)
}

func (h historyHandlers) list(c echo.Context) (schemas.PastCheckOuts, error) {
	q := web.QueryOf(c)
	return h.store.List(c.Request().Context(), history.Filter{
		UserBarcode: q.Text("userBarcode"), ItemBarcode: q.Text("itemBarcode"), ServicePointID: q.Text("servicePointId"),
		Outcome: q.Text("outcome"), Code: q.Text("code"), From: q.Time("from"), Until: q.Time("until"), Offset: q.Integer("offset"), Limit: q.Integer("limit"),
	})
}

func (h historyHandlers) checkLimit(c echo.Context) (schemas.LimitCheck, error) {
	return h.store.CheckLimit(c.Request().Context(), web.QueryOf(c).Time("since"))
}

func (h historyHandlers) figures(c echo.Context) (schemas.Figures, error) {
	q := web.QueryOf(c)
	return h.store.Figures(c.Request().Context(), schemas.FigureFilter{
		Minutes: q.Integer("minutes"), Bucket: q.Integer("bucketMinutes"), ServicePointID: q.Text("servicePointId"),
	})
}
