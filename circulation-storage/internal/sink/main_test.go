package sink_test

import (
	"os"
	"testing"

	"checkoutlock/circulation-storage/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
