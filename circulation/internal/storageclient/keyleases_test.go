package storageclient

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"testing"
	"time"

	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

var _ keyed.Storage = (*Client)(nil)

func TestClient_LeaseKey(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status   int
		code     fault.Code
		body     string
		want     fault.Code // "" for none
		answered bool
	}{
		"granted": {status: 201, code: "", body: `{"loanId":"` + someID + `"}`, want: "", answered: false},
		"finished": {
			status: 200, code: "", body: `{"loanId":"` + someID + `","taken":true,"answer":{"status":201,"body":{"a":1}}}`,
			want: "", answered: true,
		},
		"a refusal without errors": {
			status: 200, code: "", body: `{"loanId":"` + someID + `","answer":{"status":422,"body":{}}}`, want: fault.Internal,
			answered: false,
		},
		"running": {
			status: 409, code: fault.RequestRunning, body: "running", want: fault.RequestRunning, answered: false,
		},
		"another body":        {status: 422, code: fault.KeyReused, body: "reused", want: fault.KeyReused, answered: false},
		"no loan id":          {status: 201, code: "", body: `{}`, want: fault.Internal, answered: false},
		"a storage before it": {status: 404, code: "", body: "Not Found", want: fault.Unavailable, answered: false},
		"a proxy's 409":       {status: 409, code: "", body: "", want: fault.Conflict, answered: false},
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
			got, kept, err := c.LeaseKey(inTenant(t, "diku"), schemas.KeyLeaseRequest{Key: "k"})
			if fault.CodeOf(err) != tt.want || (kept != nil) != tt.answered || (err == nil) != (got.LoanID == someID) {
				t.Errorf("got %+v, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestClient_ReadsAKeptAnswer(t *testing.T) {
	t.Parallel()
	const lent = `{"status":201,"location":"/circulation/loans/` + someID + `","body":{"id":"l"}}`
	const refused = `{"status":422,"body":{"errors":[{"message":"<no>","code":"C","parameters":[{"key":"a",` +
		`"value":null}]}]}}`
	for body, want := range map[string]keyed.Answer{
		lent: {LoanID: someID, Status: 201, Loan: []byte(`{"id":"l"}`)},
		refused: {LoanID: someID, Status: 422, Refusal: []fault.Detail{
			{Message: "<no>", Code: "C", Parameters: []fault.Parameter{{Key: "a"}}},
		}},
	} {
		c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
			answer(w, 200, "", `{"loanId":"`+someID+`","answer":`+body+`}`)
		})
		_, kept, err := c.LeaseKey(inTenant(t, "diku"), schemas.KeyLeaseRequest{Key: "k"})
		if err != nil || !reflect.DeepEqual(kept, &want) {
			t.Errorf("%s: got %+v, %v, want %+v", body, kept, err, want)
		}
	}
}

func TestClient_ChangesALease(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(context.Context, *Client) error
		want   string
	}{
		{
			name:   "it is renewed",
			change: func(ctx context.Context, c *Client) error { return c.RenewLease(ctx, someID, 3*time.Second) },
			want:   `{"leaseMs":3000}`,
		},
		{
			name:   "it is given up",
			change: func(ctx context.Context, c *Client) error { return c.RenewLease(ctx, someID, 0) },
			want:   `{"leaseMs":0}`,
		},
		{
			name: "the item was lent",
			change: func(ctx context.Context, c *Client) error {
				return c.AnswerLease(ctx, someID, keyed.Answer{LoanID: anotherID, Loan: []byte(`{"id":"l"}`)})
			},
			want: `{"answer":{"status":201,"location":"/circulation/loans/` + anotherID + `","body":{"id":"l"}}}`,
		},
		{
			name: "the check-out was refused",
			change: func(ctx context.Context, c *Client) error {
				return c.AnswerLease(ctx, someID, keyed.Answer{
					LoanID: anotherID, Refusal: []fault.Detail{{Message: "no", Parameters: []fault.Parameter{}}},
				})
			},
			want: `{"answer":{"status":422,"body":{"errors":[{"message":"no","parameters":[]}]}}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for status, want := range map[int]fault.Code{204: "", 409: fault.KeyLeaseLost} {
				c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if got := r.Method + " " + r.URL.Path; err != nil || got != "PUT /check-out-request-storage/"+someID ||
						string(body) != tt.want {
						t.Errorf("called %s with %s, want %s", got, body, tt.want)
					}
					answer(w, status, want, "")
				})
				if err := tt.change(inTenant(t, "diku"), c); fault.CodeOf(err) != want {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}
