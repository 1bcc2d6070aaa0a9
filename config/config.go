// Package config reads the settings of the services from the environment and checks them
// all at once. It holds the settings that the services share, and the log.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// HTTP configures a service's listener. Durations are Go durations ("250ms").
type HTTP struct {
	// Port is the TCP port; 0 selects a free one. Each service has its own default.
	Port int `env:"PORT"`
	// Addr is the address to listen on. Empty means 127.0.0.1, because the service trusts
	// FOLIO's headers, which a gateway must check.
	Addr string `env:"HTTP_ADDR"`
	// RequestTimeout bounds the work for one request.
	RequestTimeout time.Duration `env:"REQUEST_TIMEOUT" envDefault:"30s"`
	// DrainDelay is how long readiness reports "not ready" before the listener closes, so
	// that a load balancer notices. 0 closes at once.
	DrainDelay time.Duration `env:"DRAIN_DELAY" envDefault:"0s"`
	// ShutdownTimeout bounds the running requests after the listener has closed.
	ShutdownTimeout time.Duration `env:"SHUTDOWN_TIMEOUT" envDefault:"45s"`
}

// FinishMargin is how long a request may continue after its time-out, to learn the result
// of a commit that was sent.
const FinishMargin = 12 * time.Second

// maxRequestTimeout is longer than the time-outs of usual proxies.
const maxRequestTimeout = 5 * time.Minute

// Validate checks the ranges. least is the shortest RequestTimeout that exceeds the
// service's own time-outs.
func (c HTTP) Validate(least time.Duration) error {
	errs := []error{
		CheckRange("PORT", c.Port, 0, 65535),
		CheckRange("REQUEST_TIMEOUT", c.RequestTimeout, least, maxRequestTimeout),
		CheckRange("DRAIN_DELAY", c.DrainDelay, 0, time.Minute, "0s to 1m"),
	}
	if c.ShutdownTimeout < c.RequestTimeout+FinishMargin {
		errs = append(errs, OutOfRange("SHUTDOWN_TIMEOUT", c.ShutdownTimeout,
			fmt.Sprintf("at least %s more than REQUEST_TIMEOUT, which is %s", FinishMargin, c.RequestTimeout)))
	}
	return errors.Join(errs...)
}

// Listen is the address in host:port form.
func (c HTTP) Listen() string {
	return net.JoinHostPort(cmp.Or(c.Addr, "127.0.0.1"), strconv.Itoa(c.Port))
}

// SplitAddr reads host:port, the value of the setting with the name. Without a host it
// means all addresses of the machine, which may have no IPv6.
func SplitAddr(name, addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err == nil {
		var number uint64
		number, err = strconv.ParseUint(text, 10, 16)
		port = int(number)
	}
	if err != nil {
		return "", 0, OutOfRange(name, strconv.Quote(addr), "host:port with a port from 0 to 65535, such as 127.0.0.1:9000")
	}
	return cmp.Or(host, "0.0.0.0"), port, nil
}

// HasValidPort reports whether the URL's port is left out, or from 1 to 65535.
func HasValidPort(u *url.URL) bool {
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" || err == nil && n > 0
}

// CheckRange returns an OutOfRange error unless value is from low to high. allowed replaces
// the text "low to high".
func CheckRange[T cmp.Ordered](name string, value, low, high T, allowed ...string) error {
	if low <= value && value <= high {
		return nil
	}
	text := fmt.Sprintf("%v to %v", low, high)
	if len(allowed) > 0 {
		text = allowed[0]
	}
	return OutOfRange(name, value, text)
}

// CheckTimeZone returns an OutOfRange error unless package time knows the zone, which is the value
// of the setting with the name. As in POSIX, it may begin with a colon, and may be the path of a
// file. Package time itself uses UTC for an unknown zone, and says nothing.
func CheckTimeZone(name, zone string) error {
	trimmed := strings.TrimPrefix(zone, ":")
	var err error
	if filepath.IsAbs(trimmed) {
		var content []byte
		if content, err = os.ReadFile(trimmed); err == nil { //nolint:gosec // the operator names it
			_, err = time.LoadLocationFromTZData(trimmed, content)
		}
	} else {
		_, err = time.LoadLocation(trimmed)
	}
	if err != nil || trimmed == "Local" { // LoadLocation alone knows that name
		return OutOfRange(name, strconv.Quote(zone), "a time zone such as Europe/Berlin, or UTC")
	}
	return nil
}

// OutOfRange is the error for a setting whose value is not allowed.
func OutOfRange(name string, value any, allowed string) error {
	return fmt.Errorf("%s is %v, allowed: %s", name, value, allowed)
}

// Traces configures the traces of OpenTelemetry, whose names the variables have.
type Traces struct {
	// Endpoint is the URL of a collector, such as http://127.0.0.1:4318. Empty records nothing.
	Endpoint string `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
	// Ratio is the part of the requests that are recorded, if their caller did not decide that.
	Ratio float64 `env:"OTEL_TRACES_SAMPLER_ARG" envDefault:"0.01"`
}

// Validate checks the address and the range.
func (t Traces) Validate() error {
	var wrong error
	u, err := url.Parse(t.Endpoint)
	if t.Endpoint != "" && (err != nil || u.Host == "" || !HasValidPort(u) || u.User != nil || u.Scheme != "http" && u.Scheme != "https") {
		wrong = errors.New("OTEL_EXPORTER_OTLP_ENDPOINT cannot be used, allowed: a URL without a password, such as http://127.0.0.1:4318")
	}
	return errors.Join(wrong, CheckRange("OTEL_TRACES_SAMPLER_ARG", t.Ratio, 0, 1))
}

// Log configures the log.
type Log struct {
	// Level is debug, info, warn or error.
	Level string `env:"LOG_LEVEL" envDefault:"info"`
}

// Validate checks the level.
func (c Log) Validate() error {
	if err := new(slog.LevelVar).UnmarshalText([]byte(c.Level)); err != nil {
		return OutOfRange("LOG_LEVEL", strconv.Quote(c.Level), strings.Join(Levels, ", "))
	}
	return nil
}

// New returns a JSON logger. It adds service, unless empty, to every line, and request id
// and tenant to the lines of a call. It bounds values and masks UUIDs that may be a
// patron's.
func (c Log) New(w io.Writer, service string) *slog.Logger {
	level := new(slog.LevelVar)
	_ = level.UnmarshalText([]byte(c.Level)) // it stays info for no level
	h := slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: guardAttr})
	log := slog.New(callHandler{h, level})
	if service == "" {
		return log
	}
	return log.With("service", service)
}
