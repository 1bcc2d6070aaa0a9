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
)

// Admin is what staff see of the check-out lock and do about it;
// admin.Service says more.
type Admin interface {
	Settings(ctx context.Context) (settings.View, error)
	ChangeSettings(ctx context.Context, body json.RawMessage) (settings.View, error)
	Changes(ctx context.Context, kind string, offset, limit int) (schemas.LockChanges, error)
	Locks(ctx context.Context, f admin.LockFilter) (schemas.CheckoutLocks, error)
	Release(ctx context.Context, lockID, reason string) (schemas.CheckoutLock, error)
	CheckOuts(ctx context.Context, f schemas.HistoryFilter) (schemas.PastCheckOuts, error)
	Figures(ctx context.Context, minutes int) (schemas.Figures, error)
	Explain(ctx context.Context, req checkout.DryRunRequest) (checkout.Explanation, error)
	PatronID(ctx context.Context, barcode string) (string, error)
}

// Guard decides who may; auth.Guard says more.
type Guard interface {
	// Routes admits only those who have the permission of the route.
	Routes(routes []web.Route) []web.Route
	// Grant admits everybody, and settles which permissions the caller has.
	Grant(routes []web.Route) []web.Route
}

// What is answered when a request does not say how much.
const (
	defaultLocks     = 10 // as FOLIO's lists
	defaultChanges   = 20
	defaultCheckOuts = 50
	defaultMinutes   = 60
)

type adminHandlers struct{ admin Admin }

// adminRoutes are ours: what the staff pages show and do, for programs.
func adminRoutes(o Admin, g Guard) []web.Route {
	const (
		settingsPath = "/circulation/check-out-lock-settings"
		locksPath    = "/circulation/check-out-locks"
	)
	h := adminHandlers{o}
	return g.Routes([]web.Route{
		{Method: http.MethodGet, Path: settingsPath, Handler: web.NoParameters(h.settings), Permission: admin.MaySeeSettings},
		{Method: http.MethodPut, Path: settingsPath, Handler: web.NoParameters(h.changeSettings), Permission: admin.MayChangeSettings},
		{Method: http.MethodGet, Path: "/circulation/check-out-lock-changes", Handler: h.changes, Permission: admin.MaySeeChanges},
		{Method: http.MethodGet, Path: locksPath, Handler: h.locks, Permission: admin.MaySeeLocks},
		{Method: http.MethodPost, Path: locksPath + "/:id/release", Handler: web.NoParameters(h.release), Permission: admin.MayReleaseLocks},
		{Method: http.MethodGet, Path: "/circulation/check-out-history", Handler: h.checkOuts, Permission: admin.MaySeeCheckOuts},
		{Method: http.MethodGet, Path: "/circulation/check-out-figures", Handler: h.figures, Permission: admin.MaySeeFigures},
		{Method: http.MethodPost, Path: "/circulation/check-out-explanation", Handler: web.NoParameters(h.explain), Permission: admin.MayExplain},
	})
}

// settings handles GET /circulation/check-out-lock-settings: 200.
func (h adminHandlers) settings(c echo.Context) error {
	view, err := h.admin.Settings(c.Request().Context())
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, view)
}

// changeSettings handles PUT /circulation/check-out-lock-settings: the tenant's
// settings are replaced, and what the body leaves out is the environment's again.
// The answer of GET is such a body too. 200 with the settings now in force.
func (h adminHandlers) changeSettings(c echo.Context) error {
	body, err := web.ReadBody(c)
	if err != nil {
		return err
	}
	view, err := h.admin.ChangeSettings(c.Request().Context(), body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, view)
}

// changes handles GET /circulation/check-out-lock-changes?kind=&offset=&limit=: 200
// with a page, newest first.
func (h adminHandlers) changes(c echo.Context) error {
	q := web.QueryOf(c)
	kind, offset, limit := q.Text("kind", schemas.MaxHistoryText), q.Integer("offset", 0, 0, math.MaxInt32), q.Integer("limit", defaultChanges, 1, schemas.MaxChangePage)
	if err := q.Err(); err != nil {
		return err
	}
	page, err := h.admin.Changes(c.Request().Context(), kind, offset, limit)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, page)
}

