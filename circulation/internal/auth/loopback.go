package auth

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"checkoutlock/schemas/fault"
)

// requireLoopbackHost requires a loopback Host header, which prevents DNS rebinding. The
// service listens on loopback then, but a page of another site can make its own name resolve
// to 127.0.0.1. The browser treats that as the same site and sends the page's requests, with
// that name as the Host.
func requireLoopbackHost(r *http.Request) error {
	if IsLoopback(stripPort(r.Host)) {
		return nil
	}
	return fault.New(fault.Forbidden, "Sign-in is off (STAFF_AUTH=none), so only addresses of this computer itself are served, "+
		"such as http://localhost, not %q: a page of another site may use that name. "+
		"To be reached by other names, set STAFF_AUTH to gateway or basic.", fault.Shown(r.Host))
}

// IsLoopback reports whether a host, a name or an address without port, always means
// the machine itself: localhost and what ends in .localhost (RFC 6761), 127.0.0.0/8
// and ::1.
func IsLoopback(host string) bool {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// stripPort returns a Host header without its port and without the brackets of IPv6.
func stripPort(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}
