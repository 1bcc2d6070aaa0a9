package resolver

import (
	"net"
	"net/http"
	"time"
)

// dialTimeout bounds a connection attempt, and the handshake of TLS. Both outlive their request.
const dialTimeout = 5 * time.Second

// NewTransport returns connections to hosts that Default finds, with the proxy of the environment. It speaks
// HTTP/1.1 alone: over HTTP/2 a connection to a host that was lost would be used again, until TCP gives it up
// after a quarter of an hour.
func NewTransport() *http.Transport {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: dialTimeout, Resolver: Default}).DialContext,
		TLSHandshakeTimeout: dialTimeout, IdleConnTimeout: 90 * time.Second, Protocols: new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	return t
}
