package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas/fault"
)

func (b *backend) DryRun(_ context.Context, req checkout.DryRunRequest) (checkout.DryRun, error) {
	return checkout.DryRun{
		LoanPolicyID: req.ItemBarcode, OverdueFinePolicyID: req.UserBarcode, LostItemPolicyID: req.ProxyUserBarcode,
		PatronNoticePolicyID: "n",
	}, b.err
}

func (b *backend) End(_ context.Context, req checkin.EndSessionsRequest) error {
	b.ended = req.EndSessions
	return b.err
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	const path = "/circulation/check-out-by-barcode-dry-run"
	status, header, body := (&backend{}).send(t, "POST", path,
		`{"itemBarcode":"i","userBarcode":"u","proxyUserBarcode":"p","servicePointId":7}`)
	const want = `{"loanPolicyId":"i","overdueFinePolicyId":"u","lostItemPolicyId":"p","patronNoticePolicyId":"n"}`
	if status != http.StatusCreated || body != want || header.Get("Location") != "" {
		t.Errorf("got %d %s, Location %q, want 201 %s and none", status, body, header.Get("Location"), want)
	}
	refused := &backend{err: fault.Validation(fault.Detail{Message: "Item is not loanable"})}
	if status, _, body = refused.send(t, "POST", path, `{}`); status != http.StatusUnprocessableEntity ||
		!strings.Contains(body, `{"errors":[{"message":"Item is not loanable"`) {
		t.Errorf("got %d %s, want 422", status, body)
	}
	for body, says := range map[string]string{
		`{`: "not valid JSON", ``: "empty", `{"itemBarcode":1}`: "itemBarcode must be of type string",
	} {
		if status, _, answer := (&backend{}).send(t, "POST", path, body); status != http.StatusBadRequest ||
			!strings.Contains(answer, says) {
			t.Errorf("%s: got %d %s, want 400 saying %q", body, status, answer, says)
		}
	}
}

func TestEndSessions(t *testing.T) {
	t.Parallel()
	const path = "/circulation/end-patron-action-session"
	b := &backend{}
	status, _, body := b.send(t, "POST", path, `{"endSessions":[{"actionType":"Check-out","patronId":"ann"}]}`)
	if status != http.StatusNoContent || body != "" || len(b.ended) != 1 ||
		b.ended[0] != (checkin.EndSession{ActionType: "Check-out", PatronID: "ann"}) {
		t.Errorf("got %d %s after ending %v", status, body, b.ended)
	}
	refused := &backend{err: fault.Validation(fault.Detail{Message: "Invalid"})}
	if status, _, _ = refused.send(t, "POST", path, `{}`); status != http.StatusUnprocessableEntity {
		t.Errorf("got %d, want 422", status)
	}
	if status, _, body = b.send(t, "POST", path, `{"endSessions":{}}`); status != http.StatusBadRequest ||
		!strings.Contains(body, "endSessions must be of type array") {
		t.Errorf("got %d %s, want 400", status, body)
	}
}
