package postgres_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/keylease"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// settle settles a check-out, which must succeed, and returns the answer.
func (l harness) settle(loan uuid.UUID) schemas.SettledCheckOut {
	l.t.Helper()
	got, err := l.commits.SettleCheckOut(l.ctx(), loan)
	if err != nil {
		l.t.Fatal(err)
	}
	return got
}

// wantGivenUp settles a check-out that never lent.
func (l harness) wantGivenUp(c lending) {
	l.t.Helper()
	if got := l.settle(c.loan); !got.GivenUp || got.Loan != nil || got.Item != nil {
		l.t.Errorf("settled: got %s, want it given up", got.Loan)
	}
}

// wantSettledAsLent settles a check-out that lent.
func (l harness) wantSettledAsLent(c lending) {
	l.t.Helper()
	if got := l.settle(c.loan); got.GivenUp || field(l.t, got.Loan, "id") != c.loan.String() ||
		field(l.t, got.Item, "id") != c.item.String() {
		l.t.Errorf("settled: got %s %s, want the loan and the item", got.Loan, got.Item)
	}
}

// wantAllOrNothing checks that each loan has one entry of the history, one session record and two
// events, and that there are so many loans.
func (l harness) wantAllOrNothing(loans int) {
	l.t.Helper()
	for _, table := range []string{
		"loan", "loan_history", "patron_action_session", "outbox WHERE topic IS NULL", "outbox WHERE topic = 'loan'",
	} {
		if n := l.count(`SELECT count(*) FROM {schema}.` + table); n != loans {
			l.t.Errorf("got %d rows of %s, want %d", n, table, loans)
		}
	}
}

// fences are check-outs with the feature on and off, and a loan that staff record.
func (l harness) fences() map[string]lending {
	on := l.withLock(uuid.New(), l.addItem("Available", ""))
	released := l.withLock(uuid.New(), l.addItem("Available", ""))
	released.release = true
	return map[string]lending{"on": on, "on, with a release": released, "off": l.withoutLock(l.addItem("Available", ""))}
}

// allFences are fences, and a check-out that takes its lock itself, which waits for others only briefly.
func (l harness) allFences() map[string]lending {
	all := l.fences()
	all["on, in the commit"] = l.takingLock(uuid.New(), l.addItem("Available", ""))
	return all
}

func TestSettleCheckOut_RefusesADelayedCommit(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.recordEvents()
	for name, c := range l.allFences() {
		for range 2 {
			l.wantGivenUp(c)
			if _, _, err := l.send(c); !fault.Is(err, fault.GivenUp) {
				t.Errorf("%s: a commit after its settlement: got %v, want %s", name, err, fault.GivenUp)
			}
		}
		l.wantUntouched(c.item)
		again := c
		again.loan = uuid.New()
		l.lend(again) // only the id is given up
		l.wantSettledAsLent(again)
	}
	l.wantAllOrNothing(4)
}

func TestSettleCheckOut_OutlivesACrash(t *testing.T) {
	t.Parallel()
	l, server := newHarnessOnOwnServer(t, noBackgroundFlush)
	l.recordEvents()
	given, lent := l.allFences(), l.allFences()
	for _, c := range lent {
		l.lend(c)
	}
	for range 2 {
		for _, c := range given {
			l.wantGivenUp(c)
		}
		crash(t, server)
		l = l.reach(server.URL())
		for name, c := range given {
			if _, _, err := l.send(c); !fault.Is(err, fault.GivenUp) {
				t.Errorf("%s: a commit after the crash: got %v, want %s", name, err, fault.GivenUp)
			}
		}
		for _, c := range lent {
			l.wantSettledAsLent(c)
		}
		l.wantAllOrNothing(len(lent))
	}
}

