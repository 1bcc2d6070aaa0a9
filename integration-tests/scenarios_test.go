package integration_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// The scenarios correspond to those of FOLIO's own check-out tests; the field folio names
// them. Other tests cover these scenarios of FOLIO:
//
//	item and user barcode, loan read back       TestCheckOut_AnswersAsFOLIO
//	no loan date                                TestCheckOut_DefaultsToNow
//	missing, on order, in process, withdrawn,   TestCheckOut_LendableStatuses
//	  lost and paid items
//	blanks in item and user barcodes            TestBarcodes_MatchLiterally
//	due date cut off at the patron's expiration TestCheckOut_EndsWithTheMembership
//	unknown or inactive patron, patron as own   TestRefusals_HaveFOLIOsMessages
//	  proxy, unknown or lent item, no service
//	  point, not loanable, several errors
//	the four statuses that forbid a check-out   TestRefusals_OfItemStatuses
//	limits by combination of criteria           TestLimit_Refusal
//	limit ignored without types, other types    TestLimit_CountsByType
//	claimed returned loans are not counted      TestLimit_UncountedLoans
//	no patron group, unknown loan policy        TestRefusals_RecordsWithoutAPolicy
//	unknown notice policy                       all: the rules' notice policies are never stored
//	record of the session cannot be saved:      TestScenarios_FailedWrites
//	  nothing is lent, where FOLIO answers 200
//
// These scenarios have no test, because their features do not exist here: loans of other
// systems (DCB) and of other tenants (ECS), due dates by opening hours, and notices.

// scenario is one check-out of a patron and an item of their own.
type scenario struct {
	name string
	// folio names the scenario of FOLIO.
	folio string
	// prepare stores records and changes the stage; nil if the default is enough.
	prepare func(t *testing.T, s *stage)
	// permissions are those of the member of staff.
	permissions []string
	// wantErrors are the errors as spellRefusals writes them; empty if the item is lent.
	wantErrors string
	// wantLoan are parts of the answered loan; check, if set, checks the rest.
	wantLoan record
	check    func(t *testing.T, s *stage, loan record)
}

// stage holds the records of one scenario. All scenarios of a table share a library.
type stage struct {
	*pair
	ids                 map[string]string // of policies and material types, from addPoliciesWithRules
	userID, userBarcode string            // of the patron
	itemID, barcode     string            // of the item
	extra               record            // more properties of the check-out
	placeholders        []string          // for fillPlaceholders

	// Only some scenarios set these: the proxy, the title, its first request and the
	// requests after that one.
	proxyID, instanceID, holdingsID, requestID string
	followers                                  []string
}

// runScenarios runs each scenario with a new patron and a new item. ids are those that
// addPoliciesWithRules returns.
func (p *pair) runScenarios(t *testing.T, ids map[string]string, scenarios []scenario) {
	t.Helper()
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			s := &stage{pair: p, ids: ids, extra: record{}}
			s.userID, s.userBarcode = p.addPatron(t)
			s.itemID, s.barcode = p.addItem(t)
			if sc.prepare != nil {
				sc.prepare(t, s)
			}
			sc.run(t, s)
		})
	}
}

// run sends the check-out and compares its answer. A refused check-out must change nothing.
func (sc scenario) run(t *testing.T, s *stage) {
	t.Helper()
	t.Logf("corresponds to FOLIO's %q", sc.folio)
	before := s.readTraces(t)
	a := s.sendCheckOut(t, s.barcode, s.userBarcode, s.extra, sc.permissions...)
	if sc.wantErrors == "" {
		loan := readObject(t, a, http.StatusCreated)
		checkParts(t, "loan", loan, record{
			"userId": s.userID, "itemId": s.itemID, "status.name": "Open", "item.status.name": "Checked out",
		})
		checkParts(t, "loan", loan, sc.wantLoan)
		if sc.check != nil {
			sc.check(t, s, loan)
		}
		return
	}
	if got, want := spellRefusals(readRefusals(t, a,
		http.StatusUnprocessableEntity)), s.fillPlaceholders(sc.wantErrors); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if after := s.readTraces(t); after != before {
		t.Errorf("the refused check-out left\n%s\nwant\n%s", after, before)
	}
}

