package integration_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
)

// record is a FOLIO record as it is sent and answered.
type record = map[string]any

// addRecord stores a record of its own making and returns its id.
func (p *pair) addRecord(t *testing.T, path string, r record) string {
	t.Helper()
	id := uuid.NewString()
	r["id"] = id
	if _, err := p.Storage.Must(t.Context(), http.MethodPost, path, r); err != nil {
		t.Fatal(err)
	}
	return id
}

// setFields returns the record with more properties; a nil one is taken away.
func setFields(r record, more ...record) record {
	for _, m := range more {
		for name, value := range m {
			if r[name] = value; value == nil {
				delete(r, name)
			}
		}
	}
	return r
}

// addUser registers a patron who differs from others by more, and returns the barcode.
func (p *pair) addUser(t *testing.T, more ...record) string {
	t.Helper()
	barcode := "u-" + uuid.NewString()
	p.addRecord(t, "/users", setFields(record{
		"barcode": barcode, "active": true, "patronGroup": p.GroupID,
		"personal": record{"lastName": "Reader", "firstName": "Rita"},
	}, more...))
	return barcode
}

// addItem adds an item that differs from others by more, and returns id and barcode.
func (p *pair) addItem(t *testing.T, more ...record) (id, barcode string) {
	t.Helper()
	barcode = "i-" + uuid.NewString()
	id = p.addRecord(t, "/item-storage/items", setFields(record{
		"barcode": barcode, "holdingsRecordId": p.HoldingsID, "materialTypeId": p.MaterialTypeID,
		"permanentLoanTypeId": p.LoanTypeID, "status": record{"name": "Available"},
	}, more...))
	return id, barcode
}

// addMaterialType adds one and returns its id.
func (p *pair) addMaterialType(t *testing.T, name string) string {
	t.Helper()
	return p.addRecord(t, "/material-types", record{"name": name})
}

// addLoanPolicy adds a policy of rolling loans and returns its id.
func (p *pair) addLoanPolicy(t *testing.T, name string, loansPolicy record, more ...record) string {
	t.Helper()
	return p.addRecord(t, "/loan-policy-storage/loan-policies", setFields(record{
		"name": name, "loanable": true, "renewable": false,
		"loansPolicy": setFields(record{"profileId": "Rolling", "period": record{"duration": 4, "intervalId": "Weeks"}}, loansPolicy),
	}, more...))
}

// unstoredPolicyID is what the rules name for the kinds of policy that are not
// stored: notices, overdue fines, lost items.
const unstoredPolicyID = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"

// formatPolicies are the five policies that a line of rules names. Only the loan and the
// request policy are looked up in this version.
func formatPolicies(loanPolicyID string) string {
	return "l " + loanPolicyID + " r " + stack.RequestPolicyID + " n " + unstoredPolicyID + " o " + unstoredPolicyID + " i " + unstoredPolicyID
}

// formatRules makes rules out of criteria and loan policies, given in turn; the library's
// own policy is the fallback.
func (p *pair) formatRules(criteriaAndPolicies ...string) string {
	var text strings.Builder
	text.WriteString("priority: t, s, c, b, a, m, g\nfallback-policy: " + formatPolicies(p.PolicyID) + "\n")
	for i := 0; i+1 < len(criteriaAndPolicies); i += 2 {
		text.WriteString(criteriaAndPolicies[i] + ": " + formatPolicies(criteriaAndPolicies[i+1]) + "\n")
	}
	return text.String()
}

// storeRules stores rules through circulation instance 0.
func (p *pair) storeRules(t *testing.T, text string) {
	t.Helper()
	if _, err := p.machines[0].Must(t.Context(), http.MethodPut, "/circulation/rules", record{"rulesAsText": text}); err != nil {
		t.Fatal(err)
	}
}

// readRecord reads a record, or any other JSON object, from storage.
func (p *pair) readRecord(t *testing.T, path string) record {
	t.Helper()
	var r record
	p.readInto(t, path, &r)
	return r
}

// readObject is the answer's JSON object; the test fails when the status is another.
func readObject(t *testing.T, a stack.Answer, status int) record {
	t.Helper()
	if a.Status != status {
		t.Fatalf("got %d %s, want status %d", a.Status, a.Body, status)
	}
	var r record
	if err := a.JSON(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// readPart is what stands in the record at a path with dots, nil when there is nothing.
func readPart(r record, path string) any {
	var v any = r
	for name := range strings.SplitSeq(path, ".") {
		o, _ := v.(record)
		v = o[name]
	}
	return v
}

// checkParts compares parts of a record, by their paths.
func checkParts(t *testing.T, what string, got, want record) {
	t.Helper()
	for path, value := range want {
		if is := readPart(got, path); is != value {
			t.Errorf("%s: %s is %v, want %v", what, path, is, value)
		}
	}
}

// refusal is one entry of FOLIO's errors.
type refusal struct {
	Message, Code string
	Parameters    []struct {
		Key   string
		Value *string
	}
	OverridableBlock struct {
		Name               string
		MissingPermissions []string
	}
}

// readRefusals are the errors of an answer, which must have that status.
func readRefusals(t *testing.T, a stack.Answer, status int) []refusal {
	t.Helper()
	if a.Status != status {
		t.Fatalf("got %d %s, want status %d", a.Status, a.Body, status)
	}
	var list struct{ Errors []refusal }
	if err := a.JSON(&list); err != nil {
		t.Fatal(err)
	}
	if len(list.Errors) == 0 {
		t.Fatalf("got %s, want FOLIO's errors", a.Body)
	}
	return list.Errors
}

// joinMessages is all messages with codes, for comparisons.
func joinMessages(list []refusal) string {
	var lines []string
	for _, r := range list {
		line := r.Message
		if r.Code != "" {
			line += " [" + r.Code + "]"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// checkLoansAndItemsAgree fails the test when an item is checked out without an
// open loan, has one without being checked out, or has several.
func (p *pair) checkLoansAndItemsAgree(t *testing.T) {
	t.Helper()
	var loans struct{ Loans []struct{ ItemID string } }
	p.readInto(t, "/loan-storage/loans?limit=1000&query="+url.QueryEscape(`status.name=="Open"`), &loans)
	var items struct{ Items []struct{ ID string } }
	p.readInto(t, "/item-storage/items?limit=1000&query="+url.QueryEscape(`status.name=="Checked out"`), &items)
	var lent, out []string
	for _, l := range loans.Loans {
		lent = append(lent, l.ItemID)
	}
	for _, i := range items.Items {
		out = append(out, i.ID)
	}
	slices.Sort(lent)
	slices.Sort(out)
	if !slices.Equal(lent, out) {
		t.Errorf("open loans are of the items\n%q\nbut checked out are\n%q", lent, out)
	}
	if len(lent) == 0 {
		t.Error("nothing is lent: the test did not see what it is for")
	}
}
