package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/renewal"
	"checkoutlock/schemas/fault"
)

func (b *backend) Renew(_ context.Context, req renewal.Request) (json.RawMessage, error) {
	b.renewal = req
	return json.RawMessage(storedLoan), b.err
}

func (b *backend) RenewByID(_ context.Context, req renewal.ByIDRequest) (json.RawMessage, error) {
	b.renewal = renewal.Request{ItemBarcode: req.ItemID, UserBarcode: req.UserID, ServicePointID: req.ServicePointID}
	return json.RawMessage(storedLoan), b.err
}

func TestRenewByID_AnswersTheLoan(t *testing.T) {
	t.Parallel()
	b := &backend{}
	status, _, body := b.send(t, "POST", "/circulation/renew-by-id", `{"itemId":"i","userId":"u","servicePointId":"s"}`)
	if status != http.StatusOK || body != shownLoan || b.renewal.ItemBarcode != "i" || b.renewal.UserBarcode != "u" ||
		b.renewal.ServicePointID != "s" {
		t.Errorf("got %d %s, asked for %+v", status, body, b.renewal)
	}
}

func TestRenew_AnswersTheLoan(t *testing.T) {
	t.Parallel()
	const path, request = "/circulation/renew-by-barcode", `{"itemBarcode":"036","userBarcode":"569",` +
		`"servicePointId":"s","other":1}`
	b := &backend{}
	if status, _, body := b.send(t, "POST", path, request); status != http.StatusOK || body != shownLoan {
		t.Errorf("got %d\n%s\nwant 200\n%s", status, body, shownLoan)
	}
	if b.renewal.ItemBarcode != "036" || b.renewal.UserBarcode != "569" || b.renewal.ServicePointID != "s" {
		t.Errorf("asked for %+v", b.renewal)
	}

	b = &backend{noUsers: fault.New(fault.Unavailable, "down")} // after the loan was renewed
	if status, _, body := b.send(t, "POST", path, request); status != http.StatusOK || !strings.Contains(body, loanID) {
		t.Errorf("got %d %s, want the loan with less around it", status, body)
	}

	for code, want := range map[fault.Code]int{
		fault.LoanChanged: http.StatusConflict, fault.Unavailable: http.StatusServiceUnavailable,
	} {
		status, header, _ := (&backend{err: fault.New(code, "x")}).send(t, "POST", path, request)
		if status != want || header.Get(fault.Header) != string(code) {
			t.Errorf("%s: got %d %s, want %d", code, status, header.Get(fault.Header), want)
		}
	}
	for body, says := range map[string]string{
		`{`: "not valid JSON", ``: "empty", `{"userBarcode":[]}`: "userBarcode must be of type string",
	} {
		if status, _, answer := (&backend{}).send(t, "POST", path, body); status != http.StatusBadRequest ||
			!strings.Contains(answer, says) {
			t.Errorf("%s: got %d %s, want 400 saying %q", body, status, answer, says)
		}
	}
}
