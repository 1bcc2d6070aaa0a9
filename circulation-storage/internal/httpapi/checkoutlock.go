package httpapi

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

const defaultListLimit = 10

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
	return []web.Route{
		{Method: http.MethodGet, Path: path, Handler: h.list, Permission: permission + ".collection.get"},
		{Method: http.MethodPost, Path: path, Handler: h.create, Permission: permission + ".item.post"},
		{Method: http.MethodGet, Path: path + "/:lockId", Handler: h.get, Permission: permission + ".item.get"},
		{Method: http.MethodDelete, Path: path + "/:lockId", Handler: h.delete, Permission: permission + ".item.delete"},
		{Method: http.MethodDelete, Path: path, Handler: h.deleteOfRequest, Permission: permission + ".item.delete"},
		{
			Method: http.MethodPost, Path: path + "/:lockId/forced-release", Handler: web.NoParameters(h.forceRelease),
			Permission: permission + ".item.forced-release.post",
		},
	}
}

// create handles POST /check-out-lock-storage: 201 with the lock, 503 when
// somebody else has it, 429 when too many wait for it already.
func (h lockHandlers) create(c echo.Context) error {
	var body schemas.CheckoutLockRequest
	if err := web.Decode(c, &body); err != nil {
		return err
	}
	req, err := h.request(body)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	req.Holder = holder(c.Request().Header.Get(schemas.HolderHeader))
	req.OkapiRequestID = okapi.FromContext(ctx).RequestID
	l, err := h.locks.Acquire(ctx, req)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, lockToWire(l))
}

// request checks the body, and names everything that is wrong with it at once.
func (h lockHandlers) request(body schemas.CheckoutLockRequest) (lock.Request, error) {
	var wrong fault.List
	ttl := h.defaultTTL
	if body.TTLMs != nil {
		checkRange(&wrong, "ttlMs", *body.TTLMs, schemas.MaxLockTTLMs)
		ttl = time.Duration(*body.TTLMs) * time.Millisecond
	}
	checkRange(&wrong, "waitMs", body.WaitMs, schemas.MaxLockWaitMs)
	user, ok := folioID(body.UserID)
	if !ok {
		wrong = append(wrong, fault.Detail{
			Message: fmt.Sprintf("must match %q", schemas.FolioUUID), Type: "1",
			Code:       "jakarta.validation.constraints.Pattern.message", // FOLIO's
			Parameters: []fault.Parameter{fault.Param("userId", fault.Shown(body.UserID))},
		})
	}
	request, ok := requestID(body.RequestID)
	if !ok {
		wrong.Add("requestId", "must be a UUID and not the nil one", body.RequestID)
	}
	if err := wrong.Err(); err != nil {
		return lock.Request{}, err
	}
	return lock.Request{
		UserID: user, TTL: ttl, RequestID: request,
		Wait: time.Duration(body.WaitMs) * time.Millisecond,
	}, nil
}

func checkRange(wrong *fault.List, key string, value, most int) {
	if value < 0 || value > most {
		wrong.Add(key, fmt.Sprintf("must be from 0 to %d milliseconds", most), strconv.Itoa(value))
	}
}

func folioID(s string) (uuid.UUID, bool) {
	if !schemas.IsFolioUUID(s) {
		return uuid.Nil, false
	}
	id, err := uuid.Parse(s)
	return id, err == nil
}

// requestID reads a UUID of any version in its usual form. Empty is none.
func requestID(s string) (uuid.UUID, bool) {
	if s == "" {
		return uuid.Nil, true
	}
	id, err := uuid.Parse(s)
	return id, err == nil && id != uuid.Nil && strings.EqualFold(s, id.String())
}

// holder is the name of the asking instance, which is only for people to read:
// one that is too long or not printable is ignored.
func holder(s string) string {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	if !utf8.ValidString(s) || utf8.RuneCountInString(s) > schemas.MaxInstanceName || strings.ContainsFunc(s, unprintable) {
		return ""
	}
	return s
}

// get handles GET /check-out-lock-storage/{lockId}: 200 with the lock, outdated
// or not.
func (h lockHandlers) get(c echo.Context) error {
	id, err := lockID(c)
	if err != nil {
		return err
	}
	l, err := h.locks.Get(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, lockToWire(l))
}

