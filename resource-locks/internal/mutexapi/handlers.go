package mutexapi

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// Namespace is the engine's namespace of the locks.
const Namespace = "mutex"

const kind = "mutex"

const prefix = "/api/lock/"

type handlers struct{ Options }

// lockAnswer is a lock as its user and others see it.
type lockAnswer struct {
	UID       string    `json:"uid"`
	UserID    any       `json:"user_id"` // a number or a string, see userIDOf
	LockedAt  time.Time `json:"locked_at"`
	RenewedAt time.Time `json:"renewed_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Fence     int64     `json:"fence"`
}

func (h *handlers) routes() []web.Route {
	var routes []web.Route
	for _, path := range []string{prefix + ":uid/", prefix + ":uid"} {
		routes = append(routes,
			web.Route{Method: http.MethodPost, Path: path, NoTenant: true, Endpoint: web.Handle(h.post)},
			web.Route{Method: http.MethodDelete, Path: path, NoTenant: true, Endpoint: web.Empty(http.StatusNoContent, h.release)},
			web.Route{Method: http.MethodGet, Path: path, NoTenant: true, Endpoint: web.JSON(http.StatusOK, h.get)},
		)
	}
	return routes
}

// post takes the lock, or renews it for its user.
func (h *handlers) post(c echo.Context) error {
	key, user, err := h.read(c)
	if err != nil {
		return err
	}
	ctx, cancel := detach(c)
	defer cancel()
	g, err := h.Locks.Acquire(ctx, engine.Acquire{Key: key, Owner: user, Kind: kind, TTL: h.Settings.TTL})
	switch {
	case err != nil:
		return asOutage(err)
	case g.Outcome == engine.Held:
		return c.JSON(http.StatusLocked, failure{"Resource is already in use by another user", userIDOf(g.Lock.Owner)})
	}
	return c.JSON(http.StatusOK, answerOf(g.Lock))
}

// release frees the user's own lock. Without one it changes nothing.
func (h *handlers) release(c echo.Context) error {
	key, user, err := h.read(c)
	if err != nil {
		return err
	}
	ctx, cancel := detach(c)
	defer cancel()
	_, err = h.Locks.Release(ctx, key, user)
	return asOutage(err)
}

// get returns the lock without a change.
func (h *handlers) get(c echo.Context) (lockAnswer, error) {
	key, _, err := h.read(c)
	if err != nil {
		return lockAnswer{}, err
	}
	lock, held, err := fault.Found(h.Locks.Fetch(c.Request().Context(), key))
	switch {
	case err != nil:
		return lockAnswer{}, asOutage(err)
	case !held:
		return lockAnswer{}, fault.New(fault.NotFound, "Resource is not in use")
	}
	return answerOf(lock), nil
}

// detach returns a context that does not end when the client leaves: browsers send DELETE
// while they close a page.
func detach(c echo.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.Request().Context()), requestTimeout)
}

// asOutage makes a time-out of the store an outage, so that clients have one status to
// expect of both.
func asOutage(err error) error {
	if web.ToFault(err).Code == fault.Timeout {
		return fault.Wrap(err, fault.Unavailable, "The database did not answer in time: try again")
	}
	return err
}

func (h *handlers) read(c echo.Context) (engine.Key, string, error) {
	uid, err := readUID(c.Request().URL)
	if err != nil {
		return engine.Key{}, "", err
	}
	user, err := h.readUser(c.Request())
	return engine.Key{Namespace: Namespace, Name: uid}, user, err
}

// readUID reads the path as it was sent, because Echo decodes only some paths.
func readUID(u *url.URL) (string, error) {
	uid, _ := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(u.EscapedPath(), prefix), "/")) // it is well escaped
	if uid == "" {
		return "", fault.New(fault.NotFound, "The path lacks a uid, allowed is %s{uid}/", prefix)
	}
	return uid, checkText("The uid", uid)
}

// readUser returns the user that the gateway's header names.
func (h *handlers) readUser(r *http.Request) (string, error) {
	sent := slices.Compact(slices.Clone(r.Header.Values(h.Settings.UserHeader)))
	switch {
	case len(sent) > 1:
		return "", fault.New(fault.Malformed, "The header %s was sent with different values, allowed is one value", h.Settings.UserHeader)
	case len(sent) == 0 || sent[0] == "":
		return "", fault.New(fault.Unauthorized, "The header %s with the user's id is missing", h.Settings.UserHeader)
	}
	return sent[0], checkText("The user in the header "+h.Settings.UserHeader, sent[0])
}

func checkText(what, text string) error {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || utf8.RuneCountInString(text) > engine.MaxName {
		return fault.New(fault.Malformed, "%s cannot be used, allowed are 1 to %d characters of UTF-8 without NUL", what, engine.MaxName)
	}
	return nil
}

func answerOf(lock engine.Lock) lockAnswer {
	return lockAnswer{
		UID: lock.Name, UserID: userIDOf(lock.Owner), Fence: lock.Fence,
		LockedAt: lock.GrantedAt, RenewedAt: lock.RenewedAt, ExpiresAt: lock.ExpiresAt,
	}
}

// maxExact is the greatest integer that every JSON reader keeps exactly.
const maxExact = 1<<53 - 1

// userIDOf returns a user's id as clients expect it: a number if it is written as one that
// JSON keeps exactly, else a string.
func userIDOf(user string) any {
	n, _ := strconv.ParseInt(user, 10, 64)
	if n < -maxExact || n > maxExact || strconv.FormatInt(n, 10) != user {
		return user
	}
	return n
}
