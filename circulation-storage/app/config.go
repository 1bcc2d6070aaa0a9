// Package app wires circulation-storage together: settings, database, domain and
// HTTP. It is the only package that knows all the others.
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
	HTTP config.HTTP
	Log  config.Log
	DatabaseConfig

	// Tenants are installed, or upgraded, before the service starts to serve.
	// Empty means that POST /_/tenant or the command migrate does it.
	Tenants []string `env:"TENANTS"`
	// LockTTLMs is the time to live of a lock whose request names none, in ms.
	LockTTLMs int `env:"LOCK_TTL_MS" envDefault:"3000"`
	// LockSweepInterval is how often locks that were outdated long ago are
	// deleted.
	LockSweepInterval time.Duration `env:"LOCK_SWEEP_INTERVAL" envDefault:"1m"`
	// HistoryRetention is how long it is kept how check-outs ended, and whose locks
	// were released by force.
	HistoryRetention time.Duration `env:"HISTORY_RETENTION" envDefault:"720h"`
}

// DatabaseConfig says where PostgreSQL is.
type DatabaseConfig struct {
	// URL is a PostgreSQL connection URL.
	URL string `env:"DATABASE_URL"`
	// MigrateURL is a direct connection for migrations, for a URL that leads
	// through a connection pooler. Empty means URL.
	MigrateURL string `env:"MIGRATE_DATABASE_URL"`
	// MaxConns is the size of the connection pool.
	MaxConns int32 `env:"DATABASE_MAX_CONNS" envDefault:"20"`
	// Wait is how long serve and migrate wait at the start for a database that
	// answers and takes writes. 0 does not wait.
	Wait time.Duration `env:"DATABASE_WAIT" envDefault:"60s"`
}

// DefaultConfig is what Load starts from.
func DefaultConfig() Config { return Config{HTTP: config.HTTP{Port: 8081}} }

// leastRequestTimeout lets a request wait for a lock as long as it may.
const leastRequestTimeout = schemas.MaxLockWaitMs*time.Millisecond + 5*time.Second

// Validate implements config.Validator.
func (c *Config) Validate() error {
	errs := []error{c.HTTP.Validate(leastRequestTimeout), c.Log.Validate(), c.DatabaseConfig.Validate()}
	for _, name := range c.Tenants {
		if _, err := okapi.ParseTenant(name); err != nil {
			errs = append(errs, fmt.Errorf("TENANTS has %q: %w", name, err))
		}
	}
	if c.LockTTLMs < schemas.MinLockTTLMs || c.LockTTLMs > schemas.MaxLockTTLMs {
		errs = append(errs, config.OutOfRange("LOCK_TTL_MS", c.LockTTLMs, fmt.Sprintf("%d to %d", schemas.MinLockTTLMs, schemas.MaxLockTTLMs)))
	}
	if c.LockSweepInterval < time.Second || c.LockSweepInterval > 24*time.Hour {
		errs = append(errs, config.OutOfRange("LOCK_SWEEP_INTERVAL", c.LockSweepInterval, "1s to 24h"))
	}
	if c.HistoryRetention < time.Hour || c.HistoryRetention > 365*24*time.Hour {
		errs = append(errs, config.OutOfRange("HISTORY_RETENTION", c.HistoryRetention, "1h to 8760h"))
	}
	return errors.Join(errs...)
}

// Validate checks that there is a URL; its form is checked when it is used. The
// URL holds a password, so no message repeats it.
func (c DatabaseConfig) Validate() error {
	var errs []error
	if c.URL == "" {
		errs = append(errs, errors.New("DATABASE_URL is empty, allowed: a PostgreSQL connection URL such as postgres://user:password@host:5432/name"))
	}
	if c.MaxConns < 2 || c.MaxConns > 500 {
		errs = append(errs, config.OutOfRange("DATABASE_MAX_CONNS", c.MaxConns, "2 to 500"))
	}
	if c.Wait < 0 || c.Wait > 10*time.Minute {
		errs = append(errs, config.OutOfRange("DATABASE_WAIT", c.Wait, "0s to 10m"))
	}
	return errors.Join(errs...)
}

// tenants returns the ids of Tenants.
func (c *Config) tenants() ([]okapi.Tenant, error) {
	ids := make([]okapi.Tenant, len(c.Tenants))
	for i, name := range c.Tenants {
		id, err := okapi.ParseTenant(name)
		if err != nil {
			return nil, fmt.Errorf("tenant %q: %w", name, err)
		}
		ids[i] = id
	}
	return ids, nil
}

func (c *Config) lockTTL() time.Duration { return time.Duration(c.LockTTLMs) * time.Millisecond }
