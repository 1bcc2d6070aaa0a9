package auth

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"checkoutlock/config"
	"checkoutlock/schemas"
)

// Settings are the settings of a service for its staff.
type Settings struct {
	// Auth is how staff authenticate: by permissions from a gateway, by a password, at a provider, or
	// not at all, which is for loopback only.
	Auth Mode `env:"STAFF_AUTH" envDefault:"gateway"`
	// Password is the password of Basic.
	Password string `env:"STAFF_PASSWORD" secret:""`
	OIDC     OIDCSettings
	// Contact is the person or place that staff call when a page cannot be shown.
	Contact string `env:"SUPPORT_CONTACT"`
	Limits  Limits
}

// maxContact is the longest Contact in characters.
const maxContact = 200

// Limits are how long a session lasts.
type Limits struct {
	// Idle is the time after its last page.
	Idle time.Duration `env:"STAFF_IDLE_TIMEOUT" envDefault:"30m"`
	// Longest is the time after the sign-in.
	Longest time.Duration `env:"STAFF_SESSION_TIMEOUT" envDefault:"12h"`
}

func (l Limits) validate() error {
	return errors.Join(
		config.CheckRange("STAFF_IDLE_TIMEOUT", l.Idle, 2*renewAfter, 24*time.Hour, "2m to 24h"),
		config.CheckRange("STAFF_SESSION_TIMEOUT", l.Longest, l.Idle, 7*24*time.Hour, "STAFF_IDLE_TIMEOUT to 168h"),
	)
}

// Validate checks the settings of a service that listens at http and whose handlers ask for the
// permissions. No message repeats a secret.
func (s Settings) Validate(http config.HTTP, permissions []string) error {
	var contact error
	if s.Contact != "" && !schemas.IsPrintable(s.Contact, maxContact) {
		contact = fmt.Errorf("SUPPORT_CONTACT must be at most %d printable characters", maxContact)
	}
	return errors.Join(s.validateMode(http, permissions), s.Limits.validate(), contact)
}

func (s Settings) validateMode(http config.HTTP, permissions []string) error {
	switch s.Auth {
	case Gateway:
		if s.Password != "" { // its owner would believe that the pages ask for it
			return errors.New("STAFF_PASSWORD is set, and STAFF_AUTH is gateway, which asks for none: set STAFF_AUTH=basic, or no password")
		}
		return nil
	case Basic:
		if err := checkPassword(s.Password); err != nil {
			return fmt.Errorf("STAFF_PASSWORD, which STAFF_AUTH=basic needs, %w", err)
		}
		return nil
	case OIDC:
		return s.OIDC.validate(permissions)
	case None:
		if isLoopbackAddr(http.Addr) {
			return nil
		}
		return fmt.Errorf("STAFF_AUTH is none, which lets everybody in and is allowed on loopback only, but HTTP_ADDR is %q: "+
			"leave HTTP_ADDR empty, or set STAFF_AUTH to gateway, to oidc, or to basic with a STAFF_PASSWORD", http.Addr)
	}
	return config.OutOfRange("STAFF_AUTH", strconv.Quote(string(s.Auth)), "gateway, basic, oidc, none")
}

// isLoopbackAddr reports whether no other machine can reach an address to listen on; an
// empty one is loopback. It does not resolve names other than localhost, because their
// addresses may change.
func isLoopbackAddr(addr string) bool {
	ip, err := netip.ParseAddr(addr)
	return addr == "" || strings.EqualFold(addr, "localhost") || (err == nil && ip.Unmap().IsLoopback())
}

// The bounds of a password in characters: too long to be guessed over HTTP, and short
// enough to be pasted.
const (
	minPassword = 12
	maxPassword = 200
)

// checkPassword returns why a password cannot be used for Basic, nil if it can. The error does
// not repeat it.
func checkPassword(password string) error {
	n := utf8.RuneCountInString(password)
	switch {
	case n < minPassword || n > maxPassword:
		return fmt.Errorf("has %d characters, allowed: %d to %d", n, minPassword, maxPassword)
	case !utf8.ValidString(password) || strings.ContainsFunc(password, unicode.IsControl):
		return errors.New("has control characters, such as a line break, or is no UTF-8: no browser can send it")
	}
	return nil
}
