package httpapi

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

const defaultListLimit = 10

var (
	lockRequest   = jsonschema.For[schemas.CheckoutLockRequest]("checkout-lock-request")
	forcedRelease = jsonschema.For[schemas.ForcedRelease]("forced-release")
)

type lockHandlers struct {
	locks      *lock.Service
	defaultTTL time.Duration
}

// CheckoutLockRoutes are FOLIO's /check-out-lock-storage
// (ramls/checkout-lock-storage.raml), and the releases by request and by force, which
// are ours. defaultTTL is for requests without ttlMs.
func CheckoutLockRoutes(locks *lock.Service, defaultTTL time.Duration) []web.Route {
	const path, permission = "/check-out-lock-storage", "checkout-lock-storage.checkout-locks"
	h := lockHandlers{locks: locks, defaultTTL: defaultTTL}
	return web.WithInterface("checkout-lock-storage 0.1", []web.Route{
		{
			Method: http.MethodGet, Path: path, Permission: permission + ".collection.get",
			Query: web.Query{Parameters: lockFilters, Refuse: refuseLockFilter}, Refusals: []fault.Code{fault.Invalid}, Endpoint: web.JSON(http.StatusOK, h.list),
		},
		{Method: http.MethodPost, Path: path, Permission: permission + ".item.post", Refusals: []fault.Code{fault.LockHeld, fault.LockQueueFull}, Headers: ofHolder, Body: web.Schema(lockRequest.Name), Endpoint: web.JSON(http.StatusCreated, h.create)},
		{Method: http.MethodGet, Path: path + "/:lockId", Permission: permission + ".item.get", Endpoint: web.JSON(http.StatusOK, h.get)},
		{
			Method: http.MethodDelete, Path: path + "/:lockId", Permission: permission + ".item.delete",
			Query: web.Query{Parameters: []web.Parameter{
				{Name: "durable", Meaning: "whether a crash of PostgreSQL must not undo the answer", Type: web.Boolean},
			}},
			Endpoint: web.Empty(http.StatusNoContent, h.delete),
		},
		{
			Method: http.MethodDelete, Path: path, Permission: permission + ".item.delete",
			Query: web.Query{Strict: true, Refuse: web.RefuseAsFolio, Parameters: []web.Parameter{
				{Name: "userId", Meaning: "the patron's id", Type: web.UUID, Required: true},
				{Name: "requestId", Meaning: "the requestId of the lock, not the nil UUID", Type: web.UUID, Required: true},
			}},
			Endpoint: web.Empty(http.StatusNoContent, h.deleteByAcquisition),
		},
		{
			Method: http.MethodPost, Path: path + "/:lockId/forced-release", Permission: permission + ".item.forced-release.post",
			Query: web.Strict(), Body: web.Schema(forcedRelease.Name), Endpoint: web.JSON(http.StatusOK, h.forceRelease),
		},
	})
}

// ofHolder declares the name of the calling instance, which operators see.
var ofHolder = []web.Parameter{{Name: schemas.HolderHeader, Meaning: "the instance that calls", Most: schemas.MaxInstanceName}}

// lockFilters are the parameters of GET /check-out-lock-storage.
var lockFilters = []web.Parameter{
	{Name: "userId", Meaning: "the patron's id", Check: func(value string) string {
		if _, ok := parseFolioID(value); !ok {
			return "must match " + schemas.FolioUUID
		}
		return ""
	}},
	{Name: "holder", Meaning: "the instance that holds the lock", Check: func(value string) string {
		if value == "" || !schemas.IsPrintable(value, schemas.MaxInstanceName) {
			return fmt.Sprintf("must have 1 to %d printable characters", schemas.MaxInstanceName)
		}
		return ""
	}},
	{Name: "outdated", Meaning: "whether the lock outlived its time to live", Type: web.Boolean},
	web.Offset(math.MaxInt32),
	web.Limit(defaultListLimit, 0, schemas.MaxLockPage),
}

// refuseLockFilter answers as FOLIO does here: 422 with a text.
func refuseLockFilter(p web.Parameter, value string) error {
	if p.Type == web.Integer {
		return fault.New(fault.Invalid, "Invalid Parameters: %s", web.ToFault(web.RefuseAsFolio(p, value)).Msg)
	}
	return fault.New(fault.Invalid, "Invalid Parameters: %s is %s, but %s", p.Name, fault.Shown(value), p.Rule(value))
}

