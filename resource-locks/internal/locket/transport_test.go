package locket_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/resource-locks/internal/locket"
	"checkoutlock/resource-locks/internal/locket/locketpb"
)

// authority signs certificates of a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.key, a.pem = a.sign(t, template)
	block, _ := pem.Decode(a.pem)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	a.cert = cert
	return a
}

// sign returns a new key and its certificate; the first one signs itself.
func (a *authority) sign(t *testing.T, template *x509.Certificate) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// issue returns a certificate with its key, as PEM, for servers and clients.
func (a *authority) issue(t *testing.T, name string, notAfter time.Time) (certPEM, keyPEM []byte) {
	t.Helper()
	key, certPEM := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: notAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return certPEM, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// tlsSettings writes the server's files.
func tlsSettings(t *testing.T, a *authority, name string) locket.Settings {
	t.Helper()
	folder := t.TempDir()
	settings := locket.Settings{
		Addr: "127.0.0.1:0", OperationTimeout: 10 * time.Second,
		CertFile: filepath.Join(folder, "cert"), KeyFile: filepath.Join(folder, "key"), CAFile: filepath.Join(folder, "ca"),
	}
	cert, key := a.issue(t, name, time.Now().Add(time.Hour))
	writeFile(t, settings.CertFile, cert)
	writeFile(t, settings.KeyFile, key)
	writeFile(t, settings.CAFile, a.pem)
	return settings
}

// clientTLS trusts a, and shows a certificate of issuer unless that is nil.
func clientTLS(t *testing.T, a, issuer *authority, notAfter time.Time) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.pem)
	cfg := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10}
	if issuer == nil {
		return cfg
	}
	pair, err := tls.X509KeyPair(issuer.issue(t, "any name", notAfter))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return cfg
}

func TestTLS(t *testing.T) {
	t.Parallel()
	a, other := newAuthority(t), newAuthority(t)
	s := startHarness(t, tlsSettings(t, a, "locket"))
	later, before := time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	version := func(cfg *tls.Config, v uint16) *tls.Config { cfg.MaxVersion = v; return cfg }
	for _, tt := range []struct {
		name      string
		transport credentials.TransportCredentials
		code      codes.Code
	}{
		{name: "TLS 1.3", transport: credentials.NewTLS(clientTLS(t, a, a, later)), code: codes.NotFound},
		{
			name: "TLS 1.2", transport: credentials.NewTLS(version(clientTLS(t, a, a, later), tls.VersionTLS12)),
			code: codes.NotFound,
		},
		{
			name: "TLS 1.1", transport: credentials.NewTLS(version(clientTLS(t, a, a, later), tls.VersionTLS11)),
			code: codes.Unavailable,
		},
		{name: "no certificate", transport: credentials.NewTLS(clientTLS(t, a, nil, later)), code: codes.Unavailable},
		{name: "another authority", transport: credentials.NewTLS(clientTLS(t, a, other, later)), code: codes.Unavailable},
		{name: "an expired certificate", transport: credentials.NewTLS(clientTLS(t, a, a, before)), code: codes.Unavailable},
		{name: "no TLS", transport: insecure.NewCredentials(), code: codes.Unavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := locketpb.NewLocketClient(s.dial(t, tt.transport))
			_, err := c.Fetch(t.Context(), &locketpb.FetchRequest{Key: "k"})
			wantStatus(t, err, tt.code, "")
		})
	}
}

