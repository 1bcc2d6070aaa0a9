package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/claim"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// keys are the Idempotency-Keys of one tenant.
type keys struct {
	*postgres.ClaimStore
	t  *testing.T
	db *postgres.DB
	id okapi.Tenant
}

func newKeys(t *testing.T) keys {
	db, id := pgtest.New(t)
	return keys{postgres.NewClaimStore(db), t, db, id}
}

func (k keys) ctx() context.Context { return okapi.WithTenant(k.t.Context(), k.id) }

// ask returns a request for a claim by a new caller.
func ask(key string) claim.Request {
	return claim.Request{Key: key, BodyHash: claim.Hash{1}, ClaimID: uuid.New(), Lease: time.Minute, Holder: "test"}
}

func (k keys) claim(req claim.Request) claim.Claim {
	k.t.Helper()
	c, err := k.Claim(k.ctx(), req)
	if err != nil {
		k.t.Fatal(err)
	}
	return c
}

// refused claims in vain.
func (k keys) refused(req claim.Request, want fault.Code) {
	k.t.Helper()
	if c, err := k.Claim(k.ctx(), req); !fault.Is(err, want) {
		k.t.Errorf("got %+v, %v, want %s", c, err, want)
	}
}

func (k keys) age(key, by string) {
	k.t.Helper()
	statement := strings.ReplaceAll(`UPDATE {schema}.check_out_request SET claimed_date = claimed_date - $2::interval WHERE key = $1`,
		"{schema}", pgx.Identifier{postgres.SchemaName(k.id)}.Sanitize())
	if tag, err := k.db.Pool().Exec(k.ctx(), statement, key, by); err != nil || tag.RowsAffected() != 1 {
		k.t.Fatalf("ageing the key %s: %v, %s", key, err, tag)
	}
}

func TestClaimStore_OneOfTwentyCallersGetsTheClaim(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	const callers = 20
	for round := range 5 {
		key := fmt.Sprint("race ", round)
		if round > 2 { // a claim that is over is taken by one as well
			k.claim(ask(key))
			k.age(key, "2 minutes")
		}
		var mu sync.Mutex
		var got []claim.Claim
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range callers {
			wg.Go(func() {
				<-start
				c, err := k.Claim(k.ctx(), ask(key))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					got = append(got, c)
				} else if !fault.Is(err, fault.RequestRunning) {
					t.Errorf("got %v, want %s", err, fault.RequestRunning)
				}
			})
		}
		close(start)
		wg.Wait()
		if len(got) != 1 || got[0].Answer != nil || got[0].Taken != (round > 2) {
			t.Errorf("round %d: claimed by %+v, want one", round, got)
		}
	}
}

func TestClaimStore_RepeatsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	// Order, spaces, escapes and numbers stay as they are.
	const answer = `{"status":201, "body":{"b":1.50,"a":"\u0000 \ud800","a":2}}`
	first := ask("a key, with ünicode")
	c := k.claim(first)
	for range 2 { // the second time is a repeat whose answer got lost
		if err := k.Finish(k.ctx(), first.ClaimID, json.RawMessage(answer)); err != nil {
			t.Fatal(err)
		}
	}
	again := k.claim(ask(first.Key))
	if string(again.Answer) != answer || again.LoanID != c.LoanID {
		t.Errorf("got %+v, want the answer %s for the loan %s", again, answer, c.LoanID)
	}
	if err := k.Finish(k.ctx(), first.ClaimID, json.RawMessage(`{}`)); !fault.Is(err, fault.ClaimLost) {
		t.Errorf("another answer: got %v, want %s", err, fault.ClaimLost)
	}
	if err := k.Renew(k.ctx(), first.ClaimID, 0); !fault.Is(err, fault.ClaimLost) {
		t.Errorf("giving up what is finished: got %v, want %s", err, fault.ClaimLost)
	}
	k.age(first.Key, "10 minutes") // the lease is long over
	if again := k.claim(ask(first.Key)); string(again.Answer) != answer {
		t.Errorf("later: got %+v, want the answer", again)
	}
}

