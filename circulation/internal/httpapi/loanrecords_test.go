package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"checkoutlock/schemas/fault"
)

func (b *backend) Record(_ context.Context, body json.RawMessage) (json.RawMessage, error) {
	b.written = "record " + string(body)
	return json.RawMessage(storedLoan), b.err
}

func (b *backend) Replace(_ context.Context, id string, body json.RawMessage) error {
	if id != loanID {
		return errNone
	}
	b.written = "replace " + string(body)
	return b.err
}

func (b *backend) DeleteLoan(_ context.Context, id string) error {
	if id != loanID {
		return errNone
	}
	b.written = "delete " + id
	return b.err
}

func (b *backend) DeleteLoans(_ context.Context, query string) error {
	if query == "" {
		return fault.New(fault.Malformed, "the query is missing")
	}
	b.written = "delete " + query
	return b.err
}

func (b *backend) AnonymizeLoansOf(_ context.Context, userID string) ([]string, error) {
	b.written = "anonymize " + userID
	return []string{loanID}, b.err
}

func TestLoanRecords_AnonymizeThoseOfAUser(t *testing.T) {
	t.Parallel()
	b := &backend{}
	const want = `{"anonymizedLoans":["` + loanID + `"],"errors":[]}`
	status, _, body := b.send(t, http.MethodPost, "/loan-anonymization/by-user/"+loanID, "")
	if status != http.StatusOK || body != want || b.written != "anonymize "+loanID {
		t.Errorf("got %d %s, wrote %q, want %s", status, body, b.written, want)
	}
	b.written = ""
	status, _, body = b.send(t, http.MethodPost, "/loan-anonymization/by-user/ada", "")
	if status != http.StatusBadRequest || b.written != "" {
		t.Errorf("got %d %s, wrote %q, want 400 for what is no UUID", status, body, b.written)
	}
}

func TestLoanRecords(t *testing.T) {
	t.Parallel()
	const path, one, other = "/circulation/loans", "/circulation/loans/" +
		loanID, "/circulation/loans/11111111-1ab6-4ac2-afdf-8b2df0434378"
	b := &backend{}
	for _, tt := range []struct {
		method, path, body string
		status             int
		want, written      string
	}{
		{method: "POST", path: path, body: `{"a":1}`, status: 201, want: shownLoan, written: `record {"a":1}`},
		{method: "PUT", path: one, body: `{"a":1}`, status: 204, want: "", written: `replace {"a":1}`},
		{method: "DELETE", path: one, body: "", status: 204, want: "", written: "delete " + loanID},
		{method: "DELETE", path: path + "?query=userId%3D%3Du", body: "", status: 204, want: "", written: "delete userId==u"},
		{method: "DELETE", path: path, body: "", status: 400, want: "", written: ""},
		{method: "DELETE", path: path + "?query=a&query=b", body: "", status: 400, want: "", written: ""},
		{method: "PUT", path: other, body: `{}`, status: 404, want: "", written: ""},
		{method: "DELETE", path: other, body: "", status: 404, want: "", written: ""},
		{method: "PUT", path: path + "/none", body: `{}`, status: 400, want: "", written: ""},
		{method: "DELETE", path: path + "/none", body: "", status: 400, want: "", written: ""},
		{method: "POST", path: path, body: `{"userId":"a","userId":"b"}`, status: 400, want: "", written: ""},
		{method: "PUT", path: one, body: `{"userId":"a","userId":"b"}`, status: 400, want: "", written: ""},
	} {
		b.written = ""
		status, header, body := b.send(t, tt.method, tt.path, tt.body)
		if status != tt.status || b.written != tt.written || status < 300 && body != tt.want {
			t.Errorf("%s %s: got %d %s, wrote %q, want %d %s, %q", tt.method, tt.path, status, body, b.written, tt.status,
				tt.want, tt.written)
		}
		if status == http.StatusCreated && header.Get("Location") != one {
			t.Errorf("got Location %s", header.Get("Location"))
		}
	}
	b.err = fault.New(fault.LoanChanged, "changed")
	if status, header, _ := b.send(t, "PUT", one, `{}`); status != http.StatusConflict ||
		header.Get(fault.Header) != string(fault.LoanChanged) {
		t.Errorf("got %d %s, want 409 %s", status, header.Get(fault.Header), fault.LoanChanged)
	}
}
