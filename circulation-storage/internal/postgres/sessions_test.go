package postgres_test

import (
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/postgres"
)

// manySessionsSQL stores the records of 1,000 patrons, twenty of each at two desks at once.
const manySessionsSQL = `
INSERT INTO S.patron_action_session (id, jsonb)
SELECT gen_random_uuid(), jsonb_build_object('patronId', md5('patron' || n % 1000)::uuid, 'loanId', gen_random_uuid(),
'actionType', action,
	'metadata', jsonb_build_object('createdDate', to_char(timestamp '2026-01-01' + n / 2 * interval '1 minute',
	'YYYY-MM-DD"T"HH24:MI:SS"Z"')))
  FROM generate_series(1, 10000) AS n, unnest(ARRAY['Check-out', 'Check-in']) AS action`

func TestExpiredSessions_OfManyRecordsEndAtTheLimit(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.executeStatements(t, manySessionsSQL, "ANALYZE S.patron_action_session")
	before := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	plan, err := explainOn(l.in(t), l.db.Pool(), l.sql(strings.ReplaceAll(postgres.ExpiredSessionsSQL, "{schema}.", "S.")),
		"", before, 10)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plan, "Seq Scan") || !strings.Contains(plan, "patron_action_session_created_date_idx") ||
		!strings.Contains(plan, "patron_action_session_patron_id_idx") {
		t.Errorf("the plan reads all records:\n%s", plan)
	}
	sessions, err := l.store.ExpiredSessions(l.in(t), "", before, 4000)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[any]bool{}
	for _, s := range sessions {
		seen[s] = true
	}
	if len(sessions) != 2000 || len(seen) != 2000 {
		t.Errorf("got %d sessions, %d of them different, want each of 2000 once", len(sessions), len(seen))
	}
}
