package config_test

import (
	"fmt"
	"testing"

	"checkoutlock/config"
)

// manySettings has names of all lengths.
type manySettings struct {
	HTTP     config.HTTP
	Log      config.Log
	TTL      int      `env:"LOCK_TTL_MS"`
	Enabled  bool     `env:"CHECKOUT_LOCK_FEATURE_ENABLED"`
	URL      string   `env:"DATABASE_URL"`
	Tenants  []string `env:"TENANTS"`
	TimeZone string   `env:"TZ"`
	Loaded   bool
	embedded
	Mutex struct {
		Addr string `env:"MUTEX_ADDR"` // a field of HTTP has this name too
	}
}

// embedded has a setting among those of manySettings.
type embedded struct {
	Name string `env:"INSTANCE_NAME"`
}

func TestMisspelt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		environ []string
		want    []config.Misspelling
	}{
		"underscore missing": {[]string{"LOCK_TTLMS=5"}, []config.Misspelling{{"LOCK_TTLMS", "LOCK_TTL_MS"}}},
		"all underscores missing": {
			[]string{"CHECKOUTLOCKFEATUREENABLED=true"},
			[]config.Misspelling{{"CHECKOUTLOCKFEATUREENABLED", "CHECKOUT_LOCK_FEATURE_ENABLED"}},
		},
		"another letter": {
			[]string{"DATABASE_URI=postgres://u:s3cret@h/x"}, []config.Misspelling{{"DATABASE_URI", "DATABASE_URL"}},
		},
		"two letters": {[]string{"DATABAS_URI=x"}, []config.Misspelling{{"DATABAS_URI", "DATABASE_URL"}}},
		"a field's name that two structs share": {
			[]string{"HTTPADDR=x", "MUTEXADDR=x"},
			[]config.Misspelling{{"HTTPADDR", "HTTP_ADDR"}, {"MUTEXADDR", "MUTEX_ADDR"}},
		},
		"lower case":        {[]string{"log_level=debug"}, []config.Misspelling{{"log_level", "LOG_LEVEL"}}},
		"a letter too many": {[]string{"PORTS=1"}, []config.Misspelling{{"PORTS", "PORT"}}},
		"two of them": {
			[]string{"REQUEST_TIMOUT=1s", "LOG_LEVL=info"},
			[]config.Misspelling{{"LOG_LEVL", "LOG_LEVEL"}, {"REQUEST_TIMOUT", "REQUEST_TIMEOUT"}},
		},
		"the settings themselves": {
			[]string{"LOCK_TTL_MS=5", "DATABASE_URL=x", "PORT=1", "TENANTS=a", "TZ=UTC", "LOG_LEVEL=info"}, nil,
		},
		"variables of other programs": {[]string{
			"PATH=x", "HOME=x", "HOST=x", "HOSTNAME=x", "PWD=x", "TERM=x", "TMP=x", "CI=x", "USER=x", "LANG=x", "SHLVL=1",
			"PS1=x", "PGPORT=1", "PGHOST=x",
			"KUBERNETES_PORT=x", "KUBERNETES_SERVICE_PORT=1", "STORAGE_PORT=1", "CIRCULATION_PORT=1", "STORAGE_URL=x",
			"MIGRATE_DATABASE_URL=x", "TENANT=diku",
			"LOCK_SWEEP_INTERVAL=1m", "HTTP_PROXY=x", "LOGNAME=x", "INVOCATION_ID=x", "JOURNAL_STREAM=x", "GOFLAGS=x",
			"DATABASE_MAX_CONNS=3",
			"DATABASE_DSN=x", "TENANCY=x",
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := config.FindMisspelt(&manySettings{}, tt.environ); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
