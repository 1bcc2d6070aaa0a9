package postgres_test

import (
	"strings"
	"testing"
	"time"

	"checkoutlock/resource-locks/internal/postgres/schematest"
)

func TestAwait_RefusesAnotherIsolationLevelBehindPgBouncer(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	for level, parameter := range map[string]string{"REPEATABLE READ": "repeatable%20read", "SERIALIZABLE": "serializable"} {
		db := s.Open("&default_query_exec_mode=exec&default_transaction_isolation=" + parameter)
		for _, err := range []error{db.Await(t.Context(), time.Minute), db.Ready(t.Context())} {
			switch {
			case err == nil, !strings.Contains(err.Error(), "is "+level+": ALTER ROLE ... SET"):
				t.Errorf("got %v, want what to set instead of %s", err, level)
			case strings.Contains(err.Error(), "waited"):
				t.Errorf("got %v, want it at once", err)
			}
		}
	}
}
