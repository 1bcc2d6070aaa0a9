// Package config holds the settings that both services share, and the way
// settings are read: from the environment, checked all at once.
package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"time"
)

// HTTP configures a service's listener. Durations are Go durations ("250ms").
type HTTP struct {
	// Port is the TCP port; 0 picks a free one. The default is the service's.
	Port int `env:"PORT"`
	// Addr is the address to listen on; empty means 127.0.0.1, because FOLIO's
	// headers are only as good as the gateway in front.
	Addr string `env:"HTTP_ADDR"`
	// RequestTimeout bounds the work for one request.
	RequestTimeout time.Duration `env:"REQUEST_TIMEOUT" envDefault:"30s"`
	// DrainDelay is how long readiness answers no before the listener closes,
	// so that a load balancer notices. 0 closes at once.
	DrainDelay time.Duration `env:"DRAIN_DELAY" envDefault:"0s"`
	// ShutdownTimeout bounds how long running requests may take once the
	// listener is closed.
	ShutdownTimeout time.Duration `env:"SHUTDOWN_TIMEOUT" envDefault:"45s"`
}

// FinishMargin is how long a request may go on past its time-out to finish what
// must not be left half-known, such as a commit that was sent.
const FinishMargin = 12 * time.Second

// maxRequestTimeout keeps a request from outliving every proxy in front.
const maxRequestTimeout = 5 * time.Minute

// Validate checks the ranges. least is the shortest RequestTimeout with which
// the service's own time-outs nest.
func (c HTTP) Validate(least time.Duration) error {
	var errs []error
	if c.Port < 0 || c.Port > 65535 {
		errs = append(errs, OutOfRange("PORT", c.Port, "0 to 65535"))
	}
	if c.RequestTimeout < least || c.RequestTimeout > maxRequestTimeout {
		errs = append(errs, OutOfRange("REQUEST_TIMEOUT", c.RequestTimeout, fmt.Sprintf("%s to %s", least, maxRequestTimeout)))
	}
	if c.DrainDelay < 0 || c.DrainDelay > time.Minute {
		errs = append(errs, OutOfRange("DRAIN_DELAY", c.DrainDelay, "0s to 1m"))
	}
	if c.ShutdownTimeout < c.RequestTimeout+FinishMargin {
		errs = append(errs, OutOfRange("SHUTDOWN_TIMEOUT", c.ShutdownTimeout,
			fmt.Sprintf("at least %s more than REQUEST_TIMEOUT, which is %s", FinishMargin, c.RequestTimeout)))
	}
	return errors.Join(errs...)
}

// Listen is the address in host:port form.
func (c HTTP) Listen() string {
	host := c.Addr
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, strconv.Itoa(c.Port))
}

// OutOfRange is the message for a setting with a value that is not allowed.
func OutOfRange(name string, value any, allowed string) error {
	return fmt.Errorf("%s is %v, allowed: %s", name, value, allowed)
}

// Log configures the log.
type Log struct {
	// Level is debug, info, warn or error.
	Level string `env:"LOG_LEVEL" envDefault:"info"`
}

// Validate checks the level.
func (c Log) Validate() error {
	if _, err := c.level(); err != nil {
		return OutOfRange("LOG_LEVEL", strconv.Quote(c.Level), "debug, info, warn, error")
	}
	return nil
}

func (c Log) level() (slog.Level, error) {
	var l slog.Level
	err := l.UnmarshalText([]byte(c.Level))
	return l, err
}

// New returns a JSON logger that adds service, unless empty, to every line, and
// request id and tenant to those of a call. Its lines have bounded values and show
// no UUID that may be a patron's.
func (c Log) New(w io.Writer, service string) *slog.Logger {
	level, err := c.level()
	if err != nil {
		level = slog.LevelInfo
	}
	h := slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: guardAttr})
	log := slog.New(callHandler{h})
	if service == "" {
		return log
	}
	return log.With("service", service)
}
