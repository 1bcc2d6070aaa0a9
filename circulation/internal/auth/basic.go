package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// challenge makes a browser ask for name and password, in UTF-8 (RFC 7617, 2.1).
const challenge = `Basic realm="Check-out lock", charset="UTF-8"`

// The bounds of a password in characters: too long to be guessed over HTTP, and short enough to be
// pasted.
const (
	minPassword = 12
	maxPassword = 200
)

// CheckPassword returns why a password cannot be used for Basic, nil if it can. The error does
// not repeat it.
func CheckPassword(password string) error {
	n := utf8.RuneCountInString(password)
	switch {
	case n < minPassword || n > maxPassword:
		return fmt.Errorf("has %d characters, allowed: %d to %d", n, minPassword, maxPassword)
	case !utf8.ValidString(password) || strings.ContainsFunc(password, unicode.IsControl):
		return errors.New("has control characters, such as a line break, or is no UTF-8: no browser can send it")
	}
	return nil
}

// signIn admits callers who know the password, under any name. It puts the name, the user id and
// all permissions into the request's context.
func (g *Guard) signIn(c echo.Context, userID string) error {
	name, err := g.checkSignIn(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	info := okapi.FromContext(ctx)
	info.UserName, info.UserID, info.Permissions = name, userID, checkout.OverridePermissions()
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
