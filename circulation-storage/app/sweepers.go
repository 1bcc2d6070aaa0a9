package app

import (
	"time"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/sweep"
)

// outdatedLocksKept is how long outdated locks stay, so that operators can see why a
// check-out failed. An outdated lock blocks no caller.
const outdatedLocksKept = 10 * time.Minute

// sweptRows lists all rows that are deleted when they are old.
func sweptRows(db *postgres.DB, retention time.Duration, m *metrics) []sweep.Rows {
	return []sweep.Rows{
		{
			Name:    "outdated locks",
			Delete:  sweep.OlderThan(outdatedLocksKept, postgres.NewLockStore(db).Sweep),
			Deleted: func(n int) { m.swept.Add(float64(n)) },
		},
		{
			Name:    "forgotten idempotency keys",
			Delete:  postgres.NewClaimStore(db).Sweep,
			Deleted: func(n int) { m.forgotten.Add(float64(n)) },
		},
		{
			Name:   "check-ins a day old",
			Delete: postgres.NewCommitStore(db).SweepCheckIns,
		},
		{
			Name:    "past check-outs",
			Delete:  sweep.OlderThan(retention, postgres.NewHistoryStore(db).Sweep),
			Deleted: func(n int) { m.aged.Add(float64(n)) },
		},
		{
			// Who released a lock, and why, stays.
			Name:   "patrons of forced releases",
			Delete: sweep.OlderThan(retention, postgres.NewLockChangeStore(db).BlankReleases),
		},
	}
}
