package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/app"
	"checkoutlock/config"
)

func TestConfig_ReportsBadSettingsWithAllowedValues(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		environ []string
		want    []string // nil is accepted
	}{
		"nothing set": {nil, nil},
		"everything set": {
			[]string{
				"PORT=0", "STORAGE_URL=https://okapi.example.org/x/", "CHECKOUT_LOCK_FEATURE_ENABLED=true", "LOCK_TTL_MS=250",
				"RETRY_INTERVAL_MS=0|10000", "INSTANCE_NAME=kiosk-1", "LOG_LEVEL=debug",
			},
			nil,
		},
		"storage as a path": {
			[]string{"STORAGE_URL=/storage"}, []string{`STORAGE_URL is "/storage", allowed: an absolute http or https URL`},
		},
		"storage by ftp":   {[]string{"STORAGE_URL=ftp://x"}, []string{`STORAGE_URL is "ftp://x"`}},
		"storage by port":  {[]string{"STORAGE_URL=localhost:8081"}, []string{"STORAGE_URL is"}},
		"storage, no host": {[]string{"STORAGE_URL=http://:8081"}, []string{"STORAGE_URL is"}},
		"storage is this service": {
			[]string{"STORAGE_URL=http://localhost:9801"}, []string{`STORAGE_URL is "http://localhost:9801", allowed:`},
		},
		"storage, no such port": {[]string{"STORAGE_URL=http://x:99999"}, []string{`STORAGE_URL is "http://x:99999"`}},
		"storage, port 0":       {[]string{"STORAGE_URL=http://x:0"}, []string{`STORAGE_URL is "http://x:0"`}},
		"storage with query":    {[]string{"STORAGE_URL=http://x?a=b"}, []string{"STORAGE_URL is"}},
		"storage is no URL": {
			[]string{"STORAGE_URL=http://u:secret@x:port"},
			[]string{"STORAGE_URL is no URL, allowed: an absolute http or https URL"},
		},
		"storage by tenant": {[]string{"STORAGE_READY_TENANT=diku"}, nil},
		"no tenant": {
			[]string{"STORAGE_READY_TENANT=Diku!"}, []string{`STORAGE_READY_TENANT is "Diku!", allowed: empty, or a tenant id`},
		},
		"TTL too short": {[]string{"LOCK_TTL_MS=249"}, []string{"LOCK_TTL_MS is 249, allowed: 250 to 600000"}},
		"TTL in words":  {[]string{"LOCK_TTL_MS=3s"}, []string{`LOCK_TTL_MS is "3s"`}},
		"waits with commas": {
			[]string{"RETRY_INTERVAL_MS=500,500"},
			[]string{`RETRY_INTERVAL_MS is "500,500", allowed: values separated by |, each a whole number`},
		},
		"a wait too long": {
			[]string{"RETRY_INTERVAL_MS=500|10001"},
			[]string{
				"RETRY_INTERVAL_MS is 500|10001, allowed: at most 100 numbers from 0 to 10000, separated by |, together at most " +
					"25000",
			},
		},
		"a negative wait": {[]string{"RETRY_INTERVAL_MS=-1"}, []string{"RETRY_INTERVAL_MS is -1"}},
		"a wait that wraps": {
			[]string{"RETRY_INTERVAL_MS=18446744073710"}, []string{`RETRY_INTERVAL_MS is "18446744073710"`},
		},
		"waits too long": {
			[]string{"RETRY_INTERVAL_MS=10000|10000|5001"}, []string{"RETRY_INTERVAL_MS is 10000|10000|5001"},
		},
		"a name with a break": {
			[]string{"INSTANCE_NAME=a\nb"}, []string{`INSTANCE_NAME is "a\nb", allowed: 1 to 100 printable ASCII characters`},
		},
		"staff by password": {
			[]string{"STAFF_AUTH=basic", "STAFF_PASSWORD=twelve chars", "HTTP_ADDR=0.0.0.0", "MACHINE_PATIENCE=1s"}, nil,
		},
		"staff by gateway": {[]string{"STAFF_AUTH=gateway", "HTTP_ADDR=0.0.0.0", "MACHINE_PATIENCE=5m"}, nil},
		"staff, no password": {
			[]string{"STAFF_AUTH=basic"},
			[]string{"STAFF_PASSWORD, which STAFF_AUTH=basic needs, has 0 characters, allowed: 12 to 200"},
		},
		"a password that nothing asks for": {
			[]string{"STAFF_PASSWORD=secret secret"}, []string{"STAFF_PASSWORD is set, and STAFF_AUTH is gateway"},
		},
		"a password too long": {
			[]string{"STAFF_AUTH=basic", "STAFF_PASSWORD=" + strings.Repeat("secret", 34)},
			[]string{"STAFF_PASSWORD, which STAFF_AUTH=basic needs, has 204 characters"},
		},
		"a password's break": {
			[]string{"STAFF_AUTH=basic", "STAFF_PASSWORD=secret secret\n"},
			[]string{"STAFF_PASSWORD, which STAFF_AUTH=basic needs, has control characters"},
		},
		"staff some other way": {
			[]string{"STAFF_AUTH=Basic", "STAFF_PASSWORD=secret secret"},
			[]string{`STAFF_AUTH is "Basic", allowed: gateway, basic, oidc, none`},
		},
		"impatient machines": {
			[]string{"MACHINE_PATIENCE=999ms"}, []string{"MACHINE_PATIENCE is 999ms, allowed: 1s to 5m0s"},
		},
		"patient machines": {[]string{"MACHINE_PATIENCE=301s"}, []string{"MACHINE_PATIENCE is 5m1s"}},
		"patience in words": {
			[]string{"MACHINE_PATIENCE=5"}, []string{`MACHINE_PATIENCE is "5", allowed: a duration such as`},
		},
		"a time zone":             {[]string{"TZ=Europe/Berlin"}, nil},
		"a time zone's file":      {[]string{"TZ=:" + zoneFile(t)}, nil},
		"a time zone's lost file": {[]string{"TZ=/etc/no/zone"}, []string{`TZ is "/etc/no/zone"`}},
		"no file of a time zone":  {[]string{"TZ=/etc/hostname"}, []string{`TZ is "/etc/hostname"`}},
		"the time zone here":      {[]string{"TZ=Local"}, []string{`TZ is "Local"`}},
		"a time zone misspelt": {
			[]string{"TZ=Europe/Berln"}, []string{`TZ is "Europe/Berln", allowed: a time zone such as Europe/Berlin`},
		},
		"no login":              {[]string{"STAFF_AUTH=none"}, nil},
		"no login on localhost": {[]string{"STAFF_AUTH=none", "HTTP_ADDR=localhost"}, nil},
		"no login on loopback":  {[]string{"STAFF_AUTH=none", "HTTP_ADDR=127.0.0.2"}, nil},
		"no login on IPv6":      {[]string{"STAFF_AUTH=none", "HTTP_ADDR=::1"}, nil},
		"no login, all addresses": {
			[]string{"STAFF_AUTH=none", "HTTP_ADDR=0.0.0.0"},
			[]string{
				`STAFF_AUTH is none, which lets everybody in and is allowed on loopback only, but HTTP_ADDR is "0.0.0.0": leave ` +
					`HTTP_ADDR empty`,
			},
		},
		"no login by IPv6": {
			[]string{"STAFF_AUTH=none", "HTTP_ADDR=::"},
			[]string{"or set STAFF_AUTH to gateway, to oidc, or to basic with a STAFF_PASSWORD"},
		},
		"no login in the network": {[]string{"STAFF_AUTH=none", "HTTP_ADDR=10.0.0.7"}, []string{"STAFF_AUTH is none"}},
		"no login under some name": {
			[]string{"STAFF_AUTH=none", "HTTP_ADDR=kiosk.localhost"}, []string{"STAFF_AUTH is none"},
		},
		"admission": {[]string{"CHECKOUT_CONCURRENCY=1000", "CHECKOUT_QUEUE_WAIT=100ms"}, nil},
		"no check-out at once": {
			[]string{"CHECKOUT_CONCURRENCY=0"}, []string{"CHECKOUT_CONCURRENCY is 0, allowed: 1 to 1000"},
		},
		"too many at once": {[]string{"CHECKOUT_CONCURRENCY=1001"}, []string{"CHECKOUT_CONCURRENCY is 1001"}},
		"too short a line": {
			[]string{"CHECKOUT_QUEUE_WAIT=99ms"}, []string{"CHECKOUT_QUEUE_WAIT is 99ms, allowed: 100ms to 10s"},
		},
		"too long a line": {
			[]string{"CHECKOUT_QUEUE_WAIT=10001ms", "REQUEST_TIMEOUT=2m", "SHUTDOWN_TIMEOUT=3m"},
			[]string{"CHECKOUT_QUEUE_WAIT is 10.001s"},
		},
		"a long line with time": {[]string{"CHECKOUT_QUEUE_WAIT=10s", "REQUEST_TIMEOUT=37s", "SHUTDOWN_TIMEOUT=1m"}, nil},
		"a line and no time": {
			[]string{"CHECKOUT_QUEUE_WAIT=4s"}, []string{"REQUEST_TIMEOUT is 30s, allowed: 31s to 5m0s"},
		},
		"time-outs that do not nest": {
			[]string{"REQUEST_TIMEOUT=29s"},
			[]string{"REQUEST_TIMEOUT is 29s, allowed: 30s to 5m0s"},
		},
		"several at once": {
			[]string{
				"LOCK_TTL_MS=1", "STORAGE_URL=x", "RETRY_INTERVAL_MS=-5", "LOG_LEVEL=loud", "PORT=-1",
				"CHECKOUT_LOCK_FEATURE_ENABLED=maybe",
			},
			[]string{
				"LOCK_TTL_MS is 1", "STORAGE_URL is", "RETRY_INTERVAL_MS is -5", "LOG_LEVEL is", "PORT is -1",
				`CHECKOUT_LOCK_FEATURE_ENABLED is "maybe"`,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := app.DefaultConfig()
			err := config.Load(&cfg, tt.environ)
			if (err == nil) != (tt.want == nil) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in:\n%v", want, err)
				}
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("a password is repeated: %v", err)
			}
		})
	}
}

