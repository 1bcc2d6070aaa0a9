package database_test

import (
	"strings"
	"testing"

	"checkoutlock/database"
)

func TestSettings_NameAnAddressThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for url, says := range map[string]string{
		"": "DATABASE_URL is empty, allowed: a PostgreSQL connection URL such as postgres://",
		"s3cret": "DATABASE_URL cannot be read, allowed: a PostgreSQL connection URL such as " +
			"postgres://",
		"postgres://u:s3cret@host:port/x": "DATABASE_URL cannot be read, allowed: ",
		"postgres://u:s3cret@host/x?sslmode=verify-full&sslrootcert=/nowhere/ca.pem": "DATABASE_URL names a file that " +
			"cannot be read: open /nowhere/ca.pem: ",
		"postgres://u:s3cret@host/x?pool_max_conns=4": "DATABASE_URL has pool_max_conns, which counts nothing",
		"postgres://u:s3cret@host:5432/x":             "",
		"host=db user=u password=s3cret":              "",
	} {
		err := database.Settings{URL: url, MaxConns: 2}.Validate()
		if says == "" && err == nil {
			continue
		}
		if err == nil || says == "" || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: got %v, want %q without the password", url, err, says)
		}
	}
}
