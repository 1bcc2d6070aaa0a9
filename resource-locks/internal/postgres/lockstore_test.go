package postgres_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
)

// modes are the ways in which connections send statements, and a server with another isolation
// level than that of the tests' server. PgBouncer needs exec and READ COMMITTED.
var modes = map[string]string{
	"prepared":        "",
	"exec":            "&default_query_exec_mode=exec&default_transaction_isolation=read%20committed",
	"repeatable read": "&options=-c%20default_transaction_isolation%3Drepeatable%5C%20read",
}

func TestLockStore(t *testing.T) {
	t.Parallel()
	for mode, parameters := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			enginetest.RunLockStore(t, func(t *testing.T) (engine.LockStore, func(time.Duration)) {
				s := schematest.New(t)
				db := s.Open(parameters)
				return postgres.NewLockStore(db), func(d time.Duration) { s.Advance(db, d) }
			})
		})
	}
}

// TestLockStore_RandomSequences has a process of each mode.
func TestLockStore_RandomSequences(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	var stores []engine.LockStore
	for _, mode := range slices.Sorted(maps.Keys(modes)) {
		stores = append(stores, postgres.NewLockStore(s.Open(modes[mode])))
	}
	enginetest.RunRandomLocks(t, stores, func(d time.Duration) { s.Advance(db, d) })
}
