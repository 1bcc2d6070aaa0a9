package postgres_test

import (
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas"
)

// What the lock refused is an event, once for a report that is sent twice.
func TestHistory_LogsWhatTheLockRefused(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	report, staff := schemas.CheckOutReport{}, uuid.NewString()
	for _, outcome := range []string{"lent", "refused", "limit_reached", "lock_not_acquired", "failed"} {
		report.CheckOuts = append(report.CheckOuts, schemas.PastCheckOut{
			ID: uuid.NewString(), Outcome: outcome, UserID: uuid.NewString(), Reason: "why " + outcome, ItemBarcode: "i",
			StaffID: staff,
		})
	}
	count := func(what string, want int) {
		t.Helper()
		var n int
		query := `SELECT count(*) FROM ` + postgres.SchemaName(p.id) + `.outbox WHERE event_type = 'LOG_RECORD'
			AND payload ? 'userId' AND payload->>'updatedByUserId' = $1`
		if err := p.db.Pool().QueryRow(p.ctx(), query, staff).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != want {
			t.Errorf("%s: got %d events, want %d", what, n, want)
		}
	}
	first := schemas.CheckOutReport{CheckOuts: report.CheckOuts[:3]}
	if err := postgres.NewHistoryStore(p.db, false).Add(p.ctx(), "", first); err != nil {
		t.Fatal(err)
	}
	count("without a log", 0)
	for range 2 {
		if err := p.Add(p.ctx(), "", report); err != nil {
			t.Fatal(err)
		}
	}
	count("with the log", 1) // the other one was stored before
}
