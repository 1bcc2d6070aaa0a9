package postgres_test

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/claim"
	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas/fault"
)

// sendClaimed commits a check-out with a claim. It may be called from any
// goroutine.
func (l desk) sendClaimed(c lending, claim uuid.UUID) (commit.Outcome, error) {
	parsed, err := commit.ParseCheckOut(append(append(c.body()[:len(c.body())-1], `,"claimId":"`+claim.String()...), `"}`...))
	if err != nil {
		l.t.Error(err)
	}
	_, outcome, err := l.commits.CheckOut(l.ctx(), parsed)
	return outcome, err
}

// claimed is a check-out of the loan that a key stands for.
func (l desk) claimed(k *postgres.ClaimStore, req claim.Request, item uuid.UUID) lending {
	l.t.Helper()
	claim, err := k.Claim(l.ctx(), req)
	if err != nil {
		l.t.Fatal(err)
	}
	c := l.withLock(uuid.New(), item)
	c.loan = claim.LoanID
	return c
}

func TestCheckOut_OnlyTheHolderOfTheClaimLends(t *testing.T) {
	t.Parallel()
	l := newDesk(t)
	k := postgres.NewClaimStore(l.db)
	tests := map[string]struct {
		change func(req claim.Request, c *lending) (claim uuid.UUID)
		code   fault.Code // "" lends
	}{
		"the holder": {func(req claim.Request, _ *lending) uuid.UUID { return req.ClaimID }, ""},
		"an outdated claim without takeover": {func(req claim.Request, _ *lending) uuid.UUID {
			l.exec(`UPDATE {schema}.check_out_request SET claimed_date = claimed_date - interval '1 hour' WHERE key = $1`, req.Key)
			return req.ClaimID
		}, ""},
		"an unknown claim":        {func(claim.Request, *lending) uuid.UUID { return uuid.New() }, fault.ClaimLost},
		"the one of another loan": {func(req claim.Request, c *lending) uuid.UUID { c.loan = uuid.New(); return req.ClaimID }, fault.ClaimLost},
		"one that was taken over": {func(req claim.Request, _ *lending) uuid.UUID {
			if err := k.Renew(l.ctx(), req.ClaimID, 0); err != nil {
				t.Error(err)
			}
			if _, err := k.Claim(l.ctx(), ask(req.Key)); err != nil {
				t.Error(err)
			}
			return req.ClaimID
		}, fault.ClaimLost},
		"one that is finished": {func(req claim.Request, _ *lending) uuid.UUID {
			if err := k.Finish(l.ctx(), req.ClaimID, json.RawMessage(`{}`)); err != nil {
				t.Error(err)
			}
			return req.ClaimID
		}, fault.ClaimLost},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			item := l.addItem("Available", "")
			req := ask(name)
			c := l.claimed(k, req, item)
			claim := tt.change(req, &c)
			_, err := l.sendClaimed(c, claim)
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
func TestClaimStore_TakeoverWaitsForACommit(t *testing.T) {
	t.Parallel()
	l := newDesk(t)
	k := postgres.NewClaimStore(l.db)
	item, req := l.addItem("Available", ""), ask("k")
	req.Lease = 0 // any caller may take it
	c := l.claimed(k, req, item)
	pause := l.begin(lockItem, item)
	done := make(chan sent, 1)
	go func() {
		outcome, err := l.sendClaimed(c, req.ClaimID)
		done <- sent{outcome, err}
	}()
	l.waitUntilBlocked(1) // the commit has the claim and waits for the item

	if _, err := k.Claim(l.ctx(), ask("k")); !fault.Is(err, fault.RequestRunning) {
		t.Errorf("claim during the commit: got %v, want %s", err, fault.RequestRunning)
	}
	if err := pause.Rollback(l.ctx()); err != nil {
		t.Fatal(err)
	}
	l.wantCommitted(done)
	if got, err := k.Claim(l.ctx(), ask("k")); err != nil || got.LoanID != c.loan || !got.Taken {
		t.Errorf("claim after the commit: got %+v, %v, want one for the loan %s", got, err, c.loan)
	}
}
