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

	"checkoutlock/circulation-storage/internal/keylease"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// keys are the Idempotency-Keys of one tenant.
type keys struct {
	*postgres.KeyLeaseStore
	t  *testing.T
	db *postgres.DB
	id okapi.Tenant
}

func newKeys(t *testing.T) keys {
	db, id := pgtest.New(t)
	return keys{postgres.NewKeyLeaseStore(db), t, db, id}
}

func (k keys) ctx() context.Context { return okapi.WithTenant(k.t.Context(), k.id) }

// ask returns a request for a lease by a new caller.
func ask(key string) keylease.Request {
	return keylease.Request{
		Key: key, BodyHash: keylease.Hash{1}, LeaseID: uuid.New(), Duration: time.Minute, Holder: "test",
	}
}

func (k keys) lease(req keylease.Request) keylease.Lease {
	k.t.Helper()
	c, err := k.Lease(k.ctx(), req)
	if err != nil {
		k.t.Fatal(err)
	}
	return c
}

// refused leases in vain.
func (k keys) refused(req keylease.Request, want fault.Code) {
	k.t.Helper()
	if c, err := k.Lease(k.ctx(), req); !fault.Is(err, want) {
		k.t.Errorf("got %+v, %v, want %s", c, err, want)
	}
}

func (k keys) age(key, by string) {
	k.t.Helper()
	statement := strings.ReplaceAll(`UPDATE {schema}.check_out_request SET claimed_date = claimed_date - $2::interval `+
		`WHERE key = $1`,
		"{schema}", pgx.Identifier{postgres.SchemaName(k.id)}.Sanitize())
	if tag, err := k.db.Pool().Exec(k.ctx(), statement, key, by); err != nil || tag.RowsAffected() != 1 {
		k.t.Fatalf("ageing the key %s: %v, %s", key, err, tag)
	}
}

