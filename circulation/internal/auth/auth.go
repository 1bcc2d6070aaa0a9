// Package auth decides who may see and change what staff see and change: by the
// permissions of the gateway in front, by a password, or, on loopback only, without
// asking.
package auth

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

// Mode is how callers are told apart.
type Mode string

// The modes.
const (
	Gateway Mode = "gateway" // by X-Okapi-Permissions
	Basic   Mode = "basic"   // by one password, RFC 7617; the user name is for the history
	None    Mode = "none"    // everybody on this machine
)

// Guard stands before the handlers of staff. It is safe for concurrent use.
type Guard struct {
	mode     Mode
	password [sha256.Size]byte // hashed, so that comparing it does not tell its length
	origins  *http.CrossOriginProtection
	log      *slog.Logger
}

// NewGuard returns a guard; password is that of Basic, and unused otherwise.
func NewGuard(mode Mode, password string, log *slog.Logger) *Guard {
	return &Guard{mode: mode, password: sha256.Sum256([]byte(password)), origins: http.NewCrossOriginProtection(), log: log}
}

// Mode returns how callers are told apart.
func (g *Guard) Mode() Mode { return g.mode }

// Wrap returns h for callers who may; others get a Forbidden or Unauthorized fault.
// It puts the name of who signed in into the context's call.
//
// Without a gateway a browser may send something other than GET or HEAD only from a
// page of the service itself, because it adds the password to whatever another site
// makes it send. A gateway knows itself which sites may call it: FOLIO's front end
// is another one than the services.
func (g *Guard) Wrap(permission string, h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if g.mode != Gateway {
			if err := g.checkOrigin(c.Request()); err != nil {
				return err
			}
		}
		if err := g.admit(c, permission); err != nil {
			return err
		}
		return h(c)
	}
}

// Routes returns the routes, each guarded by its own Permission.
func (g *Guard) Routes(routes []web.Route) []web.Route {
	guarded := make([]web.Route, len(routes))
	for i, r := range routes {
		r.Handler = g.Wrap(r.Permission, r.Handler)
		guarded[i] = r
	}
	return guarded
}

// Grant returns the routes, whose handlers judge permissions by themselves, so that
// the password grants them with Basic: who sends it may do everything, and who sends
// none has no permissions. The other modes grant nothing here. As with Wrap, a
// browser may send the password only from a page of the service itself.
func (g *Guard) Grant(routes []web.Route) []web.Route {
	if g.mode != Basic {
		return routes
	}
	granted := make([]web.Route, len(routes))
	for i, r := range routes {
		r.Handler = g.grantTo(r.Handler)
		granted[i] = r
	}
	return granted
}

func (g *Guard) grantTo(h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if _, _, sent := c.Request().BasicAuth(); !sent {
			return h(c)
		}
		if err := g.checkOrigin(c.Request()); err != nil {
			return err
		}
		name, err := g.checkSignIn(c)
		if err != nil {
			return err
		}
		info := okapi.FromContext(c.Request().Context())
		info.UserName, info.Permissions = name, checkout.OverridePermissions()
		c.SetRequest(c.Request().WithContext(okapi.NewContext(c.Request().Context(), info)))
		return h(c)
	}
}

// May tells whether the caller in ctx, who passed Wrap, has the permission too.
func (g *Guard) May(ctx context.Context, permission string) bool {
	return g.mode != Gateway || okapi.FromContext(ctx).HasPermission(permission)
}

// checkOrigin refuses what a page of another site makes a browser send.
func (g *Guard) checkOrigin(r *http.Request) error {
	if err := g.origins.Check(r); err != nil {
		return fault.Wrap(err, fault.Forbidden, "This request came from a page of another site, which may change nothing here")
	}
	return nil
}

// admit lets in who may. An unknown mode lets nobody in.
func (g *Guard) admit(c echo.Context, permission string) error {
	switch g.mode {
	case Gateway:
		if !g.May(c.Request().Context(), permission) {
			return fault.New(fault.Forbidden, "Access requires permission: %s", permission)
		}
		return nil
	case Basic:
		return g.signIn(c)
	case None:
		return onThisMachine(c.Request())
	}
	return fault.New(fault.Internal, "Nobody can be let in: there is no way %q to tell callers apart", g.mode)
}
