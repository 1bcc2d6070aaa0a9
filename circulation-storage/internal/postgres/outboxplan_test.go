package postgres_test

import (
	"regexp"
	"strconv"
	"testing"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
)

var removedByFilter = regexp.MustCompile(`Rows Removed by Filter: (\d+)`)

// Each turn reads the events that wait, by a plan that was made while the outbox was empty. Those that
// were refused stay for days.
func TestOutboxStore_ReadsNoRefusedEvents(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.db = pgtest.Open(t) // whose connection keeps the statement
	tx := l.begin(postgres.NextEventsBounds)
	exec := func(statement string) (rows int64) {
		t.Helper()
		tag, err := tx.Exec(l.ctx(), l.sql(statement))
		if err != nil {
			t.Fatal(err)
		}
		return tag.RowsAffected()
	}
	const next = `EXECUTE next_events (200, false, 0, 9223372036854775807)`
	exec(`PREPARE next_events (bigint, boolean, bigint, bigint) AS ` + postgres.NextEventsSQL)
	exec(next)
	exec(`INSERT INTO {schema}.outbox (event_type, refused)
		SELECT 'CREATED', CASE WHEN n <= 20000 THEN 'bad' END FROM generate_series(1, 20001) n`)
	if n := exec(next); n != 1 {
		t.Errorf("got %d events, want the one that waits", n)
	}
	plan, err := explainOn(l.ctx(), tx, "ANALYZE "+next)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range removedByFilter.FindAllStringSubmatch(plan, -1) {
		if n, _ := strconv.Atoi(found[1]); n > 100 {
			t.Errorf("%d rows are read in vain:\n%s", n, plan)
		}
	}
}
