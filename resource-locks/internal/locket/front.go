// Package locket serves the protocol of Cloud Foundry's Locket 1.5, so that its clients
// use the engine's flat locks. A call names the owner; TLS alone authenticates clients.
package locket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"checkoutlock/config"
	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/locket/locketpb"
	"checkoutlock/web"
)

const (
	// maxMessage is the longest request in bytes; clients expect gRPC's default.
	maxMessage = 4 << 20
	// pingInterval is how often a client may ping, also without a call. Published clients
	// ping every 10 s; gRPC's default would end their connections.
	pingInterval = 5 * time.Second
	// readBuffer and writeBuffer are the sizes of a connection's buffers. Requests are small.
	// Idle connections keep their read buffers; gRPC shares the write buffers.
	readBuffer  = 512
	writeBuffer = 4 << 10
	// workers is how many goroutines wait for calls. A new one for each call would grow its
	// stack anew each time. While all are busy, calls get goroutines of their own.
	workers = 32
	// handshakeTimeout bounds the start of a connection.
	handshakeTimeout = 10 * time.Second
	// A connection without traffic for idlePing is pinged, and ends without an answer for
	// pingTimeout.
	idlePing    = time.Minute
	pingTimeout = 20 * time.Second
	// maxConnections bounds the connections of one process. One takes about 50 KB.
	maxConnections = 10_000
	// maxStreams bounds the concurrent calls of a connection. Clients let further ones wait.
	maxStreams = 100
)

// Options configure New. All fields are required.
type Options struct {
	Settings Settings // valid; without an address the front is off
	Locks    *engine.Locks
	// Observe adds an observer of the events of Locks.
	Observe      func(engine.Observer)
	Log          *slog.Logger
	Registry     prometheus.Registerer
	HTTP         config.HTTP // how the listener stops; the rest is not used
	CountRefusal func() bool // is that of web.Options
}

// listener is the gRPC server, a web.Listener.
type listener struct {
	Options
	service *service
	metrics *metrics
	limit   int64 // of connections

	ln     net.Listener
	server *grpc.Server
}

// New returns the front, and registers its metrics.
func New(o Options) (web.Front, error) {
	if o.Settings.Addr == "" {
		return web.Front{}, nil
	}
	return web.Front{Name: "locket", Listener: newListener(o)}, nil
}

func newListener(o Options) *listener {
	o.Log = o.Log.With("front", "locket")
	m := newMetrics(o.Registry, o.Locks, o.Log)
	o.Observe(m)
	return &listener{Options: o, metrics: m, limit: maxConnections, service: newService(o.Locks, o.Settings.OperationTimeout)}
}

// Listen implements web.Listener.
func (l *listener) Listen(ctx context.Context) error {
	transport, err := l.credentials()
	if err != nil {
		return err
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.Settings.Addr)
	if err != nil {
		return fmt.Errorf("listening on %s (LOCKET_ADDR chooses another address): %w", l.Settings.Addr, err)
	}
	l.listenOn(ln, transport)
	return nil
}

func (l *listener) credentials() (credentials.TransportCredentials, error) {
	if l.Settings.Plaintext {
		return insecure.NewCredentials(), nil
	}
	certs, err := loadCertificates(l.Settings, l.Log)
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(certs.serverConfig()), nil
}

func (l *listener) listenOn(ln net.Listener, transport credentials.TransportCredentials) {
	l.ln = &boundedListener{Listener: ln, limit: l.limit, log: l.Log}
	l.server = grpc.NewServer(
		grpc.Creds(transport),
		grpc.UnaryInterceptor(l.observeCall),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(maxStreams),
		grpc.ReadBufferSize(readBuffer), grpc.WriteBufferSize(writeBuffer),
		grpc.NumStreamWorkers(workers), grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingInterval, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: idlePing, Timeout: pingTimeout}),
	)
	locketpb.RegisterLocketServer(l.server, l.service)
}

// URL implements web.Listener: host:port, as clients of gRPC take it.
func (l *listener) URL() string { return l.ln.Addr().String() }

// Serve implements web.Listener.
func (l *listener) Serve(ctx context.Context) error {
	l.Log.InfoContext(ctx, "serving Locket", "addr", l.URL(), "plaintext", l.Settings.Plaintext)
	if err := l.server.Serve(l.ln); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serving Locket: %w", err)
	}
	return nil
}

// Drain implements web.Listener. After DrainDelay clients connect anew to another instance at
// once, while running calls finish.
func (l *listener) Drain(ctx context.Context) error {
	<-time.After(l.HTTP.DrainDelay)
	ctx, cancel := context.WithTimeout(ctx, l.HTTP.ShutdownTimeout)
	defer cancel()
	defer l.ln.Close() // GracefulStop closes it only after Serve
	cut := context.AfterFunc(ctx, l.server.Stop)
	l.server.GracefulStop()
	if !cut() {
		return fmt.Errorf("running calls of Locket were cut off after %s", l.HTTP.ShutdownTimeout)
	}
	return nil
}
