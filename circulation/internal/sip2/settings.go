package sip2

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"checkoutlock/config"
	"checkoutlock/schemas/okapi"
)

// Settings configure the front.
type Settings struct {
	// Addr is the address to listen on, as host:port. Empty turns the front off.
	Addr string `env:"SIP2_ADDR"`
	// Tenant is that of a login that names none.
	Tenant string `env:"SIP2_TENANT"`
	// TerminalFile has terminals beside those of storage, as JSON.
	TerminalFile string `env:"SIP2_TERMINALS"`
	// Unasked are the logins of machines that never sign in, such as sorters. A connection gets
	// the first one that its address may have.
	Unasked []string `env:"SIP2_LOGINS"`
	// NoBlock is what becomes of a check-out that has happened already: judge, lend or refuse. A
	// terminal may have another one.
	NoBlock string `env:"SIP2_NO_BLOCK" envDefault:"judge"`
	// CertFile and KeyFile are the server's certificate and its key, as PEM. Without them there is
	// no TLS.
	CertFile string `env:"SIP2_TLS_CERT"`
	KeyFile  string `env:"SIP2_TLS_KEY"`
}

// Validate checks the settings of a front that is on. It reads the files.
func (s Settings) Validate() error {
	if s.Addr == "" {
		return nil
	}
	_, _, err := config.SplitAddr("SIP2_ADDR", s.Addr)
	errs := []error{err}
	if s.Tenant != "" {
		if _, err := okapi.ParseTenant(s.Tenant); err != nil {
			errs = append(errs, config.OutOfRange("SIP2_TENANT", strconv.Quote(s.Tenant), "empty, or a tenant id: "+err.Error()))
		}
	}
	terminals, err := readTerminals(s)
	errs = append(errs, err)
	for _, login := range s.Unasked {
		name, tenant, err := s.splitLogin(login)
		if err != nil {
			errs = append(errs, config.OutOfRange("SIP2_LOGINS", strconv.Quote(login), "logins such as sorter@diku, separated by commas"))
			continue
		}
		if t, filed := terminals[newTerminalKey(tenant.String(), name)]; filed && t.ServicePointID == "" {
			errs = append(errs, config.OutOfRange("SIP2_LOGINS", strconv.Quote(login), "terminals with a servicePointId: they send no login that could name it"))
		}
	}
	if modes := []string{"judge", "lend", "refuse"}; !slices.Contains(modes, s.NoBlock) {
		errs = append(errs, config.OutOfRange("SIP2_NO_BLOCK", strconv.Quote(s.NoBlock), "judge, lend or refuse"))
	}
	if s.usesTLS() {
		_, err := s.loadCertificate()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (s Settings) usesTLS() bool { return s.CertFile != "" || s.KeyFile != "" }

func (s Settings) loadCertificate() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("SIP2_TLS_CERT and SIP2_TLS_KEY cannot be used: %w", err)
	}
	return &pair, nil
}

// tlsConfig reads the files for each connection, so that a renewed certificate needs no restart.
func (s Settings) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.loadCertificate() },
	}
}
