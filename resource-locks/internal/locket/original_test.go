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
		{"key words", `"database_connection_string": "host=db", "sql_ca_cert_file": "/ca"`, "host=db sslmode=verify-ca sslrootcert='/ca'"},
		{
			"a URL", `"database_connection_string": "postgres://u:p@db/locket?sslmode=disable", "sql_ca_cert_file": "/ca", "sql_enable_identity_verification": true`,
			"postgres://u:p@db/locket?sslmode=verify-full&sslrootcert=%2Fca",
		},
		{"none", `"database_connection_string": "postgres://u:p@db/locket", "sql_enable_identity_verification": true`, "postgres://u:p@db/locket"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := locket.ParseOriginalConfig(strings.NewReader(`{"listen_address": ":1", "database_driver": "postgres", ` + tt.fields + `}`))
			if err != nil || !slices.Contains(c.Environ(), "DATABASE_URL="+tt.want) {
				t.Errorf("got %q %v, want %q", c.Environ(), err, tt.want)
			}
		})
	}
}

func TestParseOriginalConfig_Refuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, file, want string }{
		{"no JSON", `listen_address: x`, "no JSON object"},
		{"an empty file", ``, "no JSON object"},
		{"a number as text", `{"max_open_database_connections": "5"}`, "max_open_database_connections"},
		{"no address", `{"database_driver": "postgres", "database_connection_string": "x"}`, "listen_address is missing"},
		{"MySQL", `{"database_driver": "mysql"}`, `database_driver is "mysql", allowed: "postgres"`},
		{"no database", `{"database_driver": "postgres", "listen_address": ":1"}`, "database_connection_string is missing"},
		{"a bad duration", `{"db_operation_timeout": "10"}`, `db_operation_timeout is "10"`},
		{"an unknown level", `{"log_level": "loud"}`, `log_level is "loud", allowed: debug, info, error, fatal`},
		{"a quote in a path", `{"sql_ca_cert_file": "/a'b"}`, "sql_ca_cert_file"},
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
