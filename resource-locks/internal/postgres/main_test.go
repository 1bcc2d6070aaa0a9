package postgres_test

import (
	"flag"
	"os"
	"testing"

	"checkoutlock/resource-locks/internal/postgres/schematest"
)

func TestMain(m *testing.M) {
	if os.Getenv("TORTURE") == "" { // rapid's own 100 sequences take long in PostgreSQL
		if err := flag.Set("rapid.checks", "30"); err != nil {
			panic(err)
		}
	}
	os.Exit(schematest.Main(m))
}
