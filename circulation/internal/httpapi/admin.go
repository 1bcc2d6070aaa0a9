package httpapi

import (
	"context"
	"encoding/json"
	"math"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/auth"
)

// The lengths of lists and figures for requests that name none.
const (
	defaultLocks     = 10 // as FOLIO's lists
	defaultChanges   = 20
	defaultCheckOuts = 50
	defaultMinutes   = 60
)

type adminHandlers struct{ admin admin.Desk }

// adminRoutes are ours: they serve to programs what the staff pages show and do.
func adminRoutes(o admin.Desk, g *auth.Guard) []web.Route {
	const (
		settingsPath = "/circulation/check-out-lock-settings"
		locksPath    = "/circulation/check-out-locks"
	)
	h := adminHandlers{o}
	return g.Routes([]web.Route{
		{Method: http.MethodGet, Path: settingsPath, Permission: admin.MaySeeSettings, Query: web.Strict(), Endpoint: web.JSON(http.StatusOK, web.FromContext(o.Settings))},
		{
			Method: http.MethodPut, Path: settingsPath, Permission: admin.MayChangeSettings, Refusals: []fault.Code{fault.Conflict},
			Query: web.Strict(), Body: web.Schema("lock-settings-edit"), Endpoint: web.JSON(http.StatusOK, web.FromExact(h.changeSettings)),
		},
		{
			Method: http.MethodGet, Path: "/circulation/check-out-lock-changes", Permission: admin.MaySeeChanges,
			Query:    web.Strict(text("kind", "what was changed"), web.Offset(math.MaxInt32), web.Limit(defaultChanges, 1, schemas.MaxChangePage)),
			Endpoint: web.JSON(http.StatusOK, h.listChanges),
		},
		{
			Method: http.MethodGet, Path: locksPath, Permission: admin.MaySeeLocks,
			Query: web.Query{Strict: true, Parameters: lockFilters, Check: checkLockPatron}, Endpoint: web.JSON(http.StatusOK, h.listLocks),
		},
		{
			Method: http.MethodPost, Path: locksPath + "/:id/release", Permission: admin.MayReleaseLocks,
			Query: web.Strict(), Body: release{}, Endpoint: web.JSON(http.StatusOK, h.releaseLock),
		},
		{
			Method: http.MethodGet, Path: "/circulation/check-out-history", Permission: admin.MaySeeCheckOuts,
			Query: web.Strict( // storage says what all must be
				text("userBarcode", "the patron's barcode"), text("itemBarcode", "the item's barcode"),
				text("servicePointId", "the service point's id"),
				web.Parameter{Name: "outcome", Meaning: "how the check-out ended", Allowed: checkout.Outcomes()},
				text("code", "the code of the refusal"),
				text("from", "the earliest end of the check-out"), text("until", "the latest end of the check-out"),
				web.Offset(schemas.MaxHistoryOffset), web.Limit(defaultCheckOuts, 1, schemas.MaxHistoryPage),
			),
			Endpoint: web.JSON(http.StatusOK, h.listCheckOuts),
		},
		{
			Method: http.MethodGet, Path: "/circulation/check-out-figures", Permission: admin.MaySeeFigures,
			Query: web.Strict(web.Parameter{
				Name: "minutes", Meaning: "minutes that the figures are made of", Type: web.Integer,
				Default: defaultMinutes, Least: 1, Most: schemas.MaxFigureMinutes,
			}),
			Endpoint: web.JSON(http.StatusOK, h.readFigures),
		},
		{
			Method: http.MethodPost, Path: "/circulation/check-out-explanation", Permission: admin.MayExplain,
			Query: web.Strict(), Body: checkout.DryRunRequest{}, Endpoint: web.JSON(http.StatusOK, web.FromExact(h.explain)),
		},
	})
}

// readTiming answers how long a machine has to wait for an answer.
func (h adminHandlers) readTiming(ctx context.Context) (settings.Timing, error) {
	v, err := h.admin.Settings(ctx)
	return v.Timing, err
}

// changeSettings sets what the body leaves out back to the environment's. The answer of the GET is
// such a body too.
func (h adminHandlers) changeSettings(ctx context.Context, body json.RawMessage) (settings.View, error) {
	change, err := h.admin.Environment().ParseChange(body)
	if err != nil {
		return settings.View{}, err
	}
	return h.admin.ChangeSettings(ctx, change)
}