func TestKeyLeaseStore_OneOfTwentyCallersGetsTheLease(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	const callers = 20
	for round := range 5 {
		key := fmt.Sprint("race ", round)
		if round > 2 { // a lease that is over is taken by one as well
			k.lease(ask(key))
			k.age(key, "2 minutes")
		}
		var mu sync.Mutex
		var got []keylease.Lease
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range callers {
			wg.Go(func() {
				<-start
				c, err := k.Lease(k.ctx(), ask(key))
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
			t.Errorf("round %d: leased by %+v, want one", round, got)
		}
	}
}

func TestKeyLeaseStore_RepeatsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	// Order, spaces, escapes and numbers stay as they are.
	const answer = `{"status":201, "body":{"b":1.50,"a":"\u0000 \ud800","a":2}}`
	first := ask("a key, with ünicode")
	c := k.lease(first)
	for range 2 { // the second time is a repeat whose answer got lost
		if err := k.Finish(k.ctx(), first.LeaseID, json.RawMessage(answer)); err != nil {
			t.Fatal(err)
		}
	}
	again := k.lease(ask(first.Key))
	if string(again.Answer) != answer || again.LoanID != c.LoanID {
		t.Errorf("got %+v, want the answer %s for the loan %s", again, answer, c.LoanID)
	}
	if err := k.Finish(k.ctx(), first.LeaseID, json.RawMessage(`{}`)); !fault.Is(err, fault.KeyLeaseLost) {
		t.Errorf("another answer: got %v, want %s", err, fault.KeyLeaseLost)
	}
	if err := k.Renew(k.ctx(), first.LeaseID, 0); !fault.Is(err, fault.KeyLeaseLost) {
		t.Errorf("giving up what is finished: got %v, want %s", err, fault.KeyLeaseLost)
	}
	k.age(first.Key, "10 minutes") // the lease is long over
	if again := k.lease(ask(first.Key)); string(again.Answer) != answer {
		t.Errorf("later: got %+v, want the answer", again)
	}
}

func TestKeyLeaseStore_RefusesAnotherBody(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	first := ask("k")
	k.lease(first)
	other := ask("k")
	other.BodyHash[31] = 9
	k.refused(other, fault.KeyReused) // while it runs
	k.age("k", "10 minutes")
	k.refused(other, fault.KeyReused) // and when the lease is over
	if err := k.Finish(k.ctx(), first.LeaseID, json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	k.refused(other, fault.KeyReused) // and when it is finished
	other.Key = "another"
	k.lease(other)
}

func TestKeyLeaseStore_TakesOverFromAHolderThatIsGone(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	first := ask("k")
	c := k.lease(first)
	if again := k.lease(first); again.LoanID != c.LoanID {
		t.Errorf("the same lease again got the loan %s, want %s", again.LoanID, c.LoanID)
	}
	k.refused(ask("k"), fault.RequestRunning)
	k.age("k", "50 seconds")
	k.refused(ask("k"), fault.RequestRunning)
	if err := k.Renew(k.ctx(), first.LeaseID, time.Minute); err != nil {
		t.Fatal(err)
	}
	k.age("k", "50 seconds")
	k.refused(ask("k"), fault.RequestRunning)
	k.age("k", "10 seconds")

	second := ask("k")
	second.Duration = 2 * time.Minute
	taken := k.lease(second)
	if taken.LoanID != c.LoanID || !taken.Taken {
		t.Errorf("got %+v, want the loan %s, taken", taken, c.LoanID)
	}
	for name, err := range map[string]error{
		"renewing":  k.Renew(k.ctx(), first.LeaseID, time.Minute),
		"finishing": k.Finish(k.ctx(), first.LeaseID, json.RawMessage(`{}`)),
	} {
		if !fault.Is(err, fault.KeyLeaseLost) {
			t.Errorf("%s by who was gone: got %v, want %s", name, err, fault.KeyLeaseLost)
		}
	}
	k.age("k", "90 seconds")
	k.refused(ask("k"), fault.RequestRunning)
	if err := k.Renew(k.ctx(), second.LeaseID, 0); err != nil { // gives it up
		t.Fatal(err)
	}
	if third := k.lease(ask("k")); third.LoanID != c.LoanID {
		t.Errorf("got %+v, want the loan %s", third, c.LoanID)
	}
}

func TestKeyLeaseStore_IgnoresALeaseOfTheFuture(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	k.lease(ask("k"))
	k.age("k", "-1 hour")
	k.lease(ask("k"))
}

func TestKeyLeaseStore_ForgetsAKeyAfterADay(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	for _, key := range []string{"young", "old", "ancient"} {
		first := ask(key)
		k.lease(first)
		if err := k.Finish(k.ctx(), first.LeaseID, json.RawMessage(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	before := k.lease(ask("old"))
	k.age("young", "23 hours 59 minutes")
	k.age("old", "24 hours")
	k.age("ancient", "-25 hours") // of a clock that was set back
	for _, key := range []string{"old", "ancient"} {
		other := ask(key)
		other.BodyHash[0] = 7
		if c := k.lease(other); c.Answer != nil || c.LoanID == before.LoanID {
			t.Errorf("%s: got %+v, want a new lease with another loan", key, c)
		}
		k.lease(other) // a repeat with the new body
		k.age(key, "24 hours")
	}
	for want := range 3 { // one at a time: 1, 1, 0
		want = min(1, 2-want)
		if n, err := k.Sweep(k.ctx(), 1); err != nil || n != want {
			t.Errorf("swept %d, %v, want %d", n, err, want)
		}
	}
	if c := k.lease(ask("young")); c.Answer == nil {
		t.Error("the key that is not a day old was swept")
	}
}

func TestKeyLeaseStore_RefusesTheLeaseIDOfAnotherKey(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	first, second := ask("k"), ask("l")
	k.lease(first)
	second.LeaseID = first.LeaseID
	k.refused(second, fault.Invalid)
}

func TestKeyLeaseStore_RunsUntilTheLeaseIsOver(t *testing.T) {
	t.Parallel()
	k := newKeys(t)
	running := func(want bool) {
		t.Helper()
		if got, err := k.Running(k.ctx(), ask("k")); err != nil || got != want {
			t.Errorf("got running %t, %v, want %t", got, err, want)
		}
	}
	running(false)
	lease := ask("k")
	k.lease(lease)
	running(true)
	k.age("k", "61 seconds")
	running(false)
	k.id = pgtest.Tenant(t) // not installed
	_, err := k.Running(k.ctx(), lease)
	for _, err := range []error{
		err, k.Renew(k.ctx(), lease.LeaseID, time.Minute), k.Finish(k.ctx(), lease.LeaseID, json.RawMessage(`{}`)),
	} {
		if !fault.Is(err, fault.UnknownTenant) {
			t.Errorf("got %v, want %s", err, fault.UnknownTenant)
		}
	}
}
