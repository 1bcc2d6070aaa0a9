package auth_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"checkoutlock/config"
	"checkoutlock/web/auth"
)

func TestSettings_CheckTheProvider(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(o *auth.OIDCSettings)
		want   string // in the error; empty for none
	}{
		{name: "all is there", change: func(*auth.OIDCSettings) {}},
		{
			name:   "http on this machine",
			change: func(o *auth.OIDCSettings) { o.Issuer, o.URL = "http://127.0.0.1:1", "http://localhost:2" },
		},
		{
			name: "no issuer", change: func(o *auth.OIDCSettings) { o.Issuer = "" },
			want: `STAFF_OIDC_ISSUER is "", allowed: an https URL, such as`,
		},
		{
			name: "http elsewhere", change: func(o *auth.OIDCSettings) { o.Issuer = "http://sso.example.org" },
			want: `STAFF_OIDC_ISSUER is "http://sso.example.org"`,
		},
		{
			name: "a password in the URL", change: func(o *auth.OIDCSettings) { o.Issuer = "https://u:hidden@x" },
			want: "STAFF_OIDC_ISSUER is no such URL",
		},
		{
			name: "no client", change: func(o *auth.OIDCSettings) { o.Client = "" },
			want: "STAFF_OIDC_CLIENT is empty",
		},
		{
			name: "no secret", change: func(o *auth.OIDCSettings) { o.Secret = "" },
			want: "STAFF_OIDC_SECRET, which STAFF_AUTH=oidc needs, has 0",
		},
		{
			name: "an address with a path", change: func(o *auth.OIDCSettings) { o.URL = "https://x/staff" },
			want: `STAFF_URL is "https://x/staff", allowed: an https URL without a path`,
		},
		{
			name: "no host", change: func(o *auth.OIDCSettings) { o.Issuer = "https:///x" },
			want: `STAFF_OIDC_ISSUER is "https:///x"`,
		},
		{
			name: "no URL", change: func(o *auth.OIDCSettings) { o.URL = "https://[::1" },
			want: "STAFF_URL is no such URL",
		},
		{
			name: "a query", change: func(o *auth.OIDCSettings) { o.URL = "https://x?a" },
			want: `STAFF_URL is "https://x?a"`,
		},
		{
			name: "a fragment", change: func(o *auth.OIDCSettings) { o.URL = "https://x#a" },
			want: `STAFF_URL is "https://x#a"`,
		},
		{
			name: "too many groups", want: "STAFF_OIDC_GRANTS has groups of together 1001 bytes",
			change: func(o *auth.OIDCSettings) { o.Grants = []string{strings.Repeat("g", 1001) + "=*"} },
		},
		{
			name: "no grants", change: func(o *auth.OIDCSettings) { o.Grants = nil },
			want: "STAFF_OIDC_GRANTS has groups of together 0 bytes",
		},
		{
			name: "nothing granted", change: func(o *auth.OIDCSettings) { o.Grants = []string{"desk="} },
			want: "without permissions",
		},
		{
			name: "an unknown permission", change: func(o *auth.OIDCSettings) { o.Grants = []string{"desk=x.item.gte"} },
			want: `a permission in STAFF_OIDC_GRANTS is "x.item.gte", allowed: *, x.item.get`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := byProvider()
			tt.change(&s.OIDC)
			err := s.Validate(config.HTTP{}, []string{maySee, mayPut})
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) ||
				strings.Contains(fmt.Sprint(err), "hidden") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestSettings_CheckTheContact(t *testing.T) {
	t.Parallel()
	for contact, right := range map[string]bool{
		"": true, strings.Repeat("é", 200): true, strings.Repeat("é", 201): false, "a\nb": false,
	} {
		s := byPassword()
		s.Contact = contact
		if err := s.Validate(config.HTTP{}, nil); (err == nil) != right {
			t.Errorf("%q: got %v", contact, err)
		}
	}
}

func TestSettings_CheckTheLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		idle, longest time.Duration
		want          string
	}{
		{idle: 2 * time.Minute, longest: 168 * time.Hour, want: ""},
		{idle: time.Minute, longest: time.Hour, want: "STAFF_IDLE_TIMEOUT is 1m0s, allowed: 2m to 24h"},
		{idle: time.Hour, longest: time.Minute, want: "STAFF_SESSION_TIMEOUT is 1m0s, allowed: STAFF_IDLE_TIMEOUT to 168h"},
	} {
		s := auth.Settings{Auth: auth.Gateway, Limits: auth.Limits{Idle: tt.idle, Longest: tt.longest}}
		err := s.Validate(config.HTTP{}, nil)
		if (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
			t.Errorf("%s, %s: got %v, want %q", tt.idle, tt.longest, err, tt.want)
		}
	}
}
