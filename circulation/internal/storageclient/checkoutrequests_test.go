package storageclient

import (
	"net/http"
	"testing"

	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

var _ keyed.Storage = (*Client)(nil)

func TestClient_ClaimCheckOut(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status   int
		code     fault.Code
		body     string
		want     fault.Code // "" for none
		answered bool
	}{
		"granted":             {201, "", `{"loanId":"` + someID + `"}`, "", false},
		"finished":            {200, "", `{"loanId":"` + someID + `","taken":true,"answer":{"status":201,"body":{"a":1}}}`, "", true},
		"running":             {409, fault.RequestRunning, "running", fault.RequestRunning, false},
		"another body":        {422, fault.KeyReused, "reused", fault.KeyReused, false},
		"no loan id":          {201, "", `{}`, fault.Internal, false},
		"a storage before it": {404, "", "Not Found", fault.Unavailable, false},
		"a proxy's 409":       {409, "", "", fault.Conflict, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method+" "+r.URL.Path != "POST /check-out-request-storage" {
					t.Errorf("called %s %s", r.Method, r.URL.Path)
				}
				answer(w, tt.status, tt.code, tt.body)
			})
			got, err := c.ClaimCheckOut(inTenant(t, "diku"), schemas.CheckOutRequest{Key: "k"})
			if fault.CodeOf(err) != tt.want || (got.Answer != nil) != tt.answered || (err == nil) != (got.LoanID == someID) {
				t.Errorf("got %+v, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestClient_ChangeClaim(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]fault.Code{204: "", 409: fault.ClaimLost} {
		c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method+" "+r.URL.Path != "PUT /check-out-request-storage/"+someID {
				t.Errorf("called %s %s", r.Method, r.URL.Path)
			}
			answer(w, status, want, "")
		})
		if err := c.ChangeClaim(inTenant(t, "diku"), someID, schemas.CheckOutClaimChange{}); fault.CodeOf(err) != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
