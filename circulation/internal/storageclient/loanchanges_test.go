package storageclient

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestClient_ChangeLoan(t *testing.T) {
	t.Parallel()
	sent := schemas.LoanChange{
		ID: anotherID, Action: schemas.ClaimedReturned, Comment: "c", Date: "2026-03-24T10:00:00.000Z",
	}
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		var got schemas.LoanChange
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil || got != sent ||
			r.Method+" "+r.URL.Path != "POST /loan-storage/loans/"+someID+"/changes" {
			t.Errorf("%s %s: got %+v, %v, want %+v", r.Method, r.URL.Path, got, err, sent)
		}
		w.WriteHeader(http.StatusNoContent)
	})
	if err := c.ChangeLoan(inTenant(t, "diku"), someID, sent); err != nil {
		t.Error(err)
	}
	tests := map[string]struct {
		status int
		code   fault.Code
		body   string
		want   fault.Code
		says   string // to clients
	}{
		"no loan": {
			status: 404, code: fault.NotFound, body: "Not found", want: fault.NotFound, says: "Not found",
		},
		"a proxy's 404": {
			status: 404, code: "", body: "", want: fault.Unavailable, says: "Storage was not reached",
		},
		"refused in FOLIO's words": {
			status: 422, code: fault.Invalid, body: `{"errors":[{"message":"Loan is closed","parameters":[]}]}`,
			want: fault.Invalid, says: "Loan is closed",
		},
		"an answer of another status": {status: 200, code: "", body: "", want: fault.Internal, says: "Storage failed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, tt.status, tt.code, tt.body) })
			err := c.ChangeLoan(inTenant(t, "diku"), someID, sent)
			if f := (*fault.Error)(nil); !errors.As(err, &f) || f.Code != tt.want || f.Msg != tt.says {
				t.Errorf("got %v, want %s saying %q", err, tt.want, tt.says)
			}
		})
	}
}
