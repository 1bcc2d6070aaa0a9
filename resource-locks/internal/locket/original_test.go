package locket_test

import (
	"slices"
	"strings"
	"testing"

	"checkoutlock/resource-locks/internal/locket"
)

func TestParseOriginalConfig(t *testing.T) {
	t.Parallel()
	c, err := locket.ParseOriginalConfig(strings.NewReader(`{
		"listen_address": "0.0.0.0:8891", "ca_file": "/ca", "cert_file": "/cert", "key_file": "/key",
		"database_driver": "postgres", "database_connection_string": "host=db user=locket",
		"max_open_database_connections": 200, "db_operation_timeout": "7s", "log_level": "fatal",
		"loggregator": {"loggregator_use_v2_api": true}, "debug_address": "127.0.0.1:17018"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"LOCKET_ADDR=0.0.0.0:8891", "LOCKET_TLS_CA=/ca", "LOCKET_TLS_CERT=/cert", "LOCKET_TLS_KEY=/key",
		"DATABASE_URL=host=db user=locket", "LOG_LEVEL=error", "LOCKET_OPERATION_TIMEOUT=7s", "DATABASE_MAX_CONNS=200",
	}
	if got := c.Environ(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParseOriginalConfig_DatabaseAuthority(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, fields, want string }{
		{
			name: "key words", fields: `"database_connection_string": "host=db", "sql_ca_cert_file": "/ca"`,
			want: "host=db sslmode=verify-ca sslrootcert='/ca'",
		},
		{
			name: "a URL", fields: `"database_connection_string": "postgres://u:p@db/locket?sslmode=disable", ` +
				`"sql_ca_cert_file": "/ca", "sql_enable_identity_verification": true`,
			want: "postgres://u:p@db/locket?sslmode=verify-full&sslrootcert=%2Fca",
		},
		{
			name:   "none",
			fields: `"database_connection_string": "postgres://u:p@db/locket", "sql_enable_identity_verification": true`,
			want:   "postgres://u:p@db/locket",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := locket.ParseOriginalConfig(strings.NewReader(`{"listen_address": ":1", "database_driver": "postgres", ` +
				tt.fields + `}`))
			if err != nil || !slices.Contains(c.Environ(), "DATABASE_URL="+tt.want) {
				t.Errorf("got %q %v, want %q", c.Environ(), err, tt.want)
			}
		})
	}
}

func TestParseOriginalConfig_Refuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, file, want string }{
		{name: "no JSON", file: `listen_address: x`, want: "no JSON object"},
		{name: "an empty file", file: ``, want: "no JSON object"},
		{name: "a number as text", file: `{"max_open_database_connections": "5"}`, want: "max_open_database_connections"},
		{
			name: "no address", file: `{"database_driver": "postgres", "database_connection_string": "x"}`,
			want: "listen_address is missing",
		},
		{name: "MySQL", file: `{"database_driver": "mysql"}`, want: `database_driver is "mysql", allowed: "postgres"`},
		{
			name: "no database", file: `{"database_driver": "postgres", "listen_address": ":1"}`,
			want: "database_connection_string is missing",
		},
		{name: "a bad duration", file: `{"db_operation_timeout": "10"}`, want: `db_operation_timeout is "10"`},
		{
			name: "an unknown level", file: `{"log_level": "loud"}`,
			want: `log_level is "loud", allowed: debug, info, error, fatal`,
		},
		{name: "a quote in a path", file: `{"sql_ca_cert_file": "/a'b"}`, want: "sql_ca_cert_file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := locket.ParseOriginalConfig(strings.NewReader(tt.file))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// A file is refused, or each setting has one value that a variable can hold.
func FuzzParseOriginalConfig(f *testing.F) {
	const needed = `"listen_address": ":1", "database_driver": "postgres", `
	for _, fields := range []string{
		`"database_connection_string": "host=db user=locket"`,
		`"database_connection_string": "postgres://u:p@db/locket?sslmode=disable&sslmode=x", "sql_ca_cert_file": "/ca"`,
		`"database_connection_string": "x", "db_operation_timeout": "-1h", "max_open_database_connections": -5`,
		`"database_connection_string": "host=db", "sql_ca_cert_file": "/ca", "log_level": "debug"`,
	} {
		f.Add(`{` + needed + fields + `}`)
	}
	f.Fuzz(func(t *testing.T, file string) {
		c, err := locket.ParseOriginalConfig(strings.NewReader(file))
		if err != nil {
			return
		}
		values := map[string]string{}
		for _, variable := range c.Environ() {
			name, value, _ := strings.Cut(variable, "=")
			if _, again := values[name]; again || strings.ContainsRune(variable, 0) {
				t.Errorf("%s: %q is set twice or has a NUL", file, variable)
			}
			values[name] = value
		}
		if values["LOCKET_ADDR"] == "" || values["DATABASE_URL"] == "" || values["LOG_LEVEL"] == "" {
			t.Errorf("%s: got %q", file, values)
		}
		if c.DatabaseCAFile != "" && !strings.Contains(values["DATABASE_URL"], "sslmode=verify-") {
			t.Errorf("%s: the database's certificate is not checked: %q", file, values["DATABASE_URL"])
		}
	})
}
