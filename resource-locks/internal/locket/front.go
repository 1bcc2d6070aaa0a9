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

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/locket/locketpb"
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
	Settings Settings // enabled and valid
	Locks    *engine.Locks
	Log      *slog.Logger
	Registry prometheus.Registerer
	// ShutdownTimeout bounds the running calls after the listener has closed.
	ShutdownTimeout time.Duration
}

// Front is the gRPC server, a web.Front.
type Front struct {
	settings        Settings
	log             *slog.Logger
	shutdownTimeout time.Duration
	service         *service
	metrics         *metrics
	limit           int64 // of connections

	ln     net.Listener
	server *grpc.Server
}

// New returns a front that does not listen yet. It registers the front's metrics.
func New(o Options) *Front {
	m := newMetrics(o.Locks, o.Log)
	o.Registry.MustRegister(m.all()...)
	return &Front{
		settings: o.Settings, log: o.Log, shutdownTimeout: o.ShutdownTimeout, metrics: m, limit: maxConnections,
		service: newService(o.Locks, o.Settings.OperationTimeout),
	}
}

// Observe implements engine.Observer: it counts expired locks of Locket.
func (f *Front) Observe(e engine.Event) { f.metrics.observe(e) }

// Listen implements web.Front.
func (f *Front) Listen(ctx context.Context) error {
	transport, err := f.credentials()
	if err != nil {
		return err
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.settings.Addr)
	if err != nil {
		return fmt.Errorf("listening on %s (LOCKET_ADDR chooses another address): %w", f.settings.Addr, err)
	}
	f.listenOn(ln, transport)
	return nil
}

func (f *Front) credentials() (credentials.TransportCredentials, error) {
	if f.settings.Plaintext {
		return insecure.NewCredentials(), nil
	}
	certs, err := loadCertificates(f.settings, f.log)
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(certs.serverConfig()), nil
}

func (f *Front) listenOn(ln net.Listener, transport credentials.TransportCredentials) {
	f.ln = &boundedListener{Listener: ln, limit: f.limit, log: f.log}
	f.server = grpc.NewServer(
		grpc.Creds(transport),
		grpc.UnaryInterceptor(f.observeCall),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(maxStreams),
		grpc.ReadBufferSize(readBuffer), grpc.WriteBufferSize(writeBuffer),
		grpc.NumStreamWorkers(workers), grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingInterval, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: idlePing, Timeout: pingTimeout}),
	)
	locketpb.RegisterLocketServer(f.server, f.service)
}

// Addr is the address that the front listens on.
func (f *Front) Addr() string { return f.ln.Addr().String() }

// Serve implements web.Front.
func (f *Front) Serve(ctx context.Context) error {
	f.log.InfoContext(ctx, "serving Locket", "addr", f.Addr(), "plaintext", f.settings.Plaintext)
	if err := f.server.Serve(f.ln); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serving Locket: %w", err)
	}
	return nil
}

// Drain implements web.Front. Clients connect anew to another instance at once, while
// running calls finish.
func (f *Front) Drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.shutdownTimeout)
	defer cancel()
	cut := context.AfterFunc(ctx, f.server.Stop)
	f.server.GracefulStop()
	if !cut() {
		return fmt.Errorf("running calls of Locket were cut off after %s", f.shutdownTimeout)
	}
	return nil
}
