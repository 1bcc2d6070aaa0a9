package postgres_test

import (
	"os"
	"testing"

	"checkoutlock/resource-locks/internal/postgres/schematest"
)

func TestMain(m *testing.M) { os.Exit(schematest.Main(m)) }
