package page

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
)

// The CSRF check. A form must repeat the token of the visitor's cookie. Another site
// can neither read that cookie nor send it with a form (SameSite).
//
// A neighbour under the same domain can set such a cookie. So a form is also refused
// if the browser says that it comes from a neighbour. This holds behind a gateway too,
// where the guard does not check origins.
//
// Echo's middleware is not used: it asks for no token if the browser sends
// Sec-Fetch-Site.

const (
	tokenCookie = "staff_token"
	tokenField  = "token"
)

// CheckToken returns the visitor's token, or makes a new one. It refuses a change that does not repeat the token. Fault: Forbidden.
func CheckToken(c echo.Context) (string, error) {
	sent := ReadCookie(c, tokenCookie)
	known := len(sent) == len(rand.Text())
	if method := c.Request().Method; method != http.MethodGet && method != http.MethodHead {
		if !known || IsCrossSite(c.Request()) || subtle.ConstantTimeCompare([]byte(sent), []byte(c.FormValue(tokenField))) != 1 {
			return "", Refuse(fault.Forbidden, "error.formOld", nil)
		}
	}
	if known {
		return sent, nil // a new one would invalidate the forms that are open
	}
	return RenewToken(c), nil
}

// RenewToken makes a new token for the visitor, as after each sign-in: a token from before it may be
// known to others.
func RenewToken(c echo.Context) string {
	token := rand.Text()
	SetCookie(c, tokenCookie, token, 0)
	return token
}

// IsCrossSite reports whether the browser says that another site or a neighbour made
// the request. Old browsers do not say.
func IsCrossSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}