func TestSettleCheckOut_WaitsForACommit(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.recordEvents()
	for name, c := range l.fences() {
		pause := l.begin(lockItem, c.item)
		done := l.start(c)
		l.waitUntilBlocked(1) // the commit has the loan's id and waits for the item
		settled := make(chan schemas.SettledCheckOut, 2)
		for range cap(settled) {
			go func() {
				got, err := l.commits.SettleCheckOut(l.ctx(), c.loan)
				if err != nil {
					t.Errorf("%s: settling: %v", name, err)
				}
				settled <- got
			}()
		}
		l.waitUntilBlocked(3)
		if err := pause.Rollback(l.ctx()); err != nil {
			t.Fatal(err)
		}
		l.wantCommitted(done)
		for range cap(settled) {
			if got := <-settled; got.GivenUp || field(t, got.Loan, "id") != c.loan.String() {
				t.Errorf("%s: got %+v, want it lent", name, got)
			}
		}
	}
	l.wantAllOrNothing(3)
}

// The commit waits for the settlement, and sees what it wrote.
func TestCheckOut_WaitsForASettlement(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	for name, c := range l.fences() {
		settlement := l.begin(strings.ReplaceAll(postgres.LockCheckOutSQL, "{schema}",
			pgx.Identifier{postgres.SchemaName(l.id)}.Sanitize()), c.loan)
		done := l.start(c)
		l.waitUntilBlocked(1)
		giveUp := l.sql(`INSERT INTO {schema}.given_up_check_out VALUES ($1)`)
		if _, err := settlement.Exec(l.ctx(), giveUp, c.loan); err != nil {
			t.Fatal(err)
		}
		if err := settlement.Commit(l.ctx()); err != nil {
			t.Fatal(err)
		}
		if got := <-done; !fault.Is(got.err, fault.GivenUp) {
			t.Errorf("%s: got %s, %v, want %s", name, got.outcome, got.err, fault.GivenUp)
		}
		l.wantUntouched(c.item)
	}
}

// Of a commit and two settlements at once, either the commit stands and both answer so, or it is
// refused and both have given it up.
func TestSettleCheckOut_BesideTheCommit(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.recordEvents()
	lent := 0
	for range 20 {
		for name, c := range l.allFences() {
			var wg sync.WaitGroup
			var commitErr error
			var settled [2]schemas.SettledCheckOut
			var settleErr [2]error
			wg.Go(func() { _, _, commitErr = l.send(c) })
			for i := range settled {
				wg.Go(func() { settled[i], settleErr[i] = l.commits.SettleCheckOut(l.ctx(), c.loan) })
			}
			wg.Wait()
			stands := commitErr == nil
			if stands {
				lent++
			} else if !fault.Is(commitErr, fault.GivenUp) {
				t.Errorf("%s: the commit got %v", name, commitErr)
			}
			for i := range settled {
				if settleErr[i] != nil || settled[i].GivenUp == stands {
					t.Errorf("%s: settled as %+v, %v, though the commit ended with %v", name, settled[i], settleErr[i], commitErr)
				}
			}
		}
	}
	l.wantAllOrNothing(lent)
}

