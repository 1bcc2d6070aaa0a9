// Package app connects the parts of circulation: settings, storage's client, the flows and
// HTTP. Only this package imports all others.
package app

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/circulation/internal/sip2"
	"checkoutlock/config"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
	"checkoutlock/web/auth"
)

// Config is every setting of circulation.
type Config struct {
	HTTP   config.HTTP
	Log    config.Log
	Traces config.Traces

	// StorageURL is the address of circulation-storage, or of the gateway before it.
	StorageURL string `env:"STORAGE_URL" envDefault:"http://127.0.0.1:8081"`
	// StorageReadyTenant is the tenant of readiness requests to storage, for a proxy that
	// routes by tenant. Empty names none.
	StorageReadyTenant string `env:"STORAGE_READY_TENANT"`
	// InstanceName identifies this process as the holder of locks, for operators. The
	// default is the host's name and the process id.
	InstanceName string `env:"INSTANCE_NAME"`

	// LockEnabled, LockTTLMs and RetryIntervalsMs are the settings of the check-out lock
	// for tenants without settings of their own.
	LockEnabled bool `env:"CHECKOUT_LOCK_FEATURE_ENABLED" envDefault:"false"`
	// LockTTLMs is how long a lock of a dead holder lives, in ms.
	LockTTLMs int `env:"LOCK_TTL_MS" envDefault:"3000"`
	// RetryIntervalsMs are the waits between tries for the lock, in ms. n waits mean n+1 tries.
	RetryIntervalsMs []int `env:"RETRY_INTERVAL_MS" envSeparator:"|" envDefault:"500|500|1000"`

	// CheckOutConcurrency is how many check-outs run at once.
	CheckOutConcurrency int `env:"CHECKOUT_CONCURRENCY" envDefault:"32"`
	// CheckOutQueueWait is how long another check-out waits for its turn.
	CheckOutQueueWait time.Duration `env:"CHECKOUT_QUEUE_WAIT" envDefault:"3s"`

	// SIP2 is the front of self-check machines.
	SIP2 sip2.Settings

	// Staff is how staff authenticate.
	Staff auth.Settings
	// MachinePatience is how long the library's self-check machines wait for an answer. The
	// staff pages warn if a check-out may wait longer for a lock.
	MachinePatience time.Duration `env:"MACHINE_PATIENCE" envDefault:"5s"`
	// Drill lets staff run drills of the lock, which make a tenant of their own.
	Drill bool `env:"DRILL_ENABLED" envDefault:"true"`
	// TimeZone is the time zone of the staff pages: UTC if it is empty, the host's if it
	// is not set. Package time reads it itself, and uses UTC for an unknown one.
	TimeZone string `env:"TZ"`
}

// DefaultConfig returns the defaults that config.Load does not know.
func DefaultConfig() Config {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	name := host[:min(len(host), schemas.MaxInstanceName-len(":4294967295"))] + ":" + strconv.Itoa(os.Getpid())
	return Config{HTTP: config.HTTP{Port: 9801}, InstanceName: name}
}

const (
	// leastRequestTimeout exceeds the longest waits for the lock that a tenant may set.
	leastRequestTimeout = schemas.MaxLockWaits + 5*time.Second
	// leastWork is the part of it without waits.
	leastWork = 2 * time.Second
)

// Validate implements config.Validator.
func (c *Config) Validate() error {
	least := max(leastRequestTimeout, c.CheckOutQueueWait+schemas.MaxLockWaits+leastWork)
	errs := []error{
		c.HTTP.Validate(least), c.Log.Validate(), c.Traces.Validate(), c.SIP2.Validate(),
		config.CheckRange("CHECKOUT_CONCURRENCY", c.CheckOutConcurrency, 1, 1000),
		config.CheckRange("CHECKOUT_QUEUE_WAIT", c.CheckOutQueueWait, 100*time.Millisecond, 10*time.Second),
	}
	if _, err := c.storageURL(); err != nil {
		errs = append(errs, err)
	}
	if _, err := c.readyTenant(); err != nil {
		errs = append(errs, config.OutOfRange("STORAGE_READY_TENANT", strconv.Quote(c.StorageReadyTenant), "empty, or a tenant id: "+err.Error()))
	}
	if !isPrintable(c.InstanceName) {
		errs = append(errs, config.OutOfRange("INSTANCE_NAME", strconv.Quote(c.InstanceName),
			fmt.Sprintf("1 to %d printable ASCII characters", schemas.MaxInstanceName)))
	}
	return errors.Join(append(errs,
		config.CheckRange("LOCK_TTL_MS", c.LockTTLMs, schemas.MinLockTTLMs, schemas.MaxLockTTLMs), c.validateWaits(),
		config.CheckRange("MACHINE_PATIENCE", c.MachinePatience, time.Second, 5*time.Minute),
		config.CheckTimeZone("TZ", c.TimeZone), c.Staff.Validate(c.HTTP, staffPermissions()))...)
}

func (c *Config) validateWaits() error {
	if schemas.ValidateLockWaits(c.environment().Waits) == nil {
		return nil
	}
	return config.OutOfRange("RETRY_INTERVAL_MS", strings.Join(convert.All(c.RetryIntervalsMs, strconv.Itoa), "|"),
		fmt.Sprintf("at most %d numbers from 0 to %d, separated by |, together at most %d",
			schemas.MaxRetries, schemas.MaxLockWaitMs, schemas.MaxLockWaits.Milliseconds()))
}

// storageURL refuses URLs with which each check-out would fail, such as that of this service. No message
// repeats a user or password in it.
func (c *Config) storageURL() (*url.URL, error) {
	const allowed = "an absolute http or https URL without query, not that of circulation itself, such as http://127.0.0.1:8081"
	u, err := url.Parse(c.StorageURL)
	if err != nil {
		return nil, errors.New("STORAGE_URL is no URL, allowed: " + allowed)
	}
	isOwn := web.IsLoopback(u.Host) && u.Port() == strconv.Itoa(c.HTTP.Port)
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || !config.HasValidPort(u) || u.RawQuery != "" || u.Fragment != "" || isOwn {
		return nil, config.OutOfRange("STORAGE_URL", strconv.Quote(u.Redacted()), allowed)
	}
	return u, nil
}

// readyTenant returns the zero value for an empty setting.
func (c *Config) readyTenant() (okapi.Tenant, error) {
	if c.StorageReadyTenant == "" {
		return okapi.Tenant{}, nil
	}
	return okapi.ParseTenant(c.StorageReadyTenant)
}

func isPrintable(name string) bool {
	return name != "" && len(name) <= schemas.MaxInstanceName && strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// environment returns the lock settings of tenants without settings of their own.
func (c *Config) environment() settings.Environment {
	return settings.Environment{
		Enabled: c.LockEnabled,
		TTL:     time.Duration(c.LockTTLMs) * time.Millisecond,
		Waits:   convert.All(c.RetryIntervalsMs, func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }),

		MachinePatience: c.MachinePatience, LongestAnswer: c.HTTP.RequestTimeout + config.FinishMargin,
	}
}
