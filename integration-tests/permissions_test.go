package integration_test

import (
	"net/http"
	"strings"
	"testing"

	"checkoutlock/integration-tests/stack"
)

func TestOverrides_NeedAGatewayOrThePassword(t *testing.T) {
	t.Parallel()
	const limit = 1
	header := http.Header{"X-Okapi-Permissions": {`["` + mayLimit + `"]`}}
	password := func(p string) http.Header {
		r := http.Request{Header: header.Clone()}
		r.SetBasicAuth(clerk, p)
		return r.Header
	}
	tests := []struct {
		name   string
		env    []string
		header http.Header
		status int
	}{
		{name: "the header of a gateway", env: []string{"STAFF_AUTH=gateway"}, header: header, status: http.StatusCreated},
		{
			name: "the header, with password authentication", env: requirePassword(), header: header,
			status: http.StatusUnprocessableEntity,
		},
		{
			name: "a wrong password", env: requirePassword(), header: password("correct horse"), status: http.StatusUnauthorized,
		},
		{name: "the password", env: requirePassword(), header: password(clerkPassword), status: http.StatusCreated},
		{
			name: "the header, without authentication", env: []string{"STAFF_AUTH=none"}, header: header,
			status: http.StatusUnprocessableEntity,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := startPair(t, stack.Options{CirculationEnv: enableLock(tt.env...)}, limit)
			id, patron := p.addPatron(t)
			books := p.addBooks(t, 2)
			readObject(t, p.lendBook(t, 0, books[0], patron), http.StatusCreated)
			desk := p.machines[0]
			desk.Header = tt.header
			body := record{
				"itemBarcode": books[1], "userBarcode": patron, "servicePointId": p.ServicePointID,
				"overrideBlocks": record{"itemLimitBlock": record{}, "comment": "as agreed"},
			}
			want := map[int]string{
				http.StatusCreated: "checkedOutThroughOverride", http.StatusUnauthorized: "The password is wrong",
				http.StatusUnprocessableEntity: "INSUFFICIENT_OVERRIDE_PERMISSIONS",
			}[tt.status]
			dryWant := want
			if tt.status == http.StatusCreated {
				dryWant = "loanPolicyId"
			}
			dry := callEndpoint(t, desk, http.MethodPost, "/circulation/check-out-by-barcode-dry-run", body)
			if dry.Status != tt.status || !strings.Contains(string(dry.Body), dryWant) {
				t.Errorf("the dry run got %d %s, want %d with %s", dry.Status, dry.Body, tt.status, dryWant)
			}
			a := callEndpoint(t, desk, http.MethodPost, checkOutPath, body)
			if a.Status != tt.status || !strings.Contains(string(a.Body), want) {
				t.Errorf("got %d %s, want %d with %s", a.Status, a.Body, tt.status, want)
			}
			wantOpen := limit
			if tt.status == http.StatusCreated {
				wantOpen++
			}
			if n := p.countOpenLoans(t, id); n != wantOpen {
				t.Errorf("the patron has %d loans, want %d", n, wantOpen)
			}
			p.checkNoLocks(t)
		})
	}
}
