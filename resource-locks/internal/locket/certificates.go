package locket

import (
	"crypto/tls"
	"log/slog"
	"sync/atomic"
)

// certificates read the TLS files for each connection, so that a renewed certificate needs
// no restart. Connections live long, so that costs little.
type certificates struct {
	settings Settings
	log      *slog.Logger
	last     atomic.Pointer[tls.Config] // read without an error
}

func loadCertificates(s Settings, log *slog.Logger) (*certificates, error) {
	cfg, err := s.loadTLS()
	if err != nil {
		return nil, err
	}
	c := &certificates{settings: s, log: log}
	c.last.Store(cfg)
	return c, nil
}

// serverConfig returns the configuration of the listener.
func (c *certificates) serverConfig() *tls.Config {
	cfg := c.last.Load().Clone()
	cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.reload(), nil }
	return cfg
}

// reload returns the last configuration while the files do not fit each other.
func (c *certificates) reload() *tls.Config {
	cfg, err := c.settings.loadTLS()
	if err != nil {
		c.log.Warn("the former TLS files stay in use", "err", err)
		return c.last.Load()
	}
	c.last.Store(cfg)
	return cfg
}
