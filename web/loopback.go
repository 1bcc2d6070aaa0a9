package web

import (
	"net"
	"net/netip"
	"strings"

	"github.com/labstack/echo/v4"

	"checkoutlock/schemas/fault"
)

// requireThisMachine refuses calls of other machines. The Host shows those that came through a proxy
// on this one, and those of a page whose own name leads to 127.0.0.1 (DNS rebinding).
func requireThisMachine(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !IsLoopback(c.RealIP()) || !IsLoopback(c.Request().Host) {
			return fault.New(fault.Forbidden, "This endpoint is for callers on this machine, by an address such as http://localhost")
		}
		return next(c)
	}
}

// IsLoopback reports whether a host, a name or an address with or without port, always means
// the machine itself: localhost and what ends in .localhost (RFC 6761), 127.0.0.0/8
// and ::1.
func IsLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