// create handles POST /check-out-lock-storage: 201 with the lock, 503 if another
// request holds it, 429 if too many wait for it already.
func (h lockHandlers) create(c echo.Context) (schemas.CheckoutLock, error) {
	body, err := web.DecodeChecked(c, lockRequest)
	if err != nil {
		return schemas.CheckoutLock{}, err
	}
	req := lock.Request{TTL: h.defaultTTL, Wait: time.Duration(body.WaitMs) * time.Millisecond}
	req.UserID, _ = parseFolioID(body.UserID)
	req.AcquisitionID, _ = uuid.Parse(body.AcquisitionID) // Nil for none
	if body.TTLMs != nil {
		req.TTL = time.Duration(*body.TTLMs) * time.Millisecond
	}
	ctx := c.Request().Context()
	req.Holder = readHolder(c)
	req.OkapiRequestID = okapi.FromContext(ctx).RequestID
	l, err := h.locks.Acquire(ctx, req)
	return renderLock(l), err
}

func parseFolioID(s string) (uuid.UUID, bool) {
	if !schemas.IsFolioUUID(s) {
		return uuid.Nil, false
	}
	id, err := uuid.Parse(s)
	return id, err == nil
}

// readHolder returns the name of the calling instance, which only people read. It
// ignores a name that is too long or not printable.
func readHolder(c echo.Context) string {
	name := c.Request().Header.Get(schemas.HolderHeader)
	if !schemas.IsPrintable(name, schemas.MaxInstanceName) {
		return ""
	}
	return name
}

func (h lockHandlers) get(c echo.Context) (schemas.CheckoutLock, error) {
	id, err := readLockID(c)
	if err != nil {
		return schemas.CheckoutLock{}, err
	}
	l, err := h.locks.Get(c.Request().Context(), id)
	return renderLock(l), err
}

// delete handles DELETE /check-out-lock-storage/{lockId}: 204, or 404 if there is no
// such lock or it was outdated. With durable=true (ours) a crash of
// PostgreSQL cannot undo either answer.
func (h lockHandlers) delete(c echo.Context) error {
	id, err := readLockID(c)
	if err != nil {
		return err
	}
	release := h.locks.Release
	if durable := web.QueryOf(c).Boolean("durable"); durable != nil && *durable {
		release = h.locks.ReleaseDurably
	}
	return release(c.Request().Context(), id)
}

// deleteByAcquisition handles DELETE /check-out-lock-storage (ours): 204 once the request has
// no lock, also if it had none.
func (h lockHandlers) deleteByAcquisition(c echo.Context) error {
	q := web.QueryOf(c)
	request := q.UUID("requestId")
	if request == uuid.Nil {
		return fault.New(fault.Malformed, "Parameter requestId must not be the nil UUID")
	}
	return h.locks.ReleaseAcquisition(c.Request().Context(), q.UUID("userId"), request)
}

// forceRelease handles POST /check-out-lock-storage/{lockId}/forced-release (ours):
// 200 with the lock as it was, outdated or not; 404 if there is no such lock, 422
// without a reason.
func (h lockHandlers) forceRelease(c echo.Context) (schemas.CheckoutLock, error) {
	id, err := readLockID(c)
	if err != nil {
		return schemas.CheckoutLock{}, err
	}
	body, err := web.DecodeStorable(c, forcedRelease)
	if err != nil {
		return schemas.CheckoutLock{}, err
	}
	l, err := h.locks.ForceRelease(c.Request().Context(), id, lock.NewNote(body.Reason, body.ByName))
	return renderLock(l), err
}

func readLockID(c echo.Context) (uuid.UUID, error) {
	id, ok := parseFolioID(c.Param("lockId"))
	if !ok {
		return uuid.Nil, fault.New(fault.Malformed, "Invalid lock id")
	}
	return id, nil
}

func (h lockHandlers) list(c echo.Context) (schemas.CheckoutLocks, error) {
	q := web.QueryOf(c)
	f := lock.Filter{Holder: q.Text("holder"), Outdated: q.Boolean("outdated"), Offset: q.Integer("offset"), Limit: q.Integer("limit")}
	f.UserID, _ = parseFolioID(q.Text("userId"))
	locks, total, err := h.locks.List(c.Request().Context(), f)
	return schemas.CheckoutLocks{CheckoutLocks: convert.All(locks, renderLock), TotalRecords: total}, err
}

// renderLock is the only place that converts locks for answers.
func renderLock(l lock.Lock) schemas.CheckoutLock {
	return schemas.CheckoutLock{
		ID: l.ID.String(), UserID: renderID(l.UserID),
		CreationDate:   l.CreatedAt.UTC().Format(schemas.FolioTime),
		TTLMs:          int(l.TTL.Milliseconds()),
		ExpirationDate: l.CreatedAt.Add(l.TTL).UTC().Format(schemas.FolioTime),
		Outdated:       l.Outdated,
		AgeMs:          l.Age.Milliseconds(),
		AcquisitionID:  renderID(l.AcquisitionID),
		OkapiRequestID: l.OkapiRequestID,
		Holder:         l.Holder,
	}
}
