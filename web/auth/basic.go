package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// challenge names the way in which programs send name and password, in UTF-8 (RFC 7617, 2.1). Pages
// do not send it: a browser that asks by itself knows no sign-out.
const challenge = `Basic realm="Staff", charset="UTF-8"`

// signIn admits callers who send the password, under any name. It puts the name, the user id and
// all permissions into the request's context.
func (g *Guard) signIn(c echo.Context, userID string) error {
	name, err := g.checkHeader(c)
	if err != nil {
		return err
	}
	setCaller(c, name, userID, g.granted)
	return nil
}

// setCaller puts who calls into the request's context.
func setCaller(c echo.Context, name, userID string, permissions []string) {
	ctx := c.Request().Context()
	info := okapi.FromContext(ctx)
	info.UserName, info.UserID, info.Permissions = name, userID, permissions
	c.SetRequest(c.Request().WithContext(okapi.NewContext(ctx, info)))
}

// checkHeader returns the name that was sent with the password in the header, or a fault of
// checkPassword.
func (g *Guard) checkHeader(c echo.Context) (string, error) {
	r := c.Request()
	name, password, sent := r.BasicAuth()
	err := error(fault.New(fault.Unauthorized, "Sign in with your name and the password of the staff pages (HTTP Basic authentication)"))
	if sent {
		err = g.checkPassword(r.Context(), c.RealIP(), name, password)
	}
	if fault.Is(err, fault.Unauthorized) {
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, challenge)
	}
	return name, err
}

// checkPassword returns nil for the password and a name. Faults: Unauthorized, TooManyTries.
func (g *Guard) checkPassword(ctx context.Context, peer, name, password string) error {
	if !isUsableName(name) {
		return fault.New(fault.Unauthorized, "The user name must be 1 to %d printable characters: it says in the history who did what", schemas.MaxChangeName)
	}
	return g.attempts.check(ctx, peer, name, func() bool {
		hashed := sha256.Sum256([]byte(password))
		return subtle.ConstantTimeCompare(hashed[:], g.password[:]) == 1
	})
}

func isUsableName(name string) bool {
	return strings.TrimSpace(name) != "" && schemas.IsPrintable(name, schemas.MaxChangeName)
}
