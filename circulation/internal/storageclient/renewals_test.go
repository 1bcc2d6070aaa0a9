package storageclient

import (
	"encoding/json"
	"net/http"
	"testing"

	"checkoutlock/circulation/internal/renewal"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

var _ renewal.Renewer = (*Client)(nil)

func TestClient_Renew(t *testing.T) {
	t.Parallel()
	sent := schemas.Renewal{
		LoanID: someID, ItemID: anotherID, ItemVersion: 3, JudgedDueDate: "2026-03-12T18:00:00Z", JudgedRenewalCount: 2,
		DueDate: "2026-03-24T10:00:00.000Z", LoanPolicyID: someID,
	}
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		var got schemas.Renewal
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil || got != sent ||
			r.Method+" "+r.URL.Path != "POST /loan-storage/renewals" {
			t.Errorf("%s %s: got %+v, %v, want %+v", r.Method, r.URL.Path, got, err, sent)
		}
		answer(w, 200, "", `{"loan":{"id":"l"}}`)
	})
	if loan, err := c.Renew(inTenant(t, "diku"), sent); err != nil || string(loan) != `{"id":"l"}` {
		t.Errorf("got %s, %v", loan, err)
	}
}

func TestClient_RenewPassesFaultsOn(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status int
		code   fault.Code
		body   string
		want   fault.Code
	}{
		"the loan changed": {
			status: 409, code: fault.LoanChanged, body: "The loan was renewed", want: fault.LoanChanged,
		},
		"the item changed":      {status: 409, code: fault.ItemChanged, body: "", want: fault.ItemChanged},
		"an answer without one": {status: 200, code: "", body: `{}`, want: fault.Internal},
		"storage is down":       {status: 502, code: "", body: "", want: fault.Unavailable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, tt.status, tt.code, tt.body) })
			if _, err := c.Renew(inTenant(t, "diku"), schemas.Renewal{}); !fault.Is(err, tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestClient_OpenLoan(t *testing.T) {
	t.Parallel()
	found := `{"id":"l"}`
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if got, want := r.URL.Query().Get("query"), `status.name=="Open" and itemId=="`+someID+`"`; got != want {
			t.Errorf("asked for %s, want %s", got, want)
		}
		answer(w, 200, "", `{"loans":[`+found+`]}`)
	})
	if loan, err := c.OpenLoan(inTenant(t, "diku"), someID); err != nil || string(loan) != found {
		t.Errorf("got %s, %v", loan, err)
	}
	found = ""
	if _, err := c.OpenLoan(inTenant(t, "diku"), someID); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want %s", err, fault.NotFound)
	}
}

func TestClient_ReadsRenewalPoliciesApartFromLoanPolicies(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, "", `{"id":"`+someID+`","name":"Weeks","loanable":true,"renewable":true}`)
	})
	ctx := inTenant(t, "diku")
	if p, err := c.LoanPolicy(ctx, someID); err != nil || p.Name != "Weeks" {
		t.Errorf("got %+v, %v", p, err)
	}
	if p, err := c.RenewalPolicy(ctx, someID); err != nil || p.Name != "Weeks" {
		t.Errorf("got %+v, %v", p, err)
	}
}
