package page

import (
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// hostPrefix begins the names of cookies that browsers take only over https, from the host itself
// (RFC 6265bis, 4.1.3). So no neighbour under the same domain can set one.
const hostPrefix = "__Host-"

// prefixOf returns what begins the names of cookies over the visitor's scheme.
func prefixOf(c echo.Context) string {
	if c.Scheme() == "https" {
		return hostPrefix
	}
	return ""
}

// ReadCookie returns the value of a cookie of SetCookie, "" for none.
func ReadCookie(c echo.Context, name string) string {
	cookie, err := c.Cookie(prefixOf(c) + name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// FindCookies returns the values of the cookies of SetCookie whose names begin so, by name.
func FindCookies(c echo.Context, begin string) map[string]string {
	found := map[string]string{}
	for _, sent := range c.Cookies() {
		if name, ours := strings.CutPrefix(sent.Name, prefixOf(c)); ours && strings.HasPrefix(name, begin) {
			found[name] = sent.Value
		}
	}
	return found
}

// SetCookie sets a cookie that no script reads. maxAge 0 keeps it until the browser is closed; a
// negative one removes it. All paths get it: hostPrefix requires that, and a proxy may put a prefix
// before the paths.
//
// It is Lax, because a visitor who follows a link from a mail must come with it.
func SetCookie(c echo.Context, name, value string, maxAge time.Duration) {
	// A gateway's header gives the scheme; a forged header only loses the cookie.
	prefix := prefixOf(c)
	c.SetCookie(&http.Cookie{ //nolint:gosec // Secure depends on the visitor's scheme
		Name: prefix + name, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: prefix != "",
		MaxAge: int(maxAge.Seconds()),
	})
}
