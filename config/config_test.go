package config_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"checkoutlock/config"
	"checkoutlock/schemas/okapi"
	"checkoutlock/schemas/redact"
)

type settings struct {
	HTTP config.HTTP
	Log  config.Log
}

func (s *settings) Validate() error { return joined(s.HTTP.Validate(10*time.Second), s.Log.Validate()) }

func joined(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return &two{a, b}
}

type two struct{ a, b error }

func (t *two) Error() string { return t.a.Error() + "\n" + t.b.Error() }

func TestLoad_ReportsAllBadSettingsAtOnce(t *testing.T) {
	t.Parallel()
	s := settings{HTTP: config.HTTP{Port: 8081}}
	err := config.Load(&s, []string{
		"PORT=http", "REQUEST_TIMEOUT=1s", "DRAIN_DELAY=-1s", "SHUTDOWN_TIMEOUT=12s", "LOG_LEVEL=loud",
	})
	if err == nil {
		t.Fatal("bad settings were accepted")
	}
	for _, want := range []string{
		`PORT is "http", allowed: a whole number`, "REQUEST_TIMEOUT is 1s, allowed: 10s to 5m0s",
		"DRAIN_DELAY is -1s, allowed: 0s to 1m\n", `LOG_LEVEL is "loud", allowed: debug`,
		"SHUTDOWN_TIMEOUT is 12s, allowed: at least 12s more than REQUEST_TIMEOUT, which is 1s",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
}

func TestConfig_Defaults(t *testing.T) {
	t.Parallel()
	s := settings{HTTP: config.HTTP{Port: 8081}}
	if err := config.Load(&s, []string{"SHUTDOWN_TIMEOUT=42s"}); err != nil {
		t.Fatal(err)
	}
	if got := s.HTTP.Listen(); got != "127.0.0.1:8081" {
		t.Errorf("listens on %s", got)
	}
	if s.HTTP.ShutdownTimeout <= s.HTTP.RequestTimeout {
		t.Errorf("a stop (%s) cuts off requests (%s)", s.HTTP.ShutdownTimeout, s.HTTP.RequestTimeout)
	}
}

func TestLog_AddsCallAndTenant(t *testing.T) {
	t.Parallel()
	id, err := okapi.ParseTenant("diku")
	if err != nil {
		t.Fatal(err)
	}
	ctx := okapi.WithTenant(okapi.NewContext(context.Background(), okapi.Call{RequestID: "r-1"}), id)
	var out bytes.Buffer
	config.Log{Level: "info"}.New(&out, "circulation").InfoContext(ctx, "lent", "patron", redact.Mask("77477611-ab44"))
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"request_id": "r-1", "tenant": "diku", "service": "circulation", "patron": "****ab44", "msg": "lent",
	} {
		if line[key] != want {
			t.Errorf("%s is %v, want %s", key, line[key], want)
		}
	}
}

type lists struct {
	Log   config.Log
	Other struct {
		TTL int `env:"OTHER_TTL"`
	}
	Port  int           `env:"PORT"`
	TTL   int           `env:"TTL" envDefault:"3000"`
	Waits []int         `env:"WAITS" envSeparator:"|"`
	Delay time.Duration `env:"DELAY"`
	On    bool          `env:"ON"`
	Part  float64       `env:"PART"`
}

func (l *lists) Validate() error {
	if l.TTL < 250 {
		return config.OutOfRange("TTL", l.TTL, "250 and more")
	}
	return nil
}

func TestLoad_ReportsAnUnreadableValueOnce(t *testing.T) {
	t.Parallel()
	l := lists{Port: 8081}
	err := config.Load(&l, []string{
		"LOG_LEVEL=info", "TTL=3s", "PORT=http", "WAITS=500,500", "DELAY=1", "ON=yes", "PART=x",
	})
	want := "these settings cannot be used:\n" +
		`  PORT is "http", allowed: a whole number` + "\n" +
		`  TTL is "3s", allowed: a whole number` + "\n" +
		`  WAITS is "500,500", allowed: values separated by |, each a whole number` + "\n" +
		`  DELAY is "1", allowed: a duration such as 250ms or 2s` + "\n" +
		`  ON is "yes", allowed: true or false` + "\n" +
		`  PART is "x", allowed: a value of type float64`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestSplitAddr(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		addr, host string
		port       int
	}{
		{addr: "127.0.0.1:9000", host: "127.0.0.1", port: 9000},
		{addr: "[::1]:0", host: "::1", port: 0},
		{addr: ":9000", host: "0.0.0.0", port: 9000},
		{addr: "localhost:65535", host: "localhost", port: 65535},
		{addr: "127.0.0.1"},
		{addr: "9000"},
		{addr: "x:http"},
		{addr: "x:65536"},
		{addr: "x:-1"},
		{addr: ""},
	} {
		host, port, err := config.SplitAddr("X_ADDR", tt.addr)
		if host != tt.host || port != tt.port || (err != nil) != (tt.host == "") {
			t.Errorf("%q: got %q, %d, %v", tt.addr, host, port, err)
		}
		if err != nil && !strings.Contains(err.Error(), "X_ADDR is ") {
			t.Errorf("%q: the setting is not named: %v", tt.addr, err)
		}
	}
}

func TestListSettings(t *testing.T) {
	t.Parallel()
	const want = `Settings are environment variables, described in docs/settings.md:
  CHECKOUT_LOCK_FEATURE_ENABLED, DATABASE_URL, DRAIN_DELAY, HTTP_ADDR, INSTANCE_NAME, LOCK_TTL_MS,
  LOG_LEVEL, MUTEX_ADDR, PORT, REQUEST_TIMEOUT, SHUTDOWN_TIMEOUT, TENANTS, TZ.
`
	if got := config.ListSettings(&manySettings{}); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
