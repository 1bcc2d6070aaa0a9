package database

import (
	"errors"
	"time"

	"checkoutlock/config"
)

// Settings are the settings of a service for its database.
type Settings struct {
	// URL is a PostgreSQL connection URL.
	URL string `env:"DATABASE_URL"`
	// MigrateURL is a direct connection for migrations, if URL leads through a connection
	// pooler. Empty means URL.
	MigrateURL string `env:"MIGRATE_DATABASE_URL"`
	// MaxConns is the size of the connection pool.
	MaxConns int32 `env:"DATABASE_MAX_CONNS" envDefault:"20"`
	// Wait is how long a service waits at the start for a writable database. 0 does not
	// wait.
	Wait time.Duration `env:"DATABASE_WAIT" envDefault:"60s"`
}

// Validate checks that there is a URL, and Open its form. No message repeats the URL,
// because it holds a password.
func (s Settings) Validate() error {
	var empty error
	if s.URL == "" {
		empty = errors.New("DATABASE_URL is empty, allowed: a PostgreSQL connection URL such as postgres://user:password@host:5432/name")
	}
	return errors.Join(empty,
		config.CheckRange("DATABASE_MAX_CONNS", s.MaxConns, 2, 500),
		config.CheckRange("DATABASE_WAIT", s.Wait, 0, 10*time.Minute, "0s to 10m"))
}

// Config returns the settings for Open. statement bounds each statement on the server.
func (s Settings) Config(statement time.Duration) Config {
	return Config{URL: s.URL, MigrateURL: s.MigrateURL, MaxConns: s.MaxConns, StatementTimeout: statement}
}
