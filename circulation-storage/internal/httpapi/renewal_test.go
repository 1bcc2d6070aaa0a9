package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

func TestCommitRoutes_Renew(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	a := commitAPI{newAPI(t, commitRoutes(t, db)), t, db, id}
	loan, item := uuid.New(), a.addItem()
	a.add(`INSERT INTO S.loan (id, jsonb) VALUES ($1, $2)`, loan,
		fmt.Sprintf(`{"id":%q,"itemId":%q,"userId":%q,"loanDate":"2026-03-01","dueDate":"2026-03-20T00:00:00Z",`+
			`"action":"checkedout","status":{"name":"Open"}}`,
			loan, item, uuid.New()))
	body := fmt.Sprintf(`{"loanId":%q,"itemId":%q,"itemVersion":1,"judgedDueDate":"2026-03-20","judgedRenewalCount":0,`+
		`"dueDate":"2026-04-20","loanPolicyId":%q}`,
		loan, item, uuid.New())

	w := a.do(http.MethodPost, "/loan-storage/renewals", body)
	wantStatus(t, "renewal", w, http.StatusOK)
	if got := w.Body.String(); !strings.Contains(got, `"renewalCount": 1`) && !strings.Contains(got, `"renewalCount":1`) {
		t.Errorf("got %s, want the renewed loan", got)
	}
	w = a.do(http.MethodPost, "/loan-storage/renewals", body)
	wantStatus(t, "the same again", w, http.StatusConflict)
	if got := w.Header().Get(fault.Header); got != string(fault.LoanChanged) {
		t.Errorf("the same again: got %s, want %s", got, fault.LoanChanged)
	}
	for what, tt := range map[string]struct {
		body   string
		status int
	}{
		"no JSON":    {`{`, http.StatusBadRequest},
		"a list":     {`[]`, http.StatusUnprocessableEntity},
		"nothing":    {`{}`, http.StatusUnprocessableEntity},
		"a huge one": {`{"loanId":"` + strings.Repeat("x", bodyLimit) + `"}`, http.StatusRequestEntityTooLarge},
	} {
		wantStatus(t, what, a.do(http.MethodPost, "/loan-storage/renewals", tt.body), tt.status)
	}
	wantStatus(t, "unknown tenant", a.call(http.MethodPost, "/loan-storage/renewals", body, map[string]string{
		okapi.TenantHeader: "unknown",
	}), http.StatusNotFound)
}