func TestTLS_ReadsRenewedFiles(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	settings := tlsSettings(t, a, "former")
	s := startHarness(t, settings)
	cfg := clientTLS(t, a, a, time.Now().Add(time.Hour))
	nameOfServer := func() string {
		conn, err := (&tls.Dialer{Config: cfg}).DialContext(t.Context(), "tcp", s.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	cert, key := a.issue(t, "renewed", time.Now().Add(time.Hour))
	writeFile(t, settings.CertFile, cert) // the key is still the former one
	if name := nameOfServer(); name != "former" {
		t.Errorf("the server shows %q while its files do not fit each other", name)
	}
	writeFile(t, settings.KeyFile, key)
	if name := nameOfServer(); name != "renewed" {
		t.Errorf("the server shows %q", name)
	}
}

func TestTLS_ConnectionsShareFilesThatHaveNotChanged(t *testing.T) {
	t.Parallel()
	first, second, err := tlsSettings(t, newAuthority(t), "locket").Reload()
	if err != nil || first != second {
		t.Errorf("got %p and %p, %v, want one configuration", first, second, err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	good := tlsSettings(t, newAuthority(t), "locket")
	for _, tt := range []struct {
		name   string
		change func(*locket.Settings)
		want   string // "" for no error
	}{
		{name: "complete", change: func(*locket.Settings) {}, want: ""},
		{name: "off", change: func(s *locket.Settings) { *s = locket.Settings{} }, want: ""},
		{name: "plaintext on loopback", change: func(s *locket.Settings) { *s = plaintext() }, want: ""},
		{
			name: "plaintext on IPv6 loopback", change: func(s *locket.Settings) { *s = plaintext(); s.Addr = "[::1]:8891" },
			want: "",
		},
		{
			name: "plaintext on localhost", change: func(s *locket.Settings) { *s = plaintext(); s.Addr = "localhost:8891" },
			want: "",
		},
		{
			name: "plaintext elsewhere", change: func(s *locket.Settings) { *s = plaintext(); s.Addr = "0.0.0.0:8891" },
			want: "LOCKET_ADDR is \"0.0.0.0:8891\", allowed: a loopback address",
		},
		{
			name: "plaintext everywhere", change: func(s *locket.Settings) { *s = plaintext(); s.Addr = ":8891" },
			want: "a loopback address",
		},
		{
			name: "plaintext with files", change: func(s *locket.Settings) { s.Plaintext = true },
			want: "LOCKET_PLAINTEXT is true, allowed: false",
		},
		{
			name: "no port", change: func(s *locket.Settings) { s.Addr = "127.0.0.1" },
			want: "LOCKET_ADDR is \"127.0.0.1\", allowed: host:port",
		},
		{
			name: "a port that is too large", change: func(s *locket.Settings) { s.Addr = "127.0.0.1:70000" },
			want: "port from 0 to 65535",
		},
		{name: "no authority", change: func(s *locket.Settings) { s.CAFile = "" }, want: "LOCKET_ADDR needs LOCKET_TLS_CERT"},
		{name: "no key", change: func(s *locket.Settings) { s.KeyFile = "" }, want: "LOCKET_ADDR needs LOCKET_TLS_CERT"},
		{name: "a missing file", change: func(s *locket.Settings) { s.CAFile += "x" }, want: "LOCKET_TLS_CA cannot be read"},
		{
			name: "a file without certificates", change: func(s *locket.Settings) { s.CAFile = s.KeyFile },
			want: "a PEM file with at least one certificate",
		},
		{
			name: "a key in place of a certificate", change: func(s *locket.Settings) { s.CertFile = s.KeyFile },
			want: "LOCKET_TLS_CERT and LOCKET_TLS_KEY cannot be used",
		},
		{
			name: "no time", change: func(s *locket.Settings) { s.OperationTimeout = 0 }, want: "LOCKET_OPERATION_TIMEOUT is 0s",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			settings := good
			tt.change(&settings)
			err := settings.Validate()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestConnections_AreBounded(t *testing.T) {
	t.Parallel()
	store := enginetest.NewStore()
	s := newHarness(plaintext(), store)
	s.BoundConnections(2)
	s.start(t)
	fetch := func(conn *grpc.ClientConn) error {
		_, err := locketpb.NewLocketClient(conn).Fetch(t.Context(), &locketpb.FetchRequest{Key: "k"})
		return err
	}
	first := s.dial(t, insecure.NewCredentials())
	for _, conn := range []*grpc.ClientConn{first, s.dial(t, insecure.NewCredentials())} {
		wantStatus(t, fetch(conn), codes.NotFound, "")
	}
	wantStatus(t, fetch(s.dial(t, insecure.NewCredentials())), codes.Unavailable, "")
	wantStatus(t, fetch(first), codes.NotFound, "")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return status.Code(fetch(s.dial(t, insecure.NewCredentials()))) == codes.NotFound })
}

func TestCalls_OfAConnectionAreBounded(t *testing.T) {
	t.Parallel()
	var begun atomic.Int64
	proceed := make(chan struct{})
	_, c := startHooked(t, time.Minute, func(context.Context) error {
		begun.Add(1)
		<-proceed
		return nil
	})
	var calling sync.WaitGroup
	for i := range locket.MaxStreams + 50 {
		calling.Go(func() {
			if _, err := c.Lock(t.Context(), lockFor(15, resource(strconv.Itoa(i), "a"))); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, func() bool { return begun.Load() >= locket.MaxStreams })
	if n := begun.Load(); n > locket.MaxStreams {
		t.Errorf("%d calls at once, want %d", n, locket.MaxStreams)
	}
	close(proceed)
	calling.Wait()
}

func TestListen_NamesTheSettingOfAnAddressInUse(t *testing.T) {
	t.Parallel()
	s := startHarness(t, plaintext())
	settings := plaintext()
	settings.Addr = s.URL()
	err := newHarness(settings, s.store).Listen(t.Context())
	if err == nil || !strings.Contains(err.Error(), "LOCKET_ADDR chooses another address") {
		t.Errorf("got %v", err)
	}
}

func TestDrain_FinishesRunningCalls(t *testing.T) {
	t.Parallel()
	begun, proceed := make(chan struct{}), make(chan struct{})
	s, c := startHooked(t, 10*time.Second, func(context.Context) error {
		close(begun)
		<-proceed
		return nil
	})
	answered, drained := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := c.Lock(t.Context(), lockFor(15, resource("k", "a")))
		answered <- err
	}()
	<-begun
	go func() { drained <- s.Drain(t.Context()) }()
	waitFor(t, func() bool { // the listener is closed
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.URL())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	close(proceed)
	if err := <-answered; status.Code(err) != codes.OK {
		t.Error(err)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
}
