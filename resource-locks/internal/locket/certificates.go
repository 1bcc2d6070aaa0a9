package locket

import (
	"crypto/tls"
	"log/slog"
	"sync/atomic"
)

// certificates read the TLS files for each connection, so that a renewed certificate needs
// no restart. They parse only files that have changed: connections keep what was parsed for
// them, and so share it.
type certificates struct {
	settings Settings
	log      *slog.Logger
	last     atomic.Pointer[loadedTLS] // without an error
}

// loadedTLS is a configuration with the files that it was made of.
type loadedTLS struct {
	files tlsFiles
	cfg   *tls.Config
}

func loadTLS(s Settings) (*loadedTLS, error) {
	files, err := s.readTLS()
	if err != nil {
		return nil, err
	}
	cfg, err := s.parseTLS(files)
	return &loadedTLS{files, cfg}, err
}

func loadCertificates(s Settings, log *slog.Logger) (*certificates, error) {
	loaded, err := loadTLS(s)
	if err != nil {
		return nil, err
	}
	c := &certificates{settings: s, log: log}
	c.last.Store(loaded)
	return c, nil
}

// serverConfig returns the configuration of the listener.
func (c *certificates) serverConfig() *tls.Config {
	cfg := c.last.Load().cfg.Clone()
	cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.reload(), nil }
	return cfg
}

// reload returns the last configuration while the files have not changed, and while they do
// not fit each other.
func (c *certificates) reload() *tls.Config {
	last := c.last.Load()
	files, err := c.settings.readTLS()
	if err == nil && files == last.files {
		return last.cfg
	}
	var cfg *tls.Config
	if err == nil {
		cfg, err = c.settings.parseTLS(files)
	}
	if err != nil {
		c.log.Warn("the former TLS files stay in use", "err", err)
		return last.cfg
	}
	c.last.Store(&loadedTLS{files, cfg})
	return cfg
}
