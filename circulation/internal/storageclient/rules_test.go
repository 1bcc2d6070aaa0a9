package storageclient

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

const rulesText = `priority: first-line
m book: l ` + someID + ` r r1 n n1 o o1 i i1
fallback-policy: l ` + anotherID + ` r r1 n n1 o o1 i i1
`

func TestClient_CompilesRulesOnce(t *testing.T) {
	t.Parallel()
	var text atomic.Value
	text.Store(rulesText)
	var reads atomic.Int32
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			var sent schemas.CirculationRules
			if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
				t.Error(err)
			}
			text.Store(sent.RulesAsText)
			answer(w, 204, "", "")
			return
		}
		reads.Add(1)
		raw, err := json.Marshal(schemas.CirculationRules{RulesAsText: text.Load().(string)})
		if err != nil {
			t.Error(err)
		}
		answer(w, 200, "", string(raw))
	})
	ctx := inTenant(t, "diku")
	read := func() *policy.Rules {
		t.Helper()
		rules, err := c.Rules(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return rules
	}
	advance := stopClock(c)
	first := read()
	if read() != first || reads.Load() != 1 {
		t.Errorf("%d reads for two check-outs at once, want 1", reads.Load())
	}
	// The next reading finds the same text.
	advance(time.Hour)
	if read() != first {
		t.Error("the same text was compiled again")
	}
	if reads.Load() != 2 {
		t.Errorf("%d reads after an hour, want 2", reads.Load())
	}
	if err := c.PutRules(ctx, strings.Replace(rulesText, "m book", "m dvd", 1)); err != nil {
		t.Fatal(err)
	}
	if read().Match(policy.KindLoan, policy.Criteria{MaterialType: "dvd"}).PolicyID != someID {
		t.Error("the old rules are still in force")
	}
	if err := c.PutRules(ctx, " "); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Rules(ctx); !errors.Is(err, policy.ErrBlank) {
		t.Errorf("got %v, want %v", err, policy.ErrBlank)
	}
}

func TestClient_KeepsReferenceRecordsByTenant(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		answer(w, 200, "", `{"id":"`+someID+`","name":"`+r.Header.Get(okapi.TenantHeader)+`"}`)
	})
	for _, name := range []string{"diku", "other"} {
		got, err := c.Named(inTenant(t, name), library.MaterialType, someID)
		if err != nil || got.Name != name {
			t.Errorf("got %+v, %v; want %s", got, err, name)
		}
	}
}

func TestClient_ReadsFreshRecordsFromStorage(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		answer(w, 200, "", `{"id":"`+someID+`","count":1,"loans":[],"users":[{}],"items":[{}]}`)
	})
	calls := []func(context.Context) error{
		func(ctx context.Context) error { _, err := c.UserByBarcode(ctx, "1"); return err },
		func(ctx context.Context) error { _, err := c.UserByBarcode(ctx, "1"); return err },
		func(ctx context.Context) error { _, err := c.Item(ctx, someID); return err },
		func(ctx context.Context) error { _, err := c.OpenLoans(ctx, []string{someID}); return err },
		func(ctx context.Context) error { _, err := c.Loan(ctx, someID); return err },
		func(ctx context.Context) error { _, err := c.CommittedLoan(ctx, someID); return err },
	}
	for i, ask := range calls {
		before := asked.Load()
		for range 2 {
			if err := ask(inTenant(t, "diku")); err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		}
		if got := asked.Load() - before; got != 2 {
			t.Errorf("call %d reached storage %d times of 2", i, got)
		}
	}
}
