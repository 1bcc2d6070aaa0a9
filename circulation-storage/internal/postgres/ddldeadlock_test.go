package postgres_test

import (
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas"
)

// An upgrade or a purge locks whole tables, in another order than a statement that runs meanwhile.
func TestStatements_RunAgainAfterADeadlockWithAnUpgrade(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first, last string // tables that the upgrade locks; the statement locks the last one first
		run         func(l harness) error
	}{
		"one that writes": {
			first: "outbox", last: "check_out_history",
			run: func(l harness) error {
				return postgres.NewHistoryStore(l.db, true).Add(l.ctx(), "one", schemas.CheckOutReport{})
			},
		},
		"one that reads": {
			first: "settings_entry", last: "lock_settings_version",
			run: func(l harness) error {
				_, err := l.settings.State(l.ctx())
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHarness(t)
			upgrade := l.begin(`SET LOCAL deadlock_timeout = '1min'`)
			lock := func(table string) {
				t.Helper()
				if _, err := upgrade.Exec(l.ctx(), l.sql(`LOCK TABLE {schema}.`+table)); err != nil {
					t.Fatal(err)
				}
			}
			lock(tt.first)
			done := make(chan error, 1)
			go func() { done <- tt.run(l) }()
			l.waitUntilBlockedBy(upgrade, 1)
			lock(tt.last)
			if err := upgrade.Commit(l.ctx()); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(time.Minute):
				t.Error("the statement does not end")
			}
		})
	}
}
