package auth

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"checkoutlock/config"
	"checkoutlock/web"
)

// OIDCSettings are the settings of OIDC.
type OIDCSettings struct {
	// Issuer is the URL of the provider, as it names itself.
	Issuer string `env:"STAFF_OIDC_ISSUER"`
	// Client and Secret are what the provider knows the service by. The key of cookies follows from
	// the secret.
	Client string `env:"STAFF_OIDC_CLIENT"`
	Secret string `env:"STAFF_OIDC_SECRET" secret:""`
	// Scopes are asked for beside openid.
	Scopes []string `env:"STAFF_OIDC_SCOPES" envSeparator:" " envDefault:"profile email"`
	// GroupsClaim is the claim of the ID token with a person's groups. Dots lead into objects.
	GroupsClaim string `env:"STAFF_OIDC_GROUPS_CLAIM" envDefault:"groups"`
	// Grants has for each group what it grants: group=permission permission. The permission * is all.
	Grants []string `env:"STAFF_OIDC_GRANTS" envSeparator:";"`
	// URL is the address of the service in browsers, without a path.
	URL string `env:"STAFF_URL"`
}

// everything is a permission in Grants that grants all.
const everything = "*"

// maxGroups bounds the groups in a cookie, of which browsers keep 4096 bytes.
const maxGroups = 1000

// grants returns the permissions of each group.
func (s OIDCSettings) grants() map[string][]string {
	granted := map[string][]string{}
	for _, one := range s.Grants {
		group, permissions, _ := strings.Cut(one, "=")
		group = strings.TrimSpace(group)
		granted[group] = append(granted[group], strings.Fields(permissions)...)
	}
	return granted
}

func (s OIDCSettings) validate(permissions []string) error {
	errs := []error{checkAddress("STAFF_OIDC_ISSUER", s.Issuer, true), checkAddress("STAFF_URL", s.URL, false)}
	if s.Client == "" {
		errs = append(errs, errors.New("STAFF_OIDC_CLIENT is empty, and STAFF_AUTH=oidc needs it"))
	}
	if err := checkPassword(s.Secret); err != nil {
		errs = append(errs, fmt.Errorf("STAFF_OIDC_SECRET, which STAFF_AUTH=oidc needs, %w", err))
	}
	length := 0
	for group, granted := range s.grants() {
		length += len(group)
		if group == "" || len(granted) == 0 {
			errs = append(errs, errors.New("STAFF_OIDC_GRANTS has a group without a name or without permissions, allowed: "+grantsAllowed))
		}
		for _, permission := range granted {
			if permission != everything && !slices.Contains(permissions, permission) {
				errs = append(errs, config.OutOfRange("a permission in STAFF_OIDC_GRANTS", strconv.Quote(permission),
					"*, "+strings.Join(permissions, ", ")))
			}
		}
	}
	if length == 0 || length > maxGroups {
		errs = append(errs, fmt.Errorf("STAFF_OIDC_GRANTS has groups of together %d bytes, allowed: 1 to %d, as in %s", length, maxGroups, grantsAllowed))
	}
	return errors.Join(errs...)
}

const grantsAllowed = "group=permission permission;group=*"

// checkAddress requires https, or http on this host, because codes and tokens go there.
func checkAddress(name, address string, path bool) error {
	u, err := url.Parse(address)
	if err == nil && u.Host != "" && u.RawQuery == "" && u.Fragment == "" && u.User == nil && (path || u.Path == "") &&
		(u.Scheme == "https" || u.Scheme == "http" && web.IsLoopback(u.Host)) {
		return nil
	}
	shown := "no such URL"
	if err == nil && u.User == nil {
		shown = strconv.Quote(address)
	}
	allowed := "an https URL without a path, such as https://library.example.org"
	if path {
		allowed = "an https URL, such as https://sso.example.org/realms/library"
	}
	return config.OutOfRange(name, shown, allowed)
}
