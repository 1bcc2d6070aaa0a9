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

func TestLoanRecords(t *testing.T) {
	t.Parallel()
	const path, one, other = "/circulation/loans", "/circulation/loans/" + loanID, "/circulation/loans/11111111-1ab6-4ac2-afdf-8b2df0434378"
	b := &backend{}
	for _, tt := range []struct {
		method, path, body string
		status             int
		want, written      string
	}{
		{"POST", path, `{"a":1}`, 201, shownLoan, `record {"a":1}`},
		{"PUT", one, `{"a":1}`, 204, "", `replace {"a":1}`},
		{"DELETE", one, "", 204, "", "delete " + loanID},
		{"DELETE", path + "?query=userId%3D%3Du", "", 204, "", "delete userId==u"},
		{"DELETE", path, "", 400, "", ""},
		{"DELETE", path + "?query=a&query=b", "", 400, "", ""},
		{"PUT", other, `{}`, 404, "", ""},
		{"DELETE", other, "", 404, "", ""},
		{"PUT", path + "/none", `{}`, 400, "", ""},
		{"DELETE", path + "/none", "", 400, "", ""},
		{"POST", path, `{"userId":"a","userId":"b"}`, 400, "", ""},
		{"PUT", one, `{"userId":"a","userId":"b"}`, 400, "", ""},
	} {
		b.written = ""
		status, header, body := b.send(t, tt.method, tt.path, tt.body)
		if status != tt.status || b.written != tt.written || status < 300 && body != tt.want {
			t.Errorf("%s %s: got %d %s, wrote %q, want %d %s, %q", tt.method, tt.path, status, body, b.written, tt.status, tt.want, tt.written)
		}
		if status == http.StatusCreated && header.Get("Location") != one {
			t.Errorf("got Location %s", header.Get("Location"))
		}
	}
	b.err = fault.New(fault.LoanChanged, "changed")
	if status, header, _ := b.send(t, "PUT", one, `{}`); status != http.StatusConflict || header.Get(fault.Header) != string(fault.LoanChanged) {
		t.Errorf("got %d %s, want 409 %s", status, header.Get(fault.Header), fault.LoanChanged)
	}
}
