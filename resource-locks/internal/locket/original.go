package locket

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"checkoutlock/config"
)

// OriginalConfig is the configuration file of the published server, as far as this
// service has a setting for it.
type OriginalConfig struct {
	ListenAddress string `json:"listen_address"`
	CAFile        string `json:"ca_file"`
	CertFile      string `json:"cert_file"`
	KeyFile       string `json:"key_file"`

	DatabaseDriver           string `json:"database_driver"`
	DatabaseConnectionString string `json:"database_connection_string"`
	DatabaseCAFile           string `json:"sql_ca_cert_file"`
	VerifyDatabaseName       bool   `json:"sql_enable_identity_verification"`
	MaxOpenConnections       int    `json:"max_open_database_connections"`
	OperationTimeout         string `json:"db_operation_timeout"` // a Go duration

	LogLevel string `json:"log_level"`
}

// ParseOriginalConfig reads the file of the published server's option -config. It skips
// fields that this service has no setting for, such as loggregator.
func ParseOriginalConfig(r io.Reader) (OriginalConfig, error) {
	var c OriginalConfig
	if err := json.NewDecoder(r).Decode(&c); err != nil {
		return OriginalConfig{}, fmt.Errorf("the file is no JSON object of Locket's settings: %w", err)
	}
	return c, c.check()
}

func (c OriginalConfig) check() error {
	var errs []error
	if c.ListenAddress == "" {
		errs = append(errs, errors.New("listen_address is missing, allowed: host:port"))
	}
	if c.DatabaseDriver != "postgres" {
		errs = append(errs, config.OutOfRange("database_driver", strconv.Quote(c.DatabaseDriver), `"postgres"`))
	}
	if c.DatabaseConnectionString == "" {
		errs = append(errs, errors.New("database_connection_string is missing, allowed: a URL or the key words of PostgreSQL"))
	}
	if strings.ContainsAny(c.DatabaseCAFile, `'\`) {
		errs = append(errs, config.OutOfRange("sql_ca_cert_file", strconv.Quote(c.DatabaseCAFile), "a path without quotes and backslashes"))
	}
	if _, err := time.ParseDuration(c.OperationTimeout); c.OperationTimeout != "" && err != nil {
		errs = append(errs, config.OutOfRange("db_operation_timeout", strconv.Quote(c.OperationTimeout), "a duration such as 10s"))
	}
	if _, known := logLevels()[c.LogLevel]; !known {
		errs = append(errs, config.OutOfRange("log_level", strconv.Quote(c.LogLevel), "debug, info, error, fatal"))
	}
	return errors.Join(errs...)
}

// logLevels maps the levels of the published server to LOG_LEVEL.
func logLevels() map[string]string {
	return map[string]string{"": "info", "debug": "debug", "info": "info", "error": "error", "fatal": "error"}
}

// Environ returns the settings of this service as variables, in the form of os.Environ. An
// empty value leaves the default.
func (c OriginalConfig) Environ() []string {
	vars := []string{
		"LOCKET_ADDR=" + c.ListenAddress,
		"LOCKET_TLS_CA=" + c.CAFile,
		"LOCKET_TLS_CERT=" + c.CertFile,
		"LOCKET_TLS_KEY=" + c.KeyFile,
		"DATABASE_URL=" + c.databaseURL(),
		"LOG_LEVEL=" + logLevels()[c.LogLevel],
	}
	if c.OperationTimeout != "" {
		vars = append(vars, "LOCKET_OPERATION_TIMEOUT="+c.OperationTimeout)
	}
	if c.MaxOpenConnections > 0 {
		vars = append(vars, "DATABASE_MAX_CONNS="+strconv.Itoa(c.MaxOpenConnections))
	}
	return vars
}

// databaseURL adds the authority of the database's certificate to the connection string,
// which is a URL or a list of key words.
func (c OriginalConfig) databaseURL() string {
	if c.DatabaseCAFile == "" {
		return c.DatabaseConnectionString
	}
	mode := "verify-ca"
	if c.VerifyDatabaseName {
		mode = "verify-full"
	}
	u, err := url.Parse(c.DatabaseConnectionString)
	if err != nil || u.Scheme == "" {
		return fmt.Sprintf("%s sslmode=%s sslrootcert='%s'", c.DatabaseConnectionString, mode, c.DatabaseCAFile)
	}
	query := u.Query()
	query.Set("sslmode", mode)
	query.Set("sslrootcert", c.DatabaseCAFile)
	u.RawQuery = query.Encode()
	return u.String()
}
