package httpapi_test

import (
	"context"
	"net/http"
	"testing"

	"checkoutlock/circulation/internal/loans"
	"checkoutlock/schemas/fault"
)

func (b *backend) Change(_ context.Context, id string, wish loans.Wish) error {
	if id != loanID {
		return errNone
	}
	b.wished = wish
	return b.err
}

func TestLoanChanges(t *testing.T) {
	t.Parallel()
	const path, other = "/circulation/loans/" + loanID, "11111111-1ab6-4ac2-afdf-8b2df0434378"
	tests := map[string]struct {
		body string
		want loans.Wish // without its dates
	}{
		"add-info": {
			`{"action":"staffInfoAdded","actionComment":"c","other":1}`,
			loans.AddInfo{Action: "staffInfoAdded", ActionComment: "c"},
		},
		"change-due-date":     {`{}`, loans.ChangeDueDate{}},
		"claim-item-returned": {`{"comment":"c"}`, loans.ClaimReturned{Comment: "c"}},
		"declare-item-lost": {
			`{"comment":"c","servicePointId":"s"}`, loans.DeclareLost{Comment: "c", ServicePointID: "s"},
		},
		"declare-claimed-returned-item-as-missing": {`{"comment":"c"}`, loans.DeclareMissing{Comment: "c"}},
	}
	for action, tt := range tests {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			b := &backend{}
			if status, _, body := b.send(t, "POST", path+"/"+action, tt.body); status != http.StatusNoContent || body != "" ||
				b.wished != tt.want {
				t.Errorf("got %d %s, wished %+v, want %+v", status, body, b.wished, tt.want)
			}
			refused := &backend{err: fault.Validation(fault.Refusal("", "Loan is closed", fault.Param("loanId", loanID)))}
			want := `{"errors":[{"message":"Loan is closed","code":"INVALID","parameters":[{"key":"loanId","value":"` + loanID +
				`"}]}]}`
			if status, _, body := refused.send(t, "POST", path+"/"+action, tt.body); status != http.StatusUnprocessableEntity ||
				body != want {
				t.Errorf("refused: got %d %s, want 422 %s", status, body, want)
			}
			for target, status := range map[string]int{"/circulation/loans/" + other: 404, "/circulation/loans/none": 400} {
				if got, _, body := b.send(t, "POST", target+"/"+action, tt.body); got != status {
					t.Errorf("%s: got %d %s, want %d", target, got, body, status)
				}
			}
			for _, body := range []string{``, `{`, `[]`, `{"comment":5,"action":5,"dueDate":"soon"}`} {
				if got, _, answer := b.send(t, "POST", path+"/"+action, body); got != http.StatusBadRequest {
					t.Errorf("%s: got %d %s, want 400", body, got, answer)
				}
			}
		})
	}
}
