package sink_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"checkoutlock/circulation-storage/internal/events"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/sink"
)

// writePEM writes a file of one block and returns its name.
func writePEM(t *testing.T, name, kind string, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestKafka_TLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(server.Close)
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate := writePEM(t, "tls.crt", "CERTIFICATE", server.Certificate().Raw)
	keyFile := writePEM(t, "tls.key", "PRIVATE KEY", key)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert,
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	id := pgtest.Tenant(t)
	for name, tt := range map[string]struct {
		ca, certificate, key string
		received             bool
	}{
		"both files":            {ca: certificate, certificate: certificate, key: keyFile, received: true},
		"the system's CAs":      {ca: "", certificate: certificate, key: keyFile, received: false},
		"no client certificate": {ca: certificate, certificate: "", key: "", received: false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := openSink(t, sink.Settings{
				Brokers: cluster.ListenAddrs(), TLS: true, CA: tt.ca, Certificate: tt.certificate, Key: tt.key,
				Environment: "e", Retention: time.Hour,
			})
			ctx, cancel := context.WithTimeout(t.Context(), sendTime(tt.received))
			defer cancel()
			err := to.Send(ctx, []events.Message{{Topic: "t", Key: "k", Tenant: id, Value: []byte("1")}})[0]
			if (err == nil) != tt.received {
				t.Errorf("got %v, want received %t", err, tt.received)
			}
		})
	}
}

// sendTime is how long a message is tried, which a refused one uses up.
func sendTime(received bool) time.Duration {
	if received {
		return time.Minute
	}
	return 10 * time.Second
}

// A record that is too large for Kafka will never be received.
func TestKafka_RefusesWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	b := startBroker(t, 0)
	to := openSink(t, sink.Settings{Brokers: []string{b.address()}, Environment: "e", Retention: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	id := pgtest.Tenant(t)
	errs := to.Send(ctx, []events.Message{
		{Topic: "t", Tenant: id, Value: make([]byte, 4<<20)}, {Topic: "t", Tenant: id, Value: []byte("1")},
	})
	if !errors.Is(errs[0], events.ErrRefused) || errs[1] != nil {
		t.Errorf("got %v, want the first one refused for itself", errs)
	}
}
