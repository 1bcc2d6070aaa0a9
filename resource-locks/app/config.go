// Package app connects the parts of resource-locks: settings, database, engine and
// fronts. Only this package imports all others.
package app

import (
	"errors"
	"time"

	"checkoutlock/config"
	"checkoutlock/database"
	"checkoutlock/resource-locks/internal/httpapi"
	"checkoutlock/resource-locks/internal/locket"
	"checkoutlock/resource-locks/internal/locktopus"
	"checkoutlock/resource-locks/internal/mutexapi"
	"checkoutlock/resource-locks/internal/sunbird"
	"checkoutlock/web/auth"
)

// Config is every setting of resource-locks. A front without an address is off.
type Config struct {
	// HTTP is for operators: health, metrics and the page of locks. Its time-outs hold for
	// all fronts of HTTP.
	HTTP     config.HTTP
	Log      config.Log
	Traces   config.Traces
	Database database.Settings
	Staff    auth.Settings

	Locket    locket.Settings
	Locktopus locktopus.Settings
	Sunbird   sunbird.Settings
	Mutex     mutexapi.Settings

	// SweepInterval is how often expired locks are counted and old ones deleted.
	SweepInterval time.Duration `env:"LOCK_SWEEP_INTERVAL" envDefault:"1s"`
	// HistoryRetention is how long forced releases are kept.
	HistoryRetention time.Duration `env:"HISTORY_RETENTION" envDefault:"720h"`
	// TimeZone is the time zone of the page of locks for browsers that do not say theirs: UTC if
	// it is empty, the machine's if it is not set. Package time reads the variable itself.
	TimeZone string `env:"TZ"`
}

// DefaultConfig returns the defaults that config.Load does not know.
func DefaultConfig() Config { return Config{HTTP: config.HTTP{Port: 9810}} }

// leastRequestTimeout exceeds the time-outs of one statement.
const leastRequestTimeout = 5 * time.Second

// Validate implements config.Validator.
func (c *Config) Validate() error {
	return errors.Join(
		c.HTTP.Validate(leastRequestTimeout), c.Log.Validate(), c.Traces.Validate(), c.Database.Validate(), c.Staff.Validate(c.HTTP, httpapi.Permissions()),
		c.Locket.Validate(), c.Locktopus.Validate(), c.Sunbird.Validate(), c.Mutex.Validate(),
		config.CheckRange("LOCK_SWEEP_INTERVAL", c.SweepInterval, 100*time.Millisecond, time.Hour, "100ms to 1h"),
		config.CheckRange("HISTORY_RETENTION", c.HistoryRetention, time.Hour, 365*24*time.Hour, "1h to 8760h"),
		config.CheckTimeZone("TZ", c.TimeZone),
	)
}
