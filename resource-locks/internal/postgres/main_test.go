package postgres_test

import (
	"os"
	"testing"

	"checkoutlock/resource-locks/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
