package sunbird

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"checkoutlock/config"
	"checkoutlock/schemas/redact"
)

// Auth is how the front knows its users.
type Auth string

// The ways.
const (
	AuthToken  Auth = "token"  // by a signed token, which the front checks
	AuthHeader Auth = "header" // by a header, which a gateway in front has checked
)

// Settings configure the front.
type Settings struct {
	// Addr is the host:port to listen on. Empty turns the front off.
	Addr string `env:"SUNBIRD_ADDR"`
	Auth Auth   `env:"SUNBIRD_AUTH" envDefault:"token"`
	// Keys is a folder of PEM files that are named by their key ids, or a JWKS file.
	Keys string `env:"SUNBIRD_KEYS"`
	// Issuer is the issuer that tokens must have. Empty accepts all.
	Issuer string `env:"SUNBIRD_ISSUER"`
	// LockTTL is how long a lock lives without a refresh.
	LockTTL time.Duration `env:"SUNBIRD_LOCK_TTL" envDefault:"1h"`
	// ResumeWithin is how long after its end the former holder may refresh a lock.
	ResumeWithin time.Duration `env:"SUNBIRD_RESUME_WITHIN" envDefault:"24h"`
	// ResourceCheckURL asks a content service whether a user may lock. Empty allows all.
	ResourceCheckURL string   `env:"SUNBIRD_RESOURCE_CHECK_URL"`
	ResourceTypes    []string `env:"SUNBIRD_RESOURCE_TYPES" envDefault:"content"`
	// Admins are the ids of the users that may force a release.
	Admins []string `env:"SUNBIRD_ADMINS"`
	// AdminRole is a role of tokens that may force a release. Empty is none.
	AdminRole string `env:"SUNBIRD_ADMIN_ROLE"`
	// NoticeURL gets a notice of each request for a lock. Empty sends none.
	NoticeURL string `env:"SUNBIRD_NOTICE_URL" secret:""`
}

// Validate checks the settings of a front that is on. It reads the keys.
func (s Settings) Validate() error {
	if s.Addr == "" {
		return nil
	}
	_, _, err := config.SplitAddr("SUNBIRD_ADDR", s.Addr)
	errs := []error{
		config.CheckRange("SUNBIRD_LOCK_TTL", s.LockTTL, time.Second, 365*24*time.Hour, "1s to 8760h"),
		config.CheckRange("SUNBIRD_RESUME_WITHIN", s.ResumeWithin, 0, 7*24*time.Hour, "0s to 168h"), err,
	}
	require := func(holds bool, name, value, allowed string) {
		if !holds {
			errs = append(errs, config.OutOfRange(name, strconv.Quote(value), allowed))
		}
	}
	require(s.Auth == AuthToken || s.Auth == AuthHeader, "SUNBIRD_AUTH", string(s.Auth), "token, header")
	require(s.Auth != AuthToken || s.Keys != "", "SUNBIRD_KEYS", s.Keys, "a folder of PEM files or a JWKS file, because SUNBIRD_AUTH is token")
	if s.Auth == AuthToken && s.Keys != "" {
		_, err := loadKeys(s.Keys)
		errs = append(errs, err)
	}
	const urls = "an http or https URL, or empty for none"
	require(isURL(s.ResourceCheckURL), "SUNBIRD_RESOURCE_CHECK_URL", s.ResourceCheckURL, urls)
	require(isURL(s.NoticeURL), "SUNBIRD_NOTICE_URL", redact.Mask(s.NoticeURL), urls) // it may have a secret
	for _, name := range s.ResourceTypes {
		require(name != "" && len(name) <= 100 && name == strings.TrimSpace(name),
			"SUNBIRD_RESOURCE_TYPES", name, "names of 1 to 100 bytes, separated by commas without blanks")
	}
	for _, id := range s.Admins {
		require(id == strings.TrimSpace(id), "SUNBIRD_ADMINS", id, "user ids, separated by commas without blanks")
	}
	return errors.Join(errs...)
}

// isURL reports whether text is empty, or an address of a service.
func isURL(text string) bool {
	u, err := url.Parse(text)
	return text == "" || err == nil && u.Host != "" && config.HasValidPort(u) && (u.Scheme == "http" || u.Scheme == "https")
}
