// Package app wires circulation together: settings, storage's client, the flows
// and HTTP. It is the only package that knows all the others.
package app

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"checkoutlock/circulation/internal/auth"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/config"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// Config is every setting of circulation.
type Config struct {
	HTTP config.HTTP
	Log  config.Log

	// StorageURL is the address of circulation-storage, or of the gateway before it.
	StorageURL string `env:"STORAGE_URL" envDefault:"http://127.0.0.1:8081"`
	// StorageReadyTenant is the tenant that the question whether storage is ready
	// names, for a proxy that chooses a storage by the tenant. Empty names none.
	StorageReadyTenant string `env:"STORAGE_READY_TENANT"`
	// InstanceName tells this process from its siblings, for whoever looks at the
	// locks it holds. Empty means the host's name and the process id.
	InstanceName string `env:"INSTANCE_NAME"`

	// LockEnabled, LockTTLMs and RetryIntervalsMs are the check-out lock's settings
	// for tenants that set none of their own.
	LockEnabled bool `env:"CHECKOUT_LOCK_FEATURE_ENABLED" envDefault:"false"`
	// LockTTLMs is how long a lock lives when its holder dies, in ms.
	LockTTLMs int `env:"LOCK_TTL_MS" envDefault:"3000"`
	// RetryIntervalsMs are the waits between tries for the lock, in ms; with n of
	// them there are n+1 tries. An empty variable means one try.
	RetryIntervalsMs []int `env:"RETRY_INTERVAL_MS" envSeparator:"|" envDefault:"500|500|1000"`

	// CheckOutConcurrency is how many check-outs are worked on at once.
	CheckOutConcurrency int `env:"CHECKOUT_CONCURRENCY" envDefault:"32"`
	// CheckOutQueueWait is how long one that comes meanwhile waits for its turn.
	CheckOutQueueWait time.Duration `env:"CHECKOUT_QUEUE_WAIT" envDefault:"3s"`

	// StaffAuth is how those are told apart who see and change what staff do: by the
	// permissions that a gateway sends, by a password, or not at all, which is for
	// loopback only.
	StaffAuth auth.Mode `env:"STAFF_AUTH" envDefault:"gateway"`
	// StaffPassword is that of auth.Basic, and unused otherwise.
	StaffPassword string `env:"STAFF_PASSWORD"`
	// MachinePatience is how long the library's self-check machines wait for an
	// answer: staff are warned when a check-out may wait longer for a lock.
	MachinePatience time.Duration `env:"MACHINE_PATIENCE" envDefault:"5s"`
	// TimeZone is that of the times on the staff pages: UTC when it is empty, the
	// machine's when it is not set at all. Package time reads it by itself, and would
	// take UTC for one it does not know.
	TimeZone string `env:"TZ"`
}

// DefaultConfig is what config.Load starts from.
func DefaultConfig() Config {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	name := host[:min(len(host), schemas.MaxInstanceName-len(":4294967295"))] + ":" + strconv.Itoa(os.Getpid())
	return Config{HTTP: config.HTTP{Port: 9801}, InstanceName: name}
}

const (
	// leastRequestTimeout lets a check-out wait for the lock as long as any tenant
	// may set.
	leastRequestTimeout = schemas.MaxLockWaits + 5*time.Second
	// leastWork is the part of it in which a check-out waits for nothing.
	leastWork = 2 * time.Second

	maxConcurrency = 1000
	minQueueWait   = 100 * time.Millisecond
	maxQueueWait   = 10 * time.Second
)

// Validate implements config.Validator.
func (c *Config) Validate() error {
	least := max(leastRequestTimeout, c.CheckOutQueueWait+schemas.MaxLockWaits+leastWork)
	errs := []error{c.HTTP.Validate(least), c.Log.Validate(), c.validateAdmission()}
	if _, err := c.storageURL(); err != nil {
		errs = append(errs, err)
	}
	if _, err := c.readyTenant(); err != nil {
		errs = append(errs, config.OutOfRange("STORAGE_READY_TENANT", strconv.Quote(c.StorageReadyTenant), "empty, or a tenant id: "+err.Error()))
	}
	if !printable(c.InstanceName) {
		errs = append(errs, config.OutOfRange("INSTANCE_NAME", strconv.Quote(c.InstanceName),
			fmt.Sprintf("1 to %d printable ASCII characters", schemas.MaxInstanceName)))
	}
	if c.LockTTLMs < schemas.MinLockTTLMs || c.LockTTLMs > schemas.MaxLockTTLMs {
		errs = append(errs, config.OutOfRange("LOCK_TTL_MS", c.LockTTLMs, fmt.Sprintf("%d to %d", schemas.MinLockTTLMs, schemas.MaxLockTTLMs)))
	}
	return errors.Join(append(errs, c.validateWaits(), c.validateStaff())...)
}

func (c *Config) validateAdmission() error {
	var errs []error
	if c.CheckOutConcurrency < 1 || c.CheckOutConcurrency > maxConcurrency {
		errs = append(errs, config.OutOfRange("CHECKOUT_CONCURRENCY", c.CheckOutConcurrency, fmt.Sprintf("1 to %d", maxConcurrency)))
	}
	if c.CheckOutQueueWait < minQueueWait || c.CheckOutQueueWait > maxQueueWait {
		errs = append(errs, config.OutOfRange("CHECKOUT_QUEUE_WAIT", c.CheckOutQueueWait, fmt.Sprintf("%s to %s", minQueueWait, maxQueueWait)))
	}
	return errors.Join(errs...)
}

func (c *Config) validateWaits() error {
	if schemas.ValidateLockWaits(c.environment().Waits) == nil {
		return nil
	}
	list := make([]string, len(c.RetryIntervalsMs))
	for i, ms := range c.RetryIntervalsMs {
		list[i] = strconv.Itoa(ms)
	}
	return config.OutOfRange("RETRY_INTERVAL_MS", strings.Join(list, "|"),
		fmt.Sprintf("at most %d numbers from 0 to %d, separated by |, together at most %d",
			schemas.MaxRetries, schemas.MaxLockWaitMs, schemas.MaxLockWaits.Milliseconds()))
}

// storageURL refuses what would only fail at the first check-out. A user or
// password in it is never repeated.
func (c *Config) storageURL() (*url.URL, error) {
	const allowed = "an absolute http or https URL without query, such as http://127.0.0.1:8081"
	u, err := url.Parse(c.StorageURL)
	if err != nil {
		return nil, errors.New("STORAGE_URL is no URL, allowed: " + allowed)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, config.OutOfRange("STORAGE_URL", strconv.Quote(u.Redacted()), allowed)
	}
	return u, nil
}

// readyTenant is the zero value when the setting is empty.
func (c *Config) readyTenant() (okapi.Tenant, error) {
	if c.StorageReadyTenant == "" {
		return okapi.Tenant{}, nil
	}
	return okapi.ParseTenant(c.StorageReadyTenant)
}

func printable(name string) bool {
	return name != "" && len(name) <= schemas.MaxInstanceName && strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// environment are the lock's settings of a tenant that has none of its own.
func (c *Config) environment() settings.Environment {
	e := settings.Environment{
		Enabled: c.LockEnabled,
		TTL:     time.Duration(c.LockTTLMs) * time.Millisecond,
		Waits:   make([]time.Duration, len(c.RetryIntervalsMs)),

		MachinePatience: c.MachinePatience,
	}
	for i, ms := range c.RetryIntervalsMs {
		e.Waits[i] = time.Duration(ms) * time.Millisecond
	}
	return e
}
