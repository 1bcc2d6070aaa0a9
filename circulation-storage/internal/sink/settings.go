// Package sink sends events to Kafka, or to an HTTP address.
package sink

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"checkoutlock/circulation-storage/internal/events"
	"checkoutlock/config"
)

// Settings say where events go: to Kafka if there are brokers, to URL if there is one, else nowhere.
type Settings struct {
	// Brokers are host:port of Kafka brokers.
	Brokers []string `env:"EVENTS_BROKERS"`
	// TLS encrypts the connections to the brokers.
	TLS bool `env:"EVENTS_TLS" envDefault:"false"`
	// CA is a file of certificate authorities to trust, as PEM; "" trusts the system's.
	CA string `env:"EVENTS_TLS_CA"`
	// Certificate and Key are files, as PEM, with which the brokers recognise this client; "" for none.
	Certificate string `env:"EVENTS_TLS_CERTIFICATE"`
	Key         string `env:"EVENTS_TLS_KEY"`
	// SASL is the mechanism for User and Password, "" for none.
	SASL     string `env:"EVENTS_SASL"`
	User     string `env:"EVENTS_USER"`
	Password string `env:"EVENTS_PASSWORD" secret:""`
	// Environment begins the names of topics, as FOLIO's ENV does.
	Environment string `env:"EVENTS_ENVIRONMENT" envDefault:"folio"`
	// PubSub is the mod-pubsub with its version that reads events of check-outs and the circulation
	// log, such as mod-pubsub-2.20.0; "" for none.
	PubSub string `env:"EVENTS_PUBSUB"`
	// URL takes events as POST.
	URL string `env:"EVENTS_URL"`
	// Retention is how long events wait for delivery. Without brokers and URL they wait in vain.
	Retention time.Duration `env:"EVENTS_RETENTION" envDefault:"72h"`
}

// SASL mechanisms.
const (
	plain       = "PLAIN"
	scramSHA256 = "SCRAM-SHA-256"
	scramSHA512 = "SCRAM-SHA-512"
)

// topicPart is what names of topics are made of.
var topicPart = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,60}$`)

// Validate implements config.Validator.
func (s Settings) Validate() error {
	var errs []error
	wrong := func(name string, value any, allowed string) {
		errs = append(errs, config.OutOfRange(name, value, allowed))
	}
	for _, broker := range s.Brokers {
		host, port, err := net.SplitHostPort(broker)
		if n, portErr := strconv.ParseUint(port, 10, 16); err != nil || host == "" || portErr != nil || n == 0 || strings.TrimSpace(broker) != broker {
			wrong("EVENTS_BROKERS", strconv.Quote(broker), "host:port, comma separated, such as kafka-1:9092,kafka-2:9092")
		}
	}
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		switch {
		case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "", !config.HasValidPort(u), u.User != nil:
			errs = append(errs, errors.New("EVENTS_URL cannot be used, allowed: http://host/path or https://host/path, without a password"))
		case len(s.Brokers) > 0:
			errs = append(errs, errors.New("EVENTS_URL and EVENTS_BROKERS exclude each other: events go to one of them"))
		}
	}
	switch s.SASL {
	case "":
		if s.User != "" || s.Password != "" {
			errs = append(errs, fmt.Errorf("EVENTS_USER and EVENTS_PASSWORD need EVENTS_SASL: %s, %s or %s", plain, scramSHA256, scramSHA512))
		}
	case plain, scramSHA256, scramSHA512:
		if s.User == "" || s.Password == "" {
			errs = append(errs, errors.New("EVENTS_SASL needs EVENTS_USER and EVENTS_PASSWORD"))
		}
	default:
		wrong("EVENTS_SASL", strconv.Quote(s.SASL), strings.Join([]string{plain, scramSHA256, scramSHA512}, ", "))
	}
	if _, err := s.readTLS(); err != nil {
		errs = append(errs, err)
	}
	if !s.TLS && s.CA+s.Certificate+s.Key != "" {
		errs = append(errs, errors.New("EVENTS_TLS_CA, EVENTS_TLS_CERTIFICATE and EVENTS_TLS_KEY need EVENTS_TLS"))
	}
	if len(s.Brokers) == 0 && (s.TLS || s.SASL != "") {
		errs = append(errs, errors.New("EVENTS_TLS and EVENTS_SASL need EVENTS_BROKERS"))
	}
	if !topicPart.MatchString(s.Environment) {
		wrong("EVENTS_ENVIRONMENT", strconv.Quote(s.Environment), "1 to 60 letters, digits and . _ -, such as folio")
	}
	if s.PubSub != "" && !topicPart.MatchString(s.PubSub) {
		wrong("EVENTS_PUBSUB", strconv.Quote(s.PubSub), "a module id, such as mod-pubsub-2.20.0")
	}
	return errors.Join(append(errs, config.CheckRange("EVENTS_RETENTION", s.Retention, time.Hour, 720*time.Hour, "1h to 720h"))...)
}

// readTLS reads the files of TLS. Its errors name the variables.
func (s Settings) readTLS() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.CA != "" {
		text, err := os.ReadFile(s.CA)
		if err != nil {
			return nil, fmt.Errorf("EVENTS_TLS_CA cannot be read: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("EVENTS_TLS_CA names %s, which has no certificate as PEM", s.CA)
		}
	}
	if s.Certificate+s.Key != "" {
		pair, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
		if err != nil {
			return nil, fmt.Errorf("EVENTS_TLS_CERTIFICATE and EVENTS_TLS_KEY cannot be used: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Names returns what topics are made of.
func (s Settings) Names() events.Names {
	return events.Names{Environment: s.Environment, PubSub: s.PubSub}
}

// Open returns the sink, and what closes it. Without brokers and URL it returns nil.
func (s Settings) Open() (events.Sink, func(), error) {
	switch {
	case len(s.Brokers) > 0:
		k, err := openKafka(s)
		if err != nil {
			return nil, nil, fmt.Errorf("EVENTS_BROKERS: %w", err)
		}
		return k, k.client.Close, nil
	case s.URL != "":
		p := newPoster(s.URL)
		return p, p.client.CloseIdleConnections, nil
	}
	return nil, func() {}, nil
}