func text(name, meaning string) web.Parameter {
	return web.Parameter{Name: name, Meaning: meaning, Most: schemas.MaxHistoryText}
}

// lockFilters are the parameters of GET /circulation/check-out-locks.
var lockFilters = []web.Parameter{
	{Name: "userId", Meaning: "the patron's id", Most: schemas.MaxHistoryText, Check: func(value string) string {
		if !schemas.IsFolioUUID(value) {
			return "must be a UUID, of the versions 1 to 5 as all of FOLIO's"
		}
		return ""
	}},
	text("holder", "the instance that holds the lock"),
	{Name: "outdated", Meaning: "whether the lock outlived its time to live", Type: web.Boolean},
	web.Offset(math.MaxInt32),
	web.Limit(defaultLocks, 1, schemas.MaxLockPage),
	text("userBarcode", "the patron's barcode, in place of userId"),
}

func checkLockPatron(q *web.Values) {
	if q.Text("userBarcode") != "" && q.Text("userId") != "" {
		q.Wrong("userBarcode", "must not be given together with userId")
	}
}

func (h adminHandlers) listChanges(c echo.Context) (schemas.LockChanges, error) {
	q := web.QueryOf(c)
	return h.admin.LockChanges(c.Request().Context(), q.Text("kind"), q.Integer("offset"), q.Integer("limit"))
}

func (h adminHandlers) listLocks(c echo.Context) (schemas.CheckoutLocks, error) {
	q, ctx := web.QueryOf(c), c.Request().Context()
	f := admin.LockFilter{
		UserID: q.Text("userId"), Holder: q.Text("holder"), Outdated: q.Boolean("outdated"),
		Offset: q.Integer("offset"), Limit: q.Integer("limit"),
	}
	if barcode := q.Text("userBarcode"); barcode != "" {
		id, exists, err := fault.Found(h.admin.PatronID(ctx, barcode))
		if err != nil {
			return schemas.CheckoutLocks{}, err
		}
		if !exists {
			q.Wrong("userBarcode", "is no patron's barcode")
			return schemas.CheckoutLocks{}, q.Err()
		}
		f.UserID = id
	}
	return h.admin.Locks(ctx, f)
}

// release is the body of POST /circulation/check-out-locks/{id}/release.
type release struct {
	Reason string `json:"reason"`
}

// releaseLock handles POST /circulation/check-out-locks/{id}/release: 200 with the lock
// as it was, outdated or not.
func (h adminHandlers) releaseLock(c echo.Context) (schemas.CheckoutLock, error) {
	id, err := readPathID(c, "lock")
	if err != nil {
		return schemas.CheckoutLock{}, err
	}
	var body release
	if err := web.DecodeExact(c, &body); err != nil {
		return schemas.CheckoutLock{}, err
	}
	return h.admin.Release(c.Request().Context(), id, body.Reason)
}

func (h adminHandlers) listCheckOuts(c echo.Context) (schemas.PastCheckOuts, error) {
	q := web.QueryOf(c)
	return h.admin.PastCheckOuts(c.Request().Context(), schemas.HistoryFilter{
		UserBarcode: q.Text("userBarcode"), ItemBarcode: q.Text("itemBarcode"), ServicePointID: q.Text("servicePointId"),
		Outcome: q.Text("outcome"), Code: q.Text("code"), From: q.Text("from"), Until: q.Text("until"), Offset: q.Integer("offset"), Limit: q.Integer("limit"),
	})
}

func (h adminHandlers) readFigures(c echo.Context) (schemas.Figures, error) {
	return h.admin.Figures(c.Request().Context(), schemas.FigureFilter{Minutes: web.QueryOf(c).Integer("minutes")})
}

// explain handles POST /circulation/check-out-explanation: 200, also when the
// check-out would be refused; 422 if itemBarcode or userBarcode is missing.
func (h adminHandlers) explain(ctx context.Context, req checkout.DryRunRequest) (checkout.Explanation, error) {
	var missing fault.List
	if req.ItemBarcode == "" {
		missing = append(missing, req.NewBarcodeMissing("itemBarcode"))
	}
	if req.UserBarcode == "" {
		missing = append(missing, req.NewBarcodeMissing("userBarcode"))
	}
	if err := missing.Err(); err != nil {
		return checkout.Explanation{}, err
	}
	return h.admin.Explain(ctx, req)
}