func TestSettleCheckOut_FindsALoanThatHasEnded(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	closed, deleted := l.withoutLock(l.addItem("Available", "")), l.withoutLock(l.addItem("Available", ""))
	l.lend(closed)
	if _, err := l.takeBack(closed.item, 2); err != nil {
		t.Fatal(err)
	}
	if got := l.settle(closed.loan); got.GivenUp || field(t, got.Loan, "status", "name") != "Closed" {
		t.Errorf("settled after the check-in: got %s, want the closed loan", got.Loan)
	}
	l.lend(deleted)
	l.exec(`DELETE FROM {schema}.loan WHERE id = $1`, deleted.loan)
	// All entries are of one millisecond, and the first one is stored behind that of the deletion.
	l.exec(`UPDATE {schema}.loan_history SET jsonb = jsonb || '{"createdDate": "2026-03-04T05:06:00.000+00:00"}'`)
	l.exec(`WITH first AS (DELETE FROM {schema}.loan_history WHERE jsonb->>'operation' = 'I' RETURNING id, jsonb)
		INSERT INTO {schema}.loan_history (id, jsonb) SELECT * FROM first`)
	if got := l.settle(deleted.loan); got.GivenUp || field(t, got.Loan, "action") != "checkedout" || got.Item != nil {
		t.Errorf("settled after the loan was deleted: got %s %s, want the loan that was lent", got.Loan, got.Item)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.given_up_check_out`); n != 0 {
		t.Errorf("%d check-outs are given up, want none", n)
	}
}

// A primary that was cut off from its standby does not know what its successor committed.
func TestSettleCheckOut_IsUnknownWhileTheSynchronousStandbyIsGone(t *testing.T) {
	t.Parallel()
	l, _ := newHarnessOnOwnServer(t, nil)
	tests := l.fences()
	given, lent, deleted := tests["on"], tests["off"], tests["on, with a release"]
	l.lend(lent)
	l.lend(deleted)
	l.exec(`DELETE FROM {schema}.loan WHERE id = $1`, deleted.loan)
	l.setStandby("gone")
	for name, c := range map[string]lending{"given up": given, "lent": lent, "deleted": deleted} {
		settle := func() error { _, err := l.commits.SettleCheckOut(l.ctx(), c.loan); return err }
		if err := l.cancelled(settle); !fault.Is(err, fault.Timeout) {
			t.Errorf("%s: got %v, want %s", name, err, fault.Timeout)
		}
	}
	l.setStandby("")
	l.wantGivenUp(given)
	l.wantSettledAsLent(lent)
}

func TestSettleCheckOut_IsForgottenADayAfterTheLastTime(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	old, again := l.withoutLock(l.addItem("Available", "")), l.withoutLock(l.addItem("Available", ""))
	l.wantGivenUp(old)
	l.wantGivenUp(again)
	l.exec(`UPDATE {schema}.given_up_check_out SET created_date = created_date - interval '25 hours'`)
	l.wantGivenUp(again)
	for _, want := range []int{1, 0} {
		if n, err := l.commits.SweepRepeats(l.ctx(), 2); err != nil || n != want {
			t.Errorf("swept %d, %v, want %d", n, err, want)
		}
	}
	if _, _, err := l.send(again); !fault.Is(err, fault.GivenUp) {
		t.Errorf("the young one: got %v, want %s", err, fault.GivenUp)
	}
	l.lend(old)
}

func TestKeyLeaseStore_NamesAnotherLoanAfterItsOwnIsGivenUp(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.recordEvents()
	k := postgres.NewKeyLeaseStore(l.db)
	lease := func(req keylease.Request) keylease.Lease {
		t.Helper()
		got, err := k.Lease(l.ctx(), req)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := ask("k")
	c := l.leased(k, first, l.addItem("Available", ""))
	l.wantGivenUp(c)
	if _, err := l.sendUnderLease(c, first.LeaseID); !fault.Is(err, fault.GivenUp) {
		t.Errorf("a commit under the lease: got %v, want %s", err, fault.GivenUp)
	}
	if err := k.Renew(l.ctx(), first.LeaseID, 0); err != nil {
		t.Fatal(err)
	}
	next := ask("k")
	got := lease(next)
	if got.LoanID == c.loan || !got.Taken {
		t.Fatalf("the next lease is %+v, want one for another loan than %s", got, c.loan)
	}
	if again := lease(next); again.LoanID != got.LoanID {
		t.Errorf("the repeated lease is for the loan %s, want %s", again.LoanID, got.LoanID)
	}
	if _, err := l.sendUnderLease(c, first.LeaseID); !fault.Is(err, fault.GivenUp) {
		t.Errorf("a late commit under the first lease: got %v, want %s", err, fault.GivenUp)
	}
	c.loan = got.LoanID
	if outcome, err := l.sendUnderLease(c, next.LeaseID); outcome != commit.Committed {
		t.Errorf("the next commit: got %s, %v, want it to stand", outcome, err)
	}
	l.wantAllOrNothing(1)
}
