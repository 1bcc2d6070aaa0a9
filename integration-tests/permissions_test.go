package integration_test

import (
	"net/http"
	"strings"
	"testing"

	"checkoutlock/integration-tests/stack"
)

func TestOverridesNeedAGatewayOrThePassword(t *testing.T) {
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
		{"the header behind a gateway", []string{"STAFF_AUTH=gateway"}, header, http.StatusCreated},
		{"the header, where a password is asked for", signedIn(), header, http.StatusUnprocessableEntity},
		{"a wrong password", signedIn(), password("correct horse"), http.StatusUnauthorized},
		{"the password", signedIn(), password(clerkPassword), http.StatusCreated},
		{"the header, where nothing is asked for", []string{"STAFF_AUTH=none"}, header, http.StatusUnprocessableEntity},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, stack.Options{CirculationEnv: on(tt.env...)}, limit)
			id, patron := p.patron(t)
			books := p.books(t, 2)
			object(t, p.lend(t, 0, books[0], patron), http.StatusCreated)
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
			dry := do(t, desk, http.MethodPost, "/circulation/check-out-by-barcode-dry-run", body)
			if dry.Status != tt.status || !strings.Contains(string(dry.Body), dryWant) {
				t.Errorf("the dry run got %d %s, want %d with %s", dry.Status, dry.Body, tt.status, dryWant)
			}
			a := do(t, desk, http.MethodPost, "/circulation/check-out-by-barcode", body)
			if a.Status != tt.status || !strings.Contains(string(a.Body), want) {
				t.Errorf("got %d %s, want %d with %s", a.Status, a.Body, tt.status, want)
			}
			wantOpen := limit
			if tt.status == http.StatusCreated {
				wantOpen++
			}
			if n := p.open(t, id); n != wantOpen {
				t.Errorf("the patron has %d loans, want %d", n, wantOpen)
			}
			p.noLocksLeft(t)
		})
	}
}