// readTraces returns all that is stored about the scenario's patron and item.
func (s *stage) readTraces(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, path := range []string{
		"/loan-storage/loans?query=userId==" + s.userID + "%20or%20itemId==" + s.itemID,
		"/request-storage/requests?query=requesterId==" + s.userID + "%20or%20itemId==" + s.itemID,
		"/patron-action-session-storage/patron-action-sessions?query=patronId==" + s.userID,
		"/check-out-lock-storage?userId=" + s.userID,
		"/item-storage/items/" + s.itemID,
	} {
		fmt.Fprintln(&all, s.readRecord(t, path))
	}
	fmt.Fprint(&all, s.countEvents(t, s.itemID))
	return all.String()
}

// setPlaceholder makes fillPlaceholders replace {placeholder} by the value.
func (s *stage) setPlaceholder(placeholder, value string) {
	s.placeholders = append(s.placeholders, "{"+placeholder+"}", value)
}

// fillPlaceholders replaces the names in braces by the stage's values.
func (s *stage) fillPlaceholders(text string) string {
	names := append(slices.Clone(s.placeholders), "{item}", s.barcode, "{patron}", s.userBarcode)
	return strings.NewReplacer(names...).Replace(text)
}

// spellRefusals writes one error a line: the message, [CODE], (key=value) of the parameters
// sorted by key, and {block: missing permissions}.
func spellRefusals(list []refusal) string {
	lines := make([]string, len(list))
	for i, r := range list {
		line := r.headline()
		values := map[string]string{}
		for _, parameter := range r.Parameters {
			values[parameter.Key] = "null"
			if parameter.Value != nil {
				values[parameter.Key] = *parameter.Value
			}
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			line += " (" + key + "=" + values[key] + ")"
		}
		if block := r.OverridableBlock; block.Name != "" {
			line += " {" + block.Name + ": " + strings.Join(block.MissingPermissions, ", ") + "}"
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

// addPoliciesWithRules stores loan policies by name, each with a material type and a rule for
// it. Books keep the library's policy "Limited". It returns the ids by policy name, and those
// of material types by "m " and the policy name.
func (p *pair) addPoliciesWithRules(t *testing.T, policies map[string]record) map[string]string {
	t.Helper()
	ids := map[string]string{"Limited": p.PolicyID}
	rules := []string{"m " + p.MaterialTypeID, p.PolicyID}
	for name, policy := range policies {
		ids[name] = p.addRecord(t, "/loan-policy-storage/loan-policies", setFields(record{
			"name": name, "loanable": true, "renewable": false,
		}, policy))
		ids["m "+name] = p.addMaterialType(t, name)
		rules = append(rules, "m "+ids["m "+name], ids[name])
	}
	p.storeRules(t, p.formatRules(rules...))
	return ids
}

// useItemOf gives the stage an item that is lent by the policy of that name.
func (s *stage) useItemOf(t *testing.T, policy string, more ...record) {
	t.Helper()
	s.itemID, s.barcode = s.addItem(t, append([]record{{"materialTypeId": s.ids["m "+policy]}}, more...)...)
	s.setPlaceholder("policy", s.ids[policy])
}

// usePatron gives the stage a patron with more properties.
func (s *stage) usePatron(t *testing.T, more record) {
	t.Helper()
	s.userBarcode = s.addUser(t, more)
	users, _ := s.readRecord(t, "/users?query=barcode=="+s.userBarcode)["users"].([]any)
	s.userID, _ = users[0].(record)["id"].(string)
}

// rollingPeriod returns the loansPolicy of loans that last so many intervals.
func rollingPeriod(duration int, intervalID string) record {
	return record{"profileId": "Rolling", "period": record{"duration": duration, "intervalId": intervalID}}
}
