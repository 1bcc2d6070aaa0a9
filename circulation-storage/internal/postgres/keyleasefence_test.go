package postgres_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/keylease"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas/fault"
)

// sendUnderLease commits a check-out with a lease. It may be called from any
// goroutine.
func (l harness) sendUnderLease(c lending, lease uuid.UUID) (commit.Outcome, error) {
	parsed, err := commit.ParseCheckOut(append(append(c.body()[:len(c.body())-1], `,"claimId":"`+lease.String()...),
		`"}`...))
	if err != nil {
		l.t.Error(err)
	}
	_, outcome, err := l.sendParsed(parsed)
	return outcome, err
}

// leased is a check-out of the loan that a key stands for.
func (l harness) leased(k *postgres.KeyLeaseStore, req keylease.Request, item uuid.UUID) lending {
	l.t.Helper()
	lease, err := k.Lease(l.ctx(), req)
	if err != nil {
		l.t.Fatal(err)
	}
	c := l.withLock(uuid.New(), item)
	c.loan = lease.LoanID
	return c
}

func TestCheckOut_OnlyTheHolderOfTheLeaseLends(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	k := postgres.NewKeyLeaseStore(l.db)
	tests := map[string]struct {
		change func(req keylease.Request, c *lending) (lease uuid.UUID)
		code   fault.Code // "" lends
	}{
		"the holder": {func(req keylease.Request, _ *lending) uuid.UUID { return req.LeaseID }, ""},
		"an outdated lease without takeover": {func(req keylease.Request, _ *lending) uuid.UUID {
			l.exec(`UPDATE {schema}.check_out_request SET claimed_date = claimed_date - interval '1 hour' WHERE key = $1`,
				req.Key)
			return req.LeaseID
		}, ""},
		"an unknown lease": {func(keylease.Request, *lending) uuid.UUID { return uuid.New() }, fault.KeyLeaseLost},
		"the one of another loan": {
			func(req keylease.Request, c *lending) uuid.UUID { c.loan = uuid.New(); return req.LeaseID }, fault.KeyLeaseLost,
		},
		"one that was taken over": {func(req keylease.Request, _ *lending) uuid.UUID {
			if err := k.Renew(l.ctx(), req.LeaseID, 0); err != nil {
				t.Error(err)
			}
			if _, err := k.Lease(l.ctx(), ask(req.Key)); err != nil {
				t.Error(err)
			}
			return req.LeaseID
		}, fault.KeyLeaseLost},
		"one that is finished": {func(req keylease.Request, _ *lending) uuid.UUID {
			if err := k.Finish(l.ctx(), req.LeaseID, json.RawMessage(`{}`)); err != nil {
				t.Error(err)
			}
			return req.LeaseID
		}, fault.KeyLeaseLost},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			item := l.addItem("Available", "")
			req := ask(name)
			c := l.leased(k, req, item)
			lease := tt.change(req, &c)
			_, err := l.sendUnderLease(c, lease)
			if fault.CodeOf(err) != tt.code {
				t.Errorf("got %v, want %q", err, tt.code)
			}
			if tt.code != "" {
				l.wantUntouched(item)
			}
		})
	}
}

// After a takeover the loan is settled, because a takeover waits for the running commit.
func TestKeyLeaseStore_TakeoverWaitsForACommit(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	k := postgres.NewKeyLeaseStore(l.db)
	item, req := l.addItem("Available", ""), ask("k")
	req.Duration = 0 // any caller may take it
	c := l.leased(k, req, item)
	pause := l.begin(lockItem, item)
	done := make(chan sent, 1)
	go func() {
		outcome, err := l.sendUnderLease(c, req.LeaseID)
		done <- sent{outcome, err}
	}()
	l.waitUntilBlocked(1) // the commit has the lease and waits for the item

	wantQuickest(t, time.Second, func() {
		if _, err := k.Lease(l.ctx(), ask("k")); !fault.Is(err, fault.RequestRunning) {
			t.Errorf("lease during the commit: got %v, want %s", err, fault.RequestRunning)
		}
	})
	if err := pause.Rollback(l.ctx()); err != nil {
		t.Fatal(err)
	}
	l.wantCommitted(done)
	if got, err := k.Lease(l.ctx(), ask("k")); err != nil || got.LoanID != c.loan || !got.Taken {
		t.Errorf("lease after the commit: got %+v, %v, want one for the loan %s", got, err, c.loan)
	}
}
