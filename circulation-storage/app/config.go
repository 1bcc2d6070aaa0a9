// Package app connects the parts of circulation-storage: settings, database, domain and
// HTTP. Only this package imports all others.
package app

import (
	"errors"
	"fmt"
	"time"

	"checkoutlock/circulation-storage/internal/sink"
	"checkoutlock/config"
	"checkoutlock/database"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// Config is every setting of circulation-storage.
type Config struct {
	HTTP     config.HTTP
	Log      config.Log
	Traces   config.Traces
	Database database.Settings
	Events   sink.Settings

	// Tenants are installed, or upgraded, before the service starts to serve. If it is
	// empty, POST /_/tenant or the command migrate installs tenants.
	Tenants []string `env:"TENANTS"`
	// InstallTimeout bounds POST /_/tenant, which may migrate and load many records.
	InstallTimeout time.Duration `env:"INSTALL_TIMEOUT" envDefault:"10m"`
	// LockTTLMs is the time to live of a lock whose request names none, in ms.
	LockTTLMs int `env:"LOCK_TTL_MS" envDefault:"3000"`
	// LockSweepInterval is how often old rows are deleted; see sweptRows.
	LockSweepInterval time.Duration `env:"LOCK_SWEEP_INTERVAL" envDefault:"1m"`
	// HistoryRetention is how long ended check-outs, and the patrons of forced releases,
	// are kept.
	HistoryRetention time.Duration `env:"HISTORY_RETENTION" envDefault:"720h"`
	// LoanHistoryRetention is how long the history of closed loans is kept; 0 keeps it for ever.
	LoanHistoryRetention time.Duration `env:"LOAN_HISTORY_RETENTION" envDefault:"0s"`
}

// DefaultConfig returns the defaults that config.Load does not know.
func DefaultConfig() Config { return Config{HTTP: config.HTTP{Port: 8081}} }

// leastRequestTimeout exceeds the longest wait for a lock.
const leastRequestTimeout = schemas.MaxLockWaitMs*time.Millisecond + 5*time.Second

// Validate implements config.Validator.
func (c *Config) Validate() error {
	errs := []error{
		c.HTTP.Validate(leastRequestTimeout), c.Log.Validate(), c.Traces.Validate(), c.Database.Validate(), c.Events.Validate(),
		config.CheckRange("INSTALL_TIMEOUT", c.InstallTimeout, c.HTTP.RequestTimeout, time.Hour, "REQUEST_TIMEOUT to 1h"),
		config.CheckRange("LOCK_TTL_MS", c.LockTTLMs, schemas.MinLockTTLMs, schemas.MaxLockTTLMs),
		config.CheckRange("LOCK_SWEEP_INTERVAL", c.LockSweepInterval, time.Second, 24*time.Hour, "1s to 24h"),
		config.CheckRange("HISTORY_RETENTION", c.HistoryRetention, time.Hour, 365*24*time.Hour, "1h to 8760h"),
	}
	if c.LoanHistoryRetention != 0 {
		errs = append(errs, config.CheckRange("LOAN_HISTORY_RETENTION", c.LoanHistoryRetention, 24*time.Hour, 876000*time.Hour, "0s, or 24h to 876000h"))
	}
	for _, name := range c.Tenants {
		if _, err := okapi.ParseTenant(name); err != nil {
			errs = append(errs, fmt.Errorf("TENANTS has %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
