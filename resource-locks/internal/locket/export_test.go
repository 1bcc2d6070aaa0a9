package locket

import (
	"crypto/tls"
	"log/slog"
	"net"

	"google.golang.org/grpc/credentials/insecure"
)

// Listener is the front's server.
type Listener = listener

// NewListener returns the listener of the front that New returns.
func NewListener(o Options) *Listener { return newListener(o) }

// ListenOn listens without TLS on a listener of the test.
func (l *listener) ListenOn(ln net.Listener) { l.listenOn(ln, insecure.NewCredentials()) }

// Reload returns what certificates of the settings' files give two connections.
func (s Settings) Reload() (first, second *tls.Config, err error) {
	c, err := loadCertificates(s, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	return c.reload(), c.reload(), nil
}

// MaxStreams bounds the concurrent calls of a connection, MaxLists those of FetchAll.
const (
	MaxStreams = maxStreams
	MaxLists   = maxLists
)

// BoundConnections sets how many connections the front serves.
func (l *listener) BoundConnections(n int64) { l.limit = n }

// BoundLists sets how many bytes an answer of FetchAll has at most.
func (l *listener) BoundLists(bytes int) { l.service.maxList = bytes }