// locks handles GET /circulation/check-out-locks?userId=&userBarcode=&holder=
// &outdated=&offset=&limit=: 200 with a page, oldest first.
func (h adminHandlers) locks(c echo.Context) error {
	q := web.QueryOf(c)
	f := admin.LockFilter{
		UserID: q.Text("userId", schemas.MaxHistoryText), Holder: q.Text("holder", schemas.MaxHistoryText), Outdated: q.Boolean("outdated"),
		Offset: q.Integer("offset", 0, 0, math.MaxInt32), Limit: q.Integer("limit", defaultLocks, 1, schemas.MaxLockPage),
	}
	if f.UserID != "" && !schemas.IsFolioUUID(f.UserID) {
		q.Wrong("userId", "must be a UUID, of the versions 1 to 5 as all of FOLIO's")
	}
	barcode := q.Text("userBarcode", schemas.MaxHistoryText)
	if barcode != "" && f.UserID != "" {
		q.Wrong("userBarcode", "must not be given together with userId")
	}
	if err := q.Err(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	if barcode != "" {
		id, exists, err := fault.Found(h.admin.PatronID(ctx, barcode))
		if err != nil {
			return err
		}
		if !exists {
			q.Wrong("userBarcode", "is no patron's barcode")
			return q.Err()
		}
		f.UserID = id
	}
	page, err := h.admin.Locks(ctx, f)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, page)
}

// release handles POST /circulation/check-out-locks/{id}/release: 200 with the lock
// as it was, outdated or not.
func (h adminHandlers) release(c echo.Context) error {
	id, err := pathID(c, "lock")
	if err != nil {
		return err
	}
	var body struct {
		Reason string `json:"reason"`
	}
	if err := web.DecodeExact(c, &body); err != nil {
		return err
	}
	lock, err := h.admin.Release(c.Request().Context(), id, body.Reason)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, lock)
}

// checkOuts handles GET /circulation/check-out-history?userBarcode=&itemBarcode=
// &servicePointId=&outcome=&from=&until=&offset=&limit=: 200 with a page, newest first.
func (h adminHandlers) checkOuts(c echo.Context) error {
	const most = schemas.MaxHistoryText
	q := web.QueryOf(c)
	f := schemas.HistoryFilter{
		UserBarcode: q.Text("userBarcode", most), ItemBarcode: q.Text("itemBarcode", most),
		ServicePointID: q.Text("servicePointId", most), Outcome: q.Text("outcome", most),
		From: q.Text("from", most), Until: q.Text("until", most), // storage says what all must be
		Offset: q.Integer("offset", 0, 0, schemas.MaxHistoryOffset), Limit: q.Integer("limit", defaultCheckOuts, 1, schemas.MaxHistoryPage),
	}
	if err := q.Err(); err != nil {
		return err
	}
	page, err := h.admin.CheckOuts(c.Request().Context(), f)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, page)
}

// figures handles GET /circulation/check-out-figures?minutes=60: 200.
func (h adminHandlers) figures(c echo.Context) error {
	q := web.QueryOf(c)
	minutes := q.Integer("minutes", defaultMinutes, 1, schemas.MaxFigureMinutes)
	if err := q.Err(); err != nil {
		return err
	}
	figures, err := h.admin.Figures(c.Request().Context(), minutes)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, figures)
}

// explain handles POST /circulation/check-out-explanation: 200, also when the
// check-out would be refused; 422 when it is not said of what.
func (h adminHandlers) explain(c echo.Context) error {
	var req checkout.DryRunRequest
	if err := web.DecodeExact(c, &req); err != nil {
		return err
	}
	var missing fault.List
	for _, p := range []fault.Parameter{fault.Param("itemBarcode", req.ItemBarcode), fault.Param("userBarcode", req.UserBarcode)} {
		if *p.Value == "" {
			missing = append(missing, fault.Refusal(string(fault.Invalid), p.Key+" is required", p))
		}
	}
	if err := missing.Err(); err != nil {
		return err
	}
	found, err := h.admin.Explain(c.Request().Context(), req)
	if err != nil {
		return err
	}
	found.Errors = listed(found.Errors)
	return c.JSON(http.StatusOK, found)
}

// listed returns details as lists in JSON, also where there is nothing in them.
func listed(details []fault.Detail) []fault.Detail {
	list := append([]fault.Detail{}, details...)
	for i := range list {
		list[i].Parameters = append([]fault.Parameter{}, list[i].Parameters...)
	}
	return list
}
