package mutexapi

import (
	"errors"
	"regexp"
	"strconv"
	"time"

	"checkoutlock/config"
)

// Settings configure the front.
type Settings struct {
	// Addr is the address to listen on, as host:port. Empty turns the front off.
	Addr string `env:"MUTEX_ADDR"`
	// TTL is how long a lock lives after its user's last POST.
	TTL time.Duration `env:"MUTEX_TTL" envDefault:"60s"`
	// UserHeader is the header with the user's id. A gateway in front must set it.
	UserHeader string `env:"MUTEX_USER_HEADER" envDefault:"X-User-Id"`
}

var headerPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// Validate checks the settings of a front that is on.
func (s Settings) Validate() error {
	if s.Addr == "" {
		return nil
	}
	_, _, err := config.SplitAddr("MUTEX_ADDR", s.Addr)
	errs := []error{config.CheckRange("MUTEX_TTL", s.TTL, time.Second, 24*time.Hour), err}
	if !headerPattern.MatchString(s.UserHeader) {
		errs = append(errs, config.OutOfRange("MUTEX_USER_HEADER", strconv.Quote(s.UserHeader), "the name of a header: letters, digits, - and _"))
	}
	return errors.Join(errs...)
}