func TestClaimStore_RefusesAnotherBody(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	first := ask("k")
	k.claim(first)
	other := ask("k")
	other.BodyHash[31] = 9
	k.refused(other, fault.KeyReused) // while it runs
	k.age("k", "10 minutes")
	k.refused(other, fault.KeyReused) // and when the claim is over
	if err := k.Finish(k.ctx(), first.ClaimID, json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	k.refused(other, fault.KeyReused) // and when it is finished
	other.Key = "another"
	k.claim(other)
}

func TestClaimStore_TakesOverFromAHolderThatIsGone(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	first := ask("k")
	c := k.claim(first)
	if again := k.claim(first); again.LoanID != c.LoanID {
		t.Errorf("the same claim again got the loan %s, want %s", again.LoanID, c.LoanID)
	}
	k.refused(ask("k"), fault.RequestRunning)
	k.age("k", "50 seconds")
	k.refused(ask("k"), fault.RequestRunning)
	if err := k.Renew(k.ctx(), first.ClaimID, time.Minute); err != nil {
		t.Fatal(err)
	}
	k.age("k", "50 seconds")
	k.refused(ask("k"), fault.RequestRunning)
	k.age("k", "10 seconds")

	second := ask("k")
	taken := k.claim(second)
	if taken.LoanID != c.LoanID || !taken.Taken {
		t.Errorf("got %+v, want the loan %s, taken", taken, c.LoanID)
	}
	for name, err := range map[string]error{
		"renewing":  k.Renew(k.ctx(), first.ClaimID, time.Minute),
		"finishing": k.Finish(k.ctx(), first.ClaimID, json.RawMessage(`{}`)),
	} {
		if !fault.Is(err, fault.ClaimLost) {
			t.Errorf("%s by who was gone: got %v, want %s", name, err, fault.ClaimLost)
		}
	}
	if err := k.Renew(k.ctx(), second.ClaimID, 0); err != nil { // gives it up
		t.Fatal(err)
	}
	if third := k.claim(ask("k")); third.LoanID != c.LoanID {
		t.Errorf("got %+v, want the loan %s", third, c.LoanID)
	}
}

func TestClaimStore_IgnoresAClaimOfTheFuture(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	k.claim(ask("k"))
	k.age("k", "-1 hour")
	k.claim(ask("k"))
}

func TestClaimStore_ForgetsAKeyAfterADay(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	for _, key := range []string{"young", "old", "ancient"} {
		first := ask(key)
		k.claim(first)
		if err := k.Finish(k.ctx(), first.ClaimID, json.RawMessage(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	before := k.claim(ask("old"))
	k.age("young", "23 hours 59 minutes")
	k.age("old", "24 hours")
	k.age("ancient", "-25 hours") // of a clock that was set back
	for _, key := range []string{"old", "ancient"} {
		other := ask(key)
		other.BodyHash[0] = 7
		if c := k.claim(other); c.Answer != nil || c.LoanID == before.LoanID {
			t.Errorf("%s: got %+v, want a new claim with another loan", key, c)
		}
		k.age(key, "24 hours")
	}
	for want := range 3 { // one at a time: 1, 1, 0
		want = min(1, 2-want)
		if n, err := k.Sweep(k.ctx(), 1); err != nil || n != want {
			t.Errorf("swept %d, %v, want %d", n, err, want)
		}
	}
	if c := k.claim(ask("young")); c.Answer == nil {
		t.Error("the key that is not a day old was swept")
	}
}

func TestClaimStore_RefusesTheClaimIDOfAnotherKey(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	first, second := ask("k"), ask("l")
	k.claim(first)
	second.ClaimID = first.ClaimID
	k.refused(second, fault.Invalid)
}
