package locket

import (
	"crypto/tls"
	"log/slog"
	"net"

	"google.golang.org/grpc/credentials/insecure"
)

// ListenOn listens without TLS on a listener of the test.
func (f *Front) ListenOn(ln net.Listener) { f.listenOn(ln, insecure.NewCredentials()) }

// Reload returns what certificates of the settings' files give two connections.
func (s Settings) Reload() (first, second *tls.Config, err error) {
	c, err := loadCertificates(s, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	return c.reload(), c.reload(), nil
}

// MaxStreams bounds the concurrent calls of a connection.
const MaxStreams = maxStreams

// BoundConnections sets how many connections the front serves.
func (f *Front) BoundConnections(n int64) { f.limit = n }

// BoundLists sets how many bytes an answer of FetchAll has at most.
func (f *Front) BoundLists(bytes int) { f.service.maxList = bytes }
