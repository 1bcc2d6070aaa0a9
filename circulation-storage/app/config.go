// Package app connects the parts of circulation-storage: settings, database, domain and
// HTTP. Only this package imports all others.
package app

import (
	"errors"
	"fmt"
	"time"

	"checkoutlock/config"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// Config is every setting of circulation-storage.
type Config struct {
	HTTP     config.HTTP
	Log      config.Log
	Database Database

	// Tenants are installed, or upgraded, before the service starts to serve. If it is
	// empty, POST /_/tenant or the command migrate installs tenants.
	Tenants []string `env:"TENANTS"`
	// LockTTLMs is the time to live of a lock whose request names none, in ms.
	LockTTLMs int `env:"LOCK_TTL_MS" envDefault:"3000"`
	// LockSweepInterval is how often old rows are deleted; see sweptRows.
	LockSweepInterval time.Duration `env:"LOCK_SWEEP_INTERVAL" envDefault:"1m"`
	// HistoryRetention is how long ended check-outs, and the patrons of forced releases,
	// are kept.
	HistoryRetention time.Duration `env:"HISTORY_RETENTION" envDefault:"720h"`
}

// Database is the connection to PostgreSQL.
type Database struct {
	// URL is a PostgreSQL connection URL.
	URL string `env:"DATABASE_URL"`
	// MigrateURL is a direct connection for migrations, if URL leads through a connection
	// pooler. Empty means URL.
	MigrateURL string `env:"MIGRATE_DATABASE_URL"`
	// MaxConns is the size of the connection pool.
	MaxConns int32 `env:"DATABASE_MAX_CONNS" envDefault:"20"`
	// Wait is how long serve and migrate wait at the start for a writable database. 0 does
	// not wait.
	Wait time.Duration `env:"DATABASE_WAIT" envDefault:"60s"`
}

// DefaultConfig returns the defaults that config.Load does not know.
func DefaultConfig() Config { return Config{HTTP: config.HTTP{Port: 8081}} }

// leastRequestTimeout exceeds the longest wait for a lock.
const leastRequestTimeout = schemas.MaxLockWaitMs*time.Millisecond + 5*time.Second

// Validate implements config.Validator.
func (c *Config) Validate() error {
	errs := []error{
		c.HTTP.Validate(leastRequestTimeout), c.Log.Validate(), c.Database.Validate(),
		config.CheckRange("LOCK_TTL_MS", c.LockTTLMs, schemas.MinLockTTLMs, schemas.MaxLockTTLMs),
		config.CheckRange("LOCK_SWEEP_INTERVAL", c.LockSweepInterval, time.Second, 24*time.Hour, "1s to 24h"),
		config.CheckRange("HISTORY_RETENTION", c.HistoryRetention, time.Hour, 365*24*time.Hour, "1h to 8760h"),
	}
	for _, name := range c.Tenants {
		if _, err := okapi.ParseTenant(name); err != nil {
			errs = append(errs, fmt.Errorf("TENANTS has %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// Validate checks that there is a URL, and postgres.Open its form. No message repeats the
// URL, because it holds a password.
func (c Database) Validate() error {
	var empty error
	if c.URL == "" {
		empty = errors.New("DATABASE_URL is empty, allowed: a PostgreSQL connection URL such as postgres://user:password@host:5432/name")
	}
	return errors.Join(empty,
		config.CheckRange("DATABASE_MAX_CONNS", c.MaxConns, 2, 500),
		config.CheckRange("DATABASE_WAIT", c.Wait, 0, 10*time.Minute, "0s to 10m"))
}

func (c *Config) lockTTL() time.Duration { return time.Duration(c.LockTTLMs) * time.Millisecond }
