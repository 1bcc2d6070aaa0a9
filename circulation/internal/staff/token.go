package staff

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
)

// A form is taken only from a page of ours: it repeats the token in the visitor's
// cookie, which other sites can neither read nor send with a form (SameSite). A
// neighbour under the same domain can set such a cookie, though, so a browser that
// says that the form came from there is refused besides: also behind a gateway,
// where the guard leaves origins alone, since pages are where their forms go. Echo's
// own middleware is not used, because it asks for no token from browsers that send
// Sec-Fetch-Site.

const (
	tokenCookie = "staff_token"
	tokenField  = "token"
)

// checkToken returns the visitor's token, a new one for who has none, and refuses
// a change that does not repeat it. Fault: Forbidden.
func checkToken(c echo.Context) (string, error) {
	cookie, err := c.Cookie(tokenCookie)
	known := err == nil && len(cookie.Value) == len(rand.Text())
	if method := c.Request().Method; method != http.MethodGet && method != http.MethodHead {
		if !known || fromElsewhere(c.Request()) || subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(c.FormValue(tokenField))) != 1 {
			return "", fault.New(fault.Forbidden, "This form did not come from a page that was opened here, or it is too old. Nothing was changed: "+
				"go back, load the page again and repeat the change. Your browser has to accept cookies.")
		}
	}
	if known {
		return cookie.Value, nil
	}
	token := rand.Text()
	// Lax, since whoever follows a link from elsewhere, a mail say, must not come
	// without the token: a new one would make the forms that are open worthless.
	c.SetCookie(&http.Cookie{ //nolint:gosec // Secure depends on how the visitor came
		Name: tokenCookie, Value: token, Path: "/staff/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
		// A gateway in front says how the visitor came; a forged header only loses the cookie.
		Secure: c.Scheme() == "https",
	})
	return token, nil
}

// fromElsewhere tells whether a browser says that another site or a neighbour made
// the request. Old browsers say nothing.
func fromElsewhere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}
