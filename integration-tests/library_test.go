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

// addRecord stores a record under a new id, which it returns.
func (p *pair) addRecord(t *testing.T, path string, r record) string {
	t.Helper()
	id := uuid.NewString()
	r["id"] = id
	if _, err := p.Storage.Must(t.Context(), http.MethodPost, path, r); err != nil {
		t.Fatal(err)
	}
	return id
}

// setFields sets properties of the record, which it returns. A nil value deletes one.
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

// addUser registers a patron with more properties and returns the barcode.
func (p *pair) addUser(t *testing.T, more ...record) string {
	t.Helper()
	barcode := "u-" + uuid.NewString()
	p.addRecord(t, "/users", setFields(record{
		"barcode": barcode, "active": true, "patronGroup": p.GroupID,
		"personal": record{"lastName": "Reader", "firstName": "Rita"},
	}, more...))
	return barcode
}

// addItem adds an item with more properties and returns id and barcode.
func (p *pair) addItem(t *testing.T, more ...record) (id, barcode string) {
	t.Helper()
	barcode = "i-" + uuid.NewString()
	id = p.addRecord(t, "/item-storage/items", setFields(record{
		"barcode": barcode, "holdingsRecordId": p.HoldingsID, "materialTypeId": p.MaterialTypeID,
		"permanentLoanTypeId": p.LoanTypeID, "status": record{"name": "Available"},
	}, more...))
	return id, barcode
}

// addMaterialType adds a material type and returns its id.
func (p *pair) addMaterialType(t *testing.T, name string) string {
	t.Helper()
	return p.addRecord(t, "/material-types", record{"name": name})
}

// addLoanPolicy adds a policy of rolling loans and returns its id.
func (p *pair) addLoanPolicy(t *testing.T, name string, loansPolicy record, more ...record) string {
	t.Helper()
	return p.addRecord(t, "/loan-policy-storage/loan-policies", setFields(record{
		"name": name, "loanable": true, "renewable": false,
		"loansPolicy": setFields(record{
			"profileId": "Rolling", "period": record{"duration": 4, "intervalId": "Weeks"},
		}, loansPolicy),
	}, more...))
}

// formatPolicies returns the five policies of a line of rules. They must exist.
func formatPolicies(loanPolicyID string) string {
	return "l " + loanPolicyID + " r " + stack.RequestPolicyID + " n " + stack.NoticePolicyID + " o " +
		stack.OverdueFinePolicyID + " i " + stack.LostItemPolicyID
}

// formatRules returns rules of alternating criteria and loan policies. The library's own
// policy is the fallback.
func (p *pair) formatRules(criteriaAndPolicies ...string) string {
	var text strings.Builder
	text.WriteString("priority: t, s, c, b, a, m, g\nfallback-policy: " + formatPolicies(p.PolicyID) + "\n")
	for i := 0; i+1 < len(criteriaAndPolicies); i += 2 {
		text.WriteString(criteriaAndPolicies[i] + ": " + formatPolicies(criteriaAndPolicies[i+1]) + "\n")
	}
	return text.String()
}

// addBranch adds a second service point and returns its id.
func (p *pair) addBranch(t *testing.T) string {
	t.Helper()
	return p.addRecord(t, "/service-points", record{
		"name": "Branch", "code": "branch", "discoveryDisplayName": "Branch", "pickupLocation": true,
		"holdShelfExpiryPeriod": record{"duration": 3, "intervalId": "Weeks"},
	})
}

// readInstanceID returns the id of the title of the library's books.
func (p *pair) readInstanceID(t *testing.T) any {
	t.Helper()
	return p.readRecord(t, "/holdings-storage/holdings/"+p.HoldingsID)["instanceId"]
}

// setItemStatus writes an item's status past circulation.
func (p *pair) setItemStatus(t *testing.T, itemID, status string) {
	t.Helper()
	path := "/item-storage/items/" + itemID
	item := setFields(p.readRecord(t, path), record{"status": record{"name": status}})
	if _, err := p.Storage.Must(t.Context(), http.MethodPut, path, item); err != nil {
		t.Fatal(err)
	}
}

// storeAutomatedBlocks stores all automated blocks of a patron.
func (p *pair) storeAutomatedBlocks(t *testing.T, userID string, blocks ...record) {
	t.Helper()
	path, body := "/automated-patron-blocks/"+userID, record{"automatedPatronBlocks": blocks}
	if _, err := p.Storage.Must(t.Context(), http.MethodPut, path, body); err != nil {
		t.Fatal(err)
	}
}

// storeRules stores rules through circulation instance 0.
func (p *pair) storeRules(t *testing.T, text string) {
	t.Helper()
	if _, err := p.machines[0].Must(t.Context(), http.MethodPut, "/circulation/rules",
		record{"rulesAsText": text}); err != nil {
		t.Fatal(err)
	}
}

// readRecord reads a JSON object from storage.
func (p *pair) readRecord(t *testing.T, path string) record {
	t.Helper()
	var r record
	p.readInto(t, path, &r)
	return r
}

// readObject returns the answer's JSON object. It fails the test if the status differs.
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

// readPart returns the value at a dotted path of the record, nil if there is none.
func readPart(r record, path string) any {
	var v any = r
	for name := range strings.SplitSeq(path, ".") {
		o, _ := v.(record)
		v = o[name]
	}
	return v
}

// checkParts compares parts of a record by their dotted paths.
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

// headline returns the message and the code in brackets.
func (r refusal) headline() string {
	if r.Code == "" {
		return r.Message
	}
	return r.Message + " [" + r.Code + "]"
}

// readRefusals returns the errors of an answer, which must have that status.
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

// joinMessages returns all messages with codes, one a line.
func joinMessages(list []refusal) string {
	lines := make([]string, len(list))
	for i, r := range list {
		lines[i] = r.headline()
	}
	return strings.Join(lines, "\n")
}

// checkAtTheLimit fails the test unless the check-out is refused because of the item limit.
func checkAtTheLimit(t *testing.T, a stack.Answer) {
	t.Helper()
	got := joinMessages(readRefusals(t, a, http.StatusUnprocessableEntity))
	if !strings.Contains(got, "ITEM_LIMIT_MATERIAL_TYPE") {
		t.Errorf("refused with %q, want the item limit", got)
	}
}

// checkLoansAndItemsAgree fails the test unless each item that is checked out has exactly
// one open loan, and no other item has one.
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
		t.Errorf("the items of open loans are\n%q\nand the items checked out are\n%q", lent, out)
	}
	if len(lent) == 0 {
		t.Error("no item is lent, want some")
	}
}
