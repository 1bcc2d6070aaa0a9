package database_test

import (
	"os"
	"testing"

	"checkoutlock/devpostgres/testserver"
)

func TestMain(m *testing.M) { os.Exit(testserver.Main(m)) }
