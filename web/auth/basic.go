package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// challenge makes a browser ask for name and password, in UTF-8 (RFC 7617, 2.1).
const challenge = `Basic realm="Staff", charset="UTF-8"`

// signIn admits callers who know the password, under any name. It puts the name, the user id and
// all permissions into the request's context.
func (g *Guard) signIn(c echo.Context, userID string) error {
	name, err := g.checkSignIn(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	info := okapi.FromContext(ctx)
	info.UserName, info.UserID, info.Permissions = name, userID, g.granted
	c.SetRequest(c.Request().WithContext(okapi.NewContext(ctx, info)))
	return nil
}

// checkSignIn returns the name that was sent with the password, or an Unauthorized
// fault.
func (g *Guard) checkSignIn(c echo.Context) (string, error) {
	r := c.Request()
	name, password, sent := r.BasicAuth()
	hashed := sha256.Sum256([]byte(password))
	var refused *fault.Error
	switch {
	case !sent:
		refused = fault.New(fault.Unauthorized, "Sign in with your name and the password of the staff pages (HTTP Basic authentication)")
	case !isUsableName(name):
		refused = fault.New(fault.Unauthorized, "The user name must be 1 to %d printable characters: it says in the history who did what", schemas.MaxChangeName)
	case subtle.ConstantTimeCompare(hashed[:], g.password[:]) != 1:
		g.log.WarnContext(r.Context(), "wrong password for the staff pages", "peer", c.RealIP())
		refused = fault.New(fault.Unauthorized, "The password is wrong")
	default:
		return name, nil
	}
	c.Response().Header().Set(echo.HeaderWWWAuthenticate, challenge)
	return "", refused
}

func isUsableName(name string) bool {
	return strings.TrimSpace(name) != "" && schemas.IsPrintable(name, schemas.MaxChangeName)
}