// zoneFile is the file of a time zone (RFC 9636) in which it is always 12:00 when it
// is 12:00 UTC.
func zoneFile(t *testing.T) string {
	t.Helper()
	none, one, four := "\x00\x00\x00\x00", "\x00\x00\x00\x01", "\x00\x00\x00\x04"
	counts := none + none + none + none + one + four // one kind of time, a name of four bytes
	path := filepath.Join(t.TempDir(), "zone")
	if err := os.WriteFile(path, []byte("TZif"+strings.Repeat(none, 4)+counts+none+"\x00\x00"+"UTC\x00"),
		0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfig_Defaults(t *testing.T) {
	t.Parallel()
	cfg := app.DefaultConfig()
	empty := []string{"INSTANCE_NAME=", "RETRY_INTERVAL_MS=", "CHECKOUT_QUEUE_WAIT=", "DRILL_ENABLED="} // as if not set
	if err := config.Load(&cfg, empty); err != nil {
		t.Fatal(err)
	}
	if cfg.HTTP.Listen() != "127.0.0.1:9801" || cfg.StorageURL != "http://127.0.0.1:8081" || cfg.LockEnabled ||
		cfg.LockTTLMs != 3000 {
		t.Errorf("got %+v", cfg)
	}
	if len(cfg.RetryIntervalsMs) != 3 || cfg.RetryIntervalsMs[2] != 1000 || cfg.HTTP.RequestTimeout < 30*time.Second {
		t.Errorf("got %+v", cfg)
	}
	if cfg.CheckOutConcurrency != 32 || cfg.CheckOutQueueWait != 3*time.Second {
		t.Errorf("admission: got %d and %s", cfg.CheckOutConcurrency, cfg.CheckOutQueueWait)
	}
	if cfg.Staff.Auth != "gateway" || !cfg.Drill || cfg.MachinePatience != 5*time.Second {
		t.Errorf("staff: got %q, patience %s", cfg.Staff.Auth, cfg.MachinePatience)
	}
	if !strings.Contains(cfg.InstanceName, ":") {
		t.Errorf("the instance is called %q, want host and process", cfg.InstanceName)
	}
}
