package locktopus

import (
	"errors"
	"time"

	"checkoutlock/config"
	"checkoutlock/resource-locks/internal/engine"
)

// Settings configure the front.
type Settings struct {
	// Addr is the host:port to listen on. Empty turns the front off.
	Addr string `env:"LOCKTOPUS_ADDR"`
	// AbandonTimeout is how long a held lock stays after its connection has ended, unless
	// the connection asked for another time.
	AbandonTimeout time.Duration `env:"LOCKTOPUS_ABANDON_TIMEOUT" envDefault:"60s"`
}

// Validate checks the address and the range.
func (s Settings) Validate() error {
	errs := []error{config.CheckRange("LOCKTOPUS_ABANDON_TIMEOUT", s.AbandonTimeout, 0, engine.MaxTTL, "0s to 876000h")}
	if s.Addr != "" {
		_, _, err := config.SplitAddr("LOCKTOPUS_ADDR", s.Addr)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