// delete handles DELETE /check-out-lock-storage/{lockId}?durable=: 204, or 404 when
// there is no such lock or it was outdated. With durable=true (ours) a crash of
// PostgreSQL cannot undo either answer.
func (h lockHandlers) delete(c echo.Context) error {
	id, err := lockID(c)
	if err != nil {
		return err
	}
	q := web.FolioQueryOf(c)
	durable := q.Boolean("durable")
	if err := q.Err(); err != nil {
		return err
	}
	release := h.locks.Release
	if durable != nil && *durable {
		release = h.locks.ReleaseDurably
	}
	if err := release(c.Request().Context(), id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// deleteOfRequest handles DELETE /check-out-lock-storage?userId=&requestId= (ours): 204
// when the request has no lock any more, also when it had none.
func (h lockHandlers) deleteOfRequest(c echo.Context) error {
	q := web.QueryOf(c)
	q.Declare("userId", "requestId")
	if err := q.Err(); err != nil {
		return err
	}
	user, err := queryID(c, "userId", true)
	if err != nil {
		return err
	}
	request, err := queryID(c, "requestId", true)
	if err != nil {
		return err
	}
	if request == uuid.Nil {
		return fault.New(fault.Malformed, "Parameter requestId must not be the nil UUID")
	}
	if err := h.locks.ReleaseRequest(c.Request().Context(), user, request); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func lockID(c echo.Context) (uuid.UUID, error) {
	id, ok := folioID(c.Param("lockId"))
	if !ok {
		return uuid.Nil, fault.New(fault.Malformed, "Invalid lock id")
	}
	return id, nil
}

// list handles GET /check-out-lock-storage?userId=&holder=&outdated=&offset=&limit=:
// 200 with a page of locks, oldest first, and the number of all that match.
func (h lockHandlers) list(c echo.Context) error {
	f, err := lockFilter(c)
	if err != nil {
		var why *fault.Error
		errors.As(err, &why)
		return fault.New(fault.Invalid, "Invalid Parameters: %s", why.Msg)
	}
	locks, total, err := h.locks.List(c.Request().Context(), f)
	if err != nil {
		return err
	}
	page := schemas.CheckoutLocks{CheckoutLocks: make([]schemas.CheckoutLock, len(locks)), TotalRecords: total}
	for i, l := range locks {
		page.CheckoutLocks[i] = lockToWire(l)
	}
	return c.JSON(http.StatusOK, page)
}

func lockFilter(c echo.Context) (f lock.Filter, err error) {
	if c.QueryParams().Has("userId") {
		id, ok := folioID(c.QueryParam("userId"))
		if !ok {
			return f, fault.New(fault.Malformed, "userId is %s, but must match %s", fault.Shown(c.QueryParam("userId")), schemas.FolioUUID)
		}
		f.UserID = id
	}
	if c.QueryParams().Has("holder") {
		if f.Holder = holder(c.QueryParam("holder")); f.Holder == "" {
			return f, fault.New(fault.Malformed, "holder is %s, but must have 1 to %d printable characters", fault.Shown(c.QueryParam("holder")), schemas.MaxInstanceName)
		}
	}
	if c.QueryParams().Has("outdated") {
		value := c.QueryParam("outdated")
		outdated := value == "true"
		if !outdated && value != "false" {
			return f, fault.New(fault.Malformed, "outdated is %s, but must be true or false", fault.Shown(value))
		}
		f.Outdated = &outdated
	}
	if f.Offset, err = web.QueryInt(c, "offset", 0, 0, math.MaxInt32); err != nil {
		return f, err
	}
	f.Limit, err = web.QueryInt(c, "limit", defaultListLimit, 0, schemas.MaxLockPage)
	return f, err
}

// lockToWire is the only place where a lock becomes JSON.
func lockToWire(l lock.Lock) schemas.CheckoutLock {
	return schemas.CheckoutLock{
		ID: l.ID.String(), UserID: idToWire(l.UserID),
		CreationDate:   l.CreatedAt.UTC().Format(schemas.FolioTime),
		TTLMs:          int(l.TTL.Milliseconds()),
		ExpirationDate: l.ExpiresAt().UTC().Format(schemas.FolioTime),
		Outdated:       l.Outdated,
		AgeMs:          l.Age.Milliseconds(),
		RequestID:      idToWire(l.RequestID),
		OkapiRequestID: l.OkapiRequestID,
		Holder:         l.Holder,
	}
}
