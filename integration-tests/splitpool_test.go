package integration_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/devpostgres/testserver"
	"checkoutlock/integration-tests/stack"
)

// TestSplitPool simulates a pool after a failover that left the old primary running: half
// of the connections lead there. Two copies of a database stand for the two servers.
func TestSplitPool(t *testing.T) {
	t.Parallel()
	const limit, patrons, each, rounds = 2, 5, 6, 10
	pg := testserver.Start(t, nil)
	old, fresh := "it_a_"+uuid.NewString()[:8], ""
	fresh = "it_b_" + old[len("it_a_"):]
	execSQL(t, pg.URL(), fmt.Sprintf(`CREATE DATABASE %q`, old))
	var split atomic.Bool
	var turn atomic.Int32
	p := startPair(t, stack.Options{
		DatabaseURL:    replaceDatabase(t, pg.URL(), old),
		CirculationEnv: []string{"CHECKOUT_LOCK_FEATURE_ENABLED=true", "LOCK_TTL_MS=1000", "RETRY_INTERVAL_MS=1000|1000"},
		DatabaseVia: func(_ int, databaseURL string) string {
			_, through := newWire(t, databaseURL, func(message []byte) []byte {
				if split.Load() && turn.Add(1)%2 == 0 {
					return bytes.ReplaceAll(message, []byte(old), []byte(fresh))
				}
				return message
			})
			return through
		},
	}, limit)
	ids, barcodes, books := make([][]string, rounds), make([][]string, rounds), make([][]string, rounds)
	for round := range rounds {
		ids[round], barcodes[round] = p.addPatrons(t, patrons)
		books[round] = p.addBooks(t, patrons*each)
	}
	split.Store(true)
	copyDatabase(t, pg.URL(), old, fresh)

	for round := range rounds {
		var wg sync.WaitGroup
		var lent atomic.Int32
		for i, book := range books[round] {
			wg.Go(func() {
				if p.lendBook(t, 0, book, barcodes[round][i%patrons]).Status == http.StatusCreated {
					lent.Add(1)
				}
			})
		}
		wg.Wait()
		most := 0
		for _, database := range []string{old, fresh} {
			n := countMostLoans(t, replaceDatabase(t, pg.URL(), database), p.Storage.Tenant, ids[round])
			if n > limit {
				t.Errorf("round %d: a patron has %d loans on one server, want at most %d", round+1, n, limit)
			}
			most = max(most, n)
		}
		if lent.Load() == 0 || most < limit {
			t.Errorf("round %d: %d books are lent, and the most of a patron is %d, want the limit", round+1, lent.Load(), most)
		}
	}
	if turn.Load() < 4 {
		t.Error("the pool did not reach both servers")
	}
}

// copyDatabase ends the sessions of a database and copies it. It repeats both while new
// sessions prevent the copy.
func copyDatabase(t *testing.T, server, from, to string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	waitUntil(t, patience, "the database is copied", func() bool {
		_, err := conn.Exec(t.Context(), `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1`,
			from)
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Exec(t.Context(), fmt.Sprintf(`CREATE DATABASE %q TEMPLATE %q`, to, from))
		return err == nil
	})
}

// countMostLoans returns the largest number of open loans of one of the patrons.
func countMostLoans(t *testing.T, databaseURL, tenant string, patrons []string) (most int) {
	t.Helper()
	schema := ""
	queryValue(t, databaseURL, &schema, `SELECT nspname FROM pg_namespace WHERE nspname LIKE $1`,
		strings.ReplaceAll(tenant, "_", `\_`)+`%`)
	queryValue(t, databaseURL, &most, `SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM `+
		pgx.Identifier{schema}.Sanitize()+`.loan
		WHERE is_open AND user_id = ANY($1::uuid[]) GROUP BY user_id) AS counted`, patrons)
	return most
}
