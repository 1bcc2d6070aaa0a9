package sink

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/url"

	"checkoutlock/circulation-storage/internal/events"
)

// UseProxy lets a sink of EVENTS_URL send through a proxy. It is called before Send.
func UseProxy(s events.Sink, proxy *url.URL) {
	s.(*poster).transport.Proxy = http.ProxyURL(proxy) //nolint:forcetypeassert // it is one
}

// TrustServer lets a sink of EVENTS_URL trust the certificate of a test's server, and leaves its protocols as
// they are with the system's certificates. It is called before Send.
func TrustServer(s events.Sink, server *httptest.Server) {
	transport := s.(*poster).transport //nolint:forcetypeassert // it is one
	trusted := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	if certificate := server.Certificate(); certificate != nil {
		trusted.RootCAs.AddCert(certificate)
	}
	transport.TLSClientConfig, transport.ForceAttemptHTTP2 = trusted, true
}
