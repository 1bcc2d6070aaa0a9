package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"checkoutlock/integration-tests/mutualtls"
)

// startFronts starts the libraries that the fronts of resource-locks are made of, without the
// service. Their Lock is plainLocket on the database whose URL is given; without one it does
// nothing.
func startFronts(ctx context.Context, name string, certs *mutualtls.Files, databaseURL string) (*lockService, error) {
	s, err := newLockService(ctx, name)
	if err != nil {
		return nil, err
	}
	s.process, err = startYardstick(ctx, "fronts", append(s.listSettings(certs), "DATABASE_URL="+databaseURL)...)
	return s, err
}

// serveFronts is the process of startFronts. It ends with the first server that fails.
func serveFronts(ctx context.Context, getenv func(string) string) error {
	lock := func(context.Context, []byte) error { return nil }
	if databaseURL := getenv("DATABASE_URL"); databaseURL != "" {
		plain, err := newPlainLocket(ctx, databaseURL)
		if err != nil {
			return err
		}
		lock = plain.lock
	}
	transport, err := loadServerTLS(getenv("LOCKET_TLS_CERT"), getenv("LOCKET_TLS_KEY"))
	if err != nil {
		return err
	}
	ended := make(chan error)
	for _, front := range []struct {
		addr  string
		serve func(net.Listener) error
	}{
		{getenv("LOCKET_ADDR"), newLocketServer(transport, lock).Serve},
		{getenv("LOCKTOPUS_ADDR"), serveHTTP(newWebSockets())},
		{getenv("MUTEX_ADDR"), serveHTTP(http.NotFoundHandler())},
		// Its answer shows that all others listen.
		{"127.0.0.1:" + getenv("PORT"), serveHTTP(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))},
	} {
		ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", front.addr)
		if err != nil {
			return err
		}
		go func() { ended <- front.serve(ln) }()
	}
	return <-ended
}

func serveHTTP(h http.Handler) func(net.Listener) error {
	return (&http.Server{Handler: h, ReadHeaderTimeout: time.Minute}).Serve
}

// loadServerTLS reads a certificate that is its own authority.
func loadServerTLS(certFile, keyFile string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	authority := x509.NewCertPool()
	authority.AddCert(pair.Leaf)
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority,
	}, nil
}

// newLocketServer answers Lock after lock, which gets the encoded models.LockRequest. Its
// buffers and its policy for pings are those of resource-locks.
func newLocketServer(transport *tls.Config, lock func(context.Context, []byte) error) *grpc.Server {
	s := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(transport)), grpc.ForceServerCodec(plainBytes{}),
		grpc.ReadBufferSize(512), grpc.WriteBufferSize(4<<10),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)
	handle := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var request []byte
		if err := decode(&request); err != nil {
			return nil, err
		}
		return []byte(nil), lock(ctx, request)
	}
	s.RegisterService(&grpc.ServiceDesc{ServiceName: "models.Locket", Methods: []grpc.MethodDesc{{MethodName: "Lock", Handler: handle}}}, nil)
	return s
}

// newWebSockets upgrades each request and reads until the connection ends, with the buffers
// of resource-locks.
func newWebSockets() http.Handler {
	upgrader := websocket.Upgrader{ReadBufferSize: 512, WriteBufferSize: 1 << 10, WriteBufferPool: &sync.Pool{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return // the upgrader has answered
		}
		go func() { // the handler ends, which frees the buffers of the HTTP server
			for err == nil {
				_, _, err = ws.NextReader()
			}
			_ = ws.Close()
		}()
	})
}
