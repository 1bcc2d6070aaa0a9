package page

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// hostPrefix begins the names of cookies that browsers take only over https, from the host itself
// (RFC 6265bis, 4.1.3). So no neighbour under the same domain can set one.
const hostPrefix = "__Host-"

// ReadCookie returns the value of a cookie of SetCookie, "" for none.
func ReadCookie(c echo.Context, name string) string {
	if c.Scheme() == "https" {
		name = hostPrefix + name
	}
	cookie, err := c.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// SetCookie sets a cookie that no script reads. maxAge 0 keeps it until the browser is closed; a
// negative one removes it. All paths get it: hostPrefix requires that, and a proxy may put a prefix
// before the paths.
//
// It is Lax, because a visitor who follows a link from a mail must come with it.
func SetCookie(c echo.Context, name, value string, maxAge time.Duration) {
	// A gateway's header gives the scheme; a forged header only loses the cookie.
	secure := c.Scheme() == "https"
	if secure {
		name = hostPrefix + name
	}
	c.SetCookie(&http.Cookie{ //nolint:gosec // Secure depends on the visitor's scheme
		Name: name, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: secure,
		MaxAge: int(maxAge.Seconds()),
	})
}
