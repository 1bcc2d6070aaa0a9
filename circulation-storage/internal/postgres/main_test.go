package postgres_test

import (
	"os"
	"testing"
	"time"

	"github.com/golang-migrate/migrate/v4"

	"checkoutlock/circulation-storage/internal/postgres/pgtest"
)

func TestMain(m *testing.M) {
	migrate.DefaultLockTimeout = 10 * time.Millisecond // Install must not depend on it
	os.Exit(pgtest.Main(m))
}
