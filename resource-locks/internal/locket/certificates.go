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

func loadCertificates(s Settings, log *slog.Logger) (*certificates, error) {
	c := &certificates{settings: s, log: log}
	_, err := c.load()
	return c, err
}

// load returns the configuration of the files. It parses those that have changed.
func (c *certificates) load() (*tls.Config, error) {
	files, err := c.settings.readTLS()
	if err != nil {
		return nil, err
	}
	if last := c.last.Load(); last != nil && files == last.files {
		return last.cfg, nil
	}
	cfg, err := c.settings.parseTLS(files)
	if err != nil {
		return nil, err
	}
	c.last.Store(&loadedTLS{files, cfg})
	return cfg, nil
}

// serverConfig returns the configuration of the listener.
func (c *certificates) serverConfig() *tls.Config {
	cfg := c.last.Load().cfg.Clone()
	cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.reload(), nil }
	return cfg
}

// reload returns the configuration of the files, and the last one while they do not fit each other.
func (c *certificates) reload() *tls.Config {
	cfg, err := c.load()
	if err != nil {
		c.log.Warn("the former TLS files stay in use", "err", err)
		return c.last.Load().cfg
	}
	return cfg
}
