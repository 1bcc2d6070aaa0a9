package sink

import (
	"net/http"
	"net/url"

	"checkoutlock/circulation-storage/internal/events"
)

// UseProxy lets a sink of EVENTS_URL send through a proxy. It is called before Send.
func UseProxy(s events.Sink, proxy *url.URL) {
	s.(*poster).transport.Proxy = http.ProxyURL(proxy) //nolint:forcetypeassert // it is one
}
