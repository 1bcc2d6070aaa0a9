package integration_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// The scenarios stand for those of FOLIO's own check-out tests; each one says for
// which. FOLIO scenarios that another test here is already:
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
// Not here: loans of other systems (DCB) and of other tenants (ECS), and due dates
// by opening hours; none of them exists. Notices do not exist either, so that they
// cannot fail a check-out.

// scenario is one check-out of a patron and an item of their own.
type scenario struct {
	name string
	// folio says which of FOLIO's scenarios it stands for.
	folio string
	// prepare prepares what the check-out finds, and changes the usual one.
	prepare func(t *testing.T, s *stage)
	// permissions are the permissions of whoever sends it.
	permissions []string
	// wantErrors are the errors as spell writes them; empty means that it lends.
	wantErrors string
	// failed is the text of a 500.
	failed string
	// wantLoan are parts of the answered loan, and after is what to look at then.
	wantLoan record
	check    func(t *testing.T, s *stage, loan record)
}

// stage is where one scenario takes place, in a library that all of a table share.
type stage struct {
	*pair
	ids                 map[string]string // what lendBy returned
	userID, userBarcode string            // the user is named by the barcode
	itemID, barcode     string
	extra               record   // of the check-out, beside patron, item and service point
	placeholders        []string // for fill

	// What some scenarios have besides: the proxy, the title, and the requests for
	// it, the first and those behind it.
	proxyID, instanceID, holdingsID, requestID string
	followers                                  []string
}

// runScenarios runs the scenarios in a library that lends by the policies of lendBy.
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

func (sc scenario) run(t *testing.T, s *stage) {
	t.Helper()
	t.Logf("stands for FOLIO's %q", sc.folio)
	before := s.readTraces(t)
	a := s.sendCheckOut(t, s.barcode, s.userBarcode, s.extra, sc.permissions...)
	switch {
	case sc.failed != "":
		if a.Status != http.StatusInternalServerError || !strings.Contains(string(a.Body), s.fillPlaceholders(sc.failed)) {
			t.Errorf("got %d %s, want 500 %s", a.Status, a.Body, s.fillPlaceholders(sc.failed))
		}
	case sc.wantErrors != "":
		if got, want := spellRefusals(readRefusals(t, a, http.StatusUnprocessableEntity)), s.fillPlaceholders(sc.wantErrors); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	default:
		loan := readObject(t, a, http.StatusCreated)
		checkParts(t, "loan", loan, record{"userId": s.userID, "itemId": s.itemID, "status.name": "Open", "item.status.name": "Checked out"})
		checkParts(t, "loan", loan, sc.wantLoan)
		if sc.check != nil {
			sc.check(t, s, loan)
		}
		return
	}
	if after := s.readTraces(t); after != before {
		t.Errorf("it was refused and left\n%s\nwhere was\n%s", after, before)
	}
}

// readTraces is what is stored about the scenario's patron and item.
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

// setPlaceholder lets the expected text of a refusal name a value of the stage.
func (s *stage) setPlaceholder(placeholder, value string) {
	s.placeholders = append(s.placeholders, "{"+placeholder+"}", value)
}

// fillPlaceholders puts the stage's values in the place of their names.
func (s *stage) fillPlaceholders(text string) string {
	names := append(slices.Clone(s.placeholders), "{item}", s.barcode, "{patron}", s.userBarcode)
	return strings.NewReplacer(names...).Replace(text)
}

// spellRefusals writes errors one to a line: the message, [CODE], (key=value) of the
// parameters by key, and {block: permissions that are missing}.
func spellRefusals(list []refusal) string {
	lines := make([]string, len(list))
	for i, r := range list {
		line := r.Message
		if r.Code != "" {
			line += " [" + r.Code + "]"
		}
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

// addPoliciesWithRules stores loan policies by their names and makes rules that lend the items of
// each, which have a material type of their own, by it; books stay with the
// library's own policy, "Limited". It returns the ids by name, the material types'
// after "m ".
func (p *pair) addPoliciesWithRules(t *testing.T, policies map[string]record) map[string]string {
	t.Helper()
	ids := map[string]string{"Limited": p.PolicyID}
	rules := []string{"m " + p.MaterialTypeID, p.PolicyID}
	for name, policy := range policies {
		ids[name] = p.addRecord(t, "/loan-policy-storage/loan-policies", setFields(record{"name": name, "loanable": true, "renewable": false}, policy))
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

// usePatron gives the stage a patron who differs from others by more.
func (s *stage) usePatron(t *testing.T, more record) {
	t.Helper()
	s.userBarcode = s.pair.addUser(t, more)
	users, _ := s.readRecord(t, "/users?query=barcode=="+s.userBarcode)["users"].([]any)
	s.userID, _ = users[0].(record)["id"].(string)
}

// rollingPeriod is what a policy that lends for so many intervals says of loans.
func rollingPeriod(duration int, intervalID string) record {
	return record{"profileId": "Rolling", "period": record{"duration": duration, "intervalId": intervalID}}
}
