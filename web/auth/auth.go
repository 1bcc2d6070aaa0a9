// Package auth authenticates and authorizes staff: by the permissions of the gateway in
// front, by a password, by the library's single sign-on, or, on loopback only, without a sign-in.
package auth

import (
	"context"
	"crypto/cipher"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
	"checkoutlock/web/page"
)

// Mode is how staff authenticate.
type Mode string

// The modes.
const (
	Gateway Mode = "gateway" // by X-Okapi-Permissions
	Basic   Mode = "basic"   // by one password, in a form or by RFC 7617; the user name is for the history
	OIDC    Mode = "oidc"    // at a provider of OpenID Connect, for the pages alone
	None    Mode = "none"    // not at all: everyone on this host may do everything
)

// Guard protects the handlers of staff. It is safe for concurrent use.
type Guard struct {
	mode     Mode
	password [sha256.Size]byte // hashed, so that the comparison does not reveal its length
	granted  []string
	origins  *http.CrossOriginProtection
	attempts *attempts
	limits   Limits
	contact  string
	rounds   int
	sealer   func() (cipher.AEAD, error) // of cookies
	provider *provider                   // of OIDC
	log      *slog.Logger
}

// NewGuard returns a guard. granted are the permissions that the password, or a group of the
// provider with all, grants to the handlers behind it, which check them.
func NewGuard(s Settings, granted []string, log *slog.Logger) *Guard {
	secret := s.Password
	if s.Auth == OIDC {
		secret = s.OIDC.Secret
	}
	g := &Guard{
		mode: s.Auth, password: sha256.Sum256([]byte(s.Password)), granted: granted,
		origins: http.NewCrossOriginProtection(), attempts: newAttempts(log), limits: s.Limits, contact: s.Contact,
		rounds: keyRounds, provider: newProvider(s.OIDC), log: log,
	}
	// Made once, when it is needed: it takes a tenth of a second.
	g.sealer = sync.OnceValues(func() (cipher.AEAD, error) { return newSealer(secret, g.rounds) })
	return g
}

// Collector returns the metrics of wrong passwords.
func (g *Guard) Collector() prometheus.Collector { return g.attempts.count }

// SupportContact is the person or place to call when a page cannot be shown, empty if that is not
// known.
func (g *Guard) SupportContact() string { return g.contact }

// Mode returns how staff authenticate.
func (g *Guard) Mode() Mode { return g.mode }

// Wrap returns h for callers with the permission; others get a Forbidden or Unauthorized
// fault. It puts the name given at sign-in into the context's call.
//
// Without a gateway a browser may send methods other than GET and HEAD only from a
// page of the service itself. It adds the password to all requests that another site makes
// it send. A gateway decides itself which sites may call it: FOLIO's front end has another
// address than the services.
func (g *Guard) Wrap(permission string, h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if g.mode != Gateway {
			if err := g.checkOrigin(c.Request()); err != nil {
				return err
			}
		}
		if err := g.checkAccess(c, permission); err != nil {
			return err
		}
		return h(c)
	}
}

// Routes returns the routes, each guarded by its own Permission.
func (g *Guard) Routes(routes []web.Route) []web.Route {
	guarded := web.WithGuard(routes, func(r web.Route) echo.MiddlewareFunc {
		return func(next echo.HandlerFunc) echo.HandlerFunc { return g.Wrap(r.Permission, next) }
	})
	for i, r := range guarded {
		guarded[i].Desired = append(slices.Clone(r.Desired), r.Permission)
	}
	return web.WithRefusals(guarded, fault.Unauthorized, fault.Forbidden, fault.TooManyTries)
}

// Grant returns routes whose handlers check permissions themselves. With Basic, the password
// grants all permissions, and a request without it has none. The other modes grant nothing
// here. As with Wrap, a browser may send the password only from a page of the service itself.
func (g *Guard) Grant(routes []web.Route) []web.Route {
	routes = web.WithRefusals(routes, fault.Unauthorized, fault.Forbidden, fault.TooManyTries)
	if g.mode != Basic {
		return routes
	}
	return web.WithGuard(routes, func(web.Route) echo.MiddlewareFunc { return g.grantPermissions })
}

func (g *Guard) grantPermissions(h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if _, _, sent := c.Request().BasicAuth(); !sent {
			return h(c)
		}
		if err := g.checkOrigin(c.Request()); err != nil {
			return err
		}
		if err := g.signIn(c, okapi.FromContext(c.Request().Context()).UserID); err != nil {
			return err
		}
		return h(c)
	}
}

// May reports whether the caller in ctx, who passed Wrap, has another permission too.
func (g *Guard) May(ctx context.Context, permission string) bool {
	return g.mode != Gateway && g.mode != OIDC || okapi.FromContext(ctx).HasPermission(permission)
}

// checkOrigin refuses the requests that a page of another site makes a browser send.
func (g *Guard) checkOrigin(r *http.Request) error {
	if err := g.origins.Check(r); err != nil {
		return fault.Wrap(err, fault.Forbidden, "This request came from a page of another site, which may change nothing here")
	}
	return nil
}

// checkAccess admits callers with the permission. An unknown mode admits none.
func (g *Guard) checkAccess(c echo.Context, permission string) error {
	switch g.mode {
	case Gateway:
		if !g.May(c.Request().Context(), permission) {
			return fault.New(fault.Forbidden, "Access requires permission: %s", permission)
		}
		return nil
	case Basic:
		return g.signIn(c, "") // without a gateway, a user id is not authenticated
	case OIDC:
		return fault.New(fault.Forbidden, "People sign in to the pages alone (STAFF_AUTH=oidc), so no program may do this")
	case None:
		return requireLoopbackHost(c.Request(), "Sign-in is off (STAFF_AUTH=none)", "set STAFF_AUTH to gateway, basic or oidc")
	}
	return fault.New(fault.Internal, "Access is refused: the authentication mode %q is unknown", g.mode)
}

// CheckPage refuses a request that a page of another site may have made a browser send. It is
// for endpoints at the listening host that believe a header with the user's id, which any page
// can send. Fault: Forbidden.
//
// A page of another site may send no method other than GET, HEAD and OPTIONS, and no CORS header
// lets it read the answers. Without a gateway a page can use DNS rebinding too. So on loopback each
// request needs a loopback Host, and elsewhere those of browsers, which have an Origin.
func (g *Guard) CheckPage(r *http.Request, host string) error {
	if err := g.checkOrigin(r); err != nil {
		return err
	}
	if g.mode == Gateway || !isLoopbackAddr(host) && r.Header.Get("Origin") == "" {
		return nil
	}
	return requireLoopbackHost(r, "The caller's header is believed without a gateway", "set STAFF_AUTH to gateway")
}

// requireLoopbackHost requires a loopback Host header, which prevents DNS rebinding: a page of
// another site can make its own name resolve to 127.0.0.1. The browser treats that as the same
// site and sends the page's requests, with that name as the Host.
func requireLoopbackHost(r *http.Request, why, remedy string) error {
	if web.IsLoopback(r.Host) {
		return nil
	}
	return page.Explain(fault.New(fault.Forbidden, "%s, so only addresses of this computer itself are served, "+
		"such as http://localhost, not %q: a page of another site may use that name. "+
		"To be reached by other names, %s.", why, fault.Shown(r.Host), remedy), "error.otherHost")
}
