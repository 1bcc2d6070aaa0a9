package auth

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"checkoutlock/schemas/fault"
)

// onThisMachine refuses a request that was sent to another name than this
// machine's own. The service listens on loopback then, but a page from anywhere
// can have its own name point to 127.0.0.1 (DNS rebinding); the browser takes that
// for the same site and sends whatever the page likes, with that name as the Host.
func onThisMachine(r *http.Request) error {
	if IsLoopback(hostOnly(r.Host)) {
		return nil
	}
	return fault.New(fault.Forbidden, "Nobody is asked to sign in here (STAFF_AUTH=none), so only addresses of this computer itself are served, "+
		"such as http://localhost, not %q: behind that name may be a page of another site. "+
		"To be reached by other names, set STAFF_AUTH to gateway or basic.", fault.Shown(r.Host))
}

// IsLoopback tells whether a host, a name or an address without port, always means
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

// hostOnly is a Host header without its port and without the brackets of IPv6.
func hostOnly(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}
