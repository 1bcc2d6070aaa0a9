package locket

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"checkoutlock/config"
	"checkoutlock/web"
)

// Settings configure the front.
type Settings struct {
	// Addr is the address to listen on, as host:port. Empty turns the front off.
	Addr string `env:"LOCKET_ADDR"`
	// CertFile and KeyFile are the server's certificate and its key, as PEM.
	CertFile string `env:"LOCKET_TLS_CERT"`
	KeyFile  string `env:"LOCKET_TLS_KEY"`
	// CAFile has the certificates, as PEM, that sign the certificates of clients.
	CAFile string `env:"LOCKET_TLS_CA"`
	// Plaintext turns TLS off. It is for loopback addresses only, because it lets every
	// client in.
	Plaintext bool `env:"LOCKET_PLAINTEXT"`
	// OperationTimeout bounds the work for one call. Calls do not end with their clients.
	OperationTimeout time.Duration `env:"LOCKET_OPERATION_TIMEOUT" envDefault:"10s"`
}

// Validate checks the settings of a front that is on. It reads the TLS files.
func (s Settings) Validate() error {
	if s.Addr == "" {
		return nil
	}
	return errors.Join(
		s.validateAddr(), s.validateTLS(),
		config.CheckRange("LOCKET_OPERATION_TIMEOUT", s.OperationTimeout, 100*time.Millisecond, time.Minute),
	)
}

func (s Settings) validateAddr() error {
	host, _, err := config.SplitAddr("LOCKET_ADDR", s.Addr)
	if err != nil {
		return err
	}
	if s.Plaintext && !web.IsLoopback(host) {
		return config.OutOfRange("LOCKET_ADDR", strconv.Quote(s.Addr), "a loopback address such as 127.0.0.1:8891, because LOCKET_PLAINTEXT is true")
	}
	return nil
}

func (s Settings) validateTLS() error {
	if s.Plaintext {
		if s.CertFile != "" || s.KeyFile != "" || s.CAFile != "" {
			return config.OutOfRange("LOCKET_PLAINTEXT", true, "false, because LOCKET_TLS_CERT, LOCKET_TLS_KEY or LOCKET_TLS_CA is set")
		}
		return nil
	}
	_, err := loadCertificates(s, nil)
	return err
}

// tlsFiles is what the TLS files hold.
type tlsFiles struct{ cert, key, ca string }

// readTLS reads the TLS files.
func (s Settings) readTLS() (tlsFiles, error) {
	if s.CertFile == "" || s.KeyFile == "" || s.CAFile == "" {
		return tlsFiles{}, errors.New("LOCKET_ADDR needs LOCKET_TLS_CERT, LOCKET_TLS_KEY and LOCKET_TLS_CA; or LOCKET_PLAINTEXT=true with a loopback address")
	}
	cert, certErr := os.ReadFile(s.CertFile)
	key, keyErr := os.ReadFile(s.KeyFile)
	if err := cmp.Or(certErr, keyErr); err != nil {
		return tlsFiles{}, errUnusablePair(err)
	}
	ca, err := os.ReadFile(s.CAFile)
	if err != nil {
		return tlsFiles{}, fmt.Errorf("LOCKET_TLS_CA cannot be read: %w", err)
	}
	return tlsFiles{cert: string(cert), key: string(key), ca: string(ca)}, nil
}

// parseTLS makes the configuration of the files. Clients need a certificate of the
// authority; its names do not matter.
func (s Settings) parseTLS(files tlsFiles) (*tls.Config, error) {
	pair, err := tls.X509KeyPair([]byte(files.cert), []byte(files.key))
	if err != nil {
		return nil, errUnusablePair(err)
	}
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM([]byte(files.ca)) {
		return nil, config.OutOfRange("LOCKET_TLS_CA", strconv.Quote(s.CAFile), "a PEM file with at least one certificate")
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    authority,
		NextProtos:   []string{"h2"},
	}, nil
}

func errUnusablePair(err error) error {
	return fmt.Errorf("LOCKET_TLS_CERT and LOCKET_TLS_KEY cannot be used: %w", err)
}
