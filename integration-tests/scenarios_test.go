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
//	item and user barcode, loan read back       TestACheckOutIsAnsweredAsFOLIODoesWithAndWithoutTheLock
//	no loan date                                TestALoanIsDatedNowWhenTheMachineGivesNoDate
//	missing, on order, in process, withdrawn,   TestItemsOfEveryLendableStatusAreLent
//	  lost and paid items
//	blanks in item and user barcodes            TestBarcodesWithBlanksQuotesAndWildcardsAreFoundAsTheyAre
//	due date cut off at the patron's expiration TestALoanEndsNoLaterThanThePatronsMembership
//	unknown or inactive patron, patron as own   TestRefusalsHaveFOLIOsMessages
//	  proxy, unknown or lent item, no service
//	  point, not loanable, several errors
//	the four statuses that forbid a check-out   TestItemsThatAreLostOrNoCopiesAreNotLent
//	limits by combination of criteria           TestTheLimitIsRefusedWithItsNumberAndTheBlockThatStaffMayLift
//	limit ignored without types, other types    TestALimitByTypeLeavesOtherTypesAndOtherRulesAlone
//	claimed returned loans are not counted      TestItemsClaimedReturnedAndLoansClosedDoNotCount
//	no patron group, unknown loan policy        TestStoredRecordsThatNoRuleFitsAreAFaultWithItsCause
//	unknown notice policy                       all: the rules' notice policies are never stored
//	record of the session cannot be saved:      TestWhicheverRecordCannotBeWrittenNothingIsLent
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
	// given prepares what the check-out finds, and changes the usual one.
	given func(t *testing.T, s *stage)
	// may are the permissions of whoever sends it.
	may []string
	// refused are the errors as spell writes them; empty means that it lends.
	refused string
	// failed is the text of a 500.
	failed string
	// loan are parts of the answered loan, and after is what to look at then.
	loan  record
	after func(t *testing.T, s *stage, loan record)
}

// stage is where one scenario takes place, in a library that all of a table share.
type stage struct {
	*pair
	ids             map[string]string // what lendBy returned
	userID, user    string            // the user is named by the barcode
	itemID, barcode string
	more            record   // of the check-out, beside patron, item and service point
	names           []string // for fill

	// What some scenarios have besides: the proxy, the title, and the requests for
	// it, the first and those behind it.
	proxyID, instanceID, holdingsID, wanted string
	next                                    []string
}

// play runs the scenarios in a library that lends by the policies of lendBy.
func (p *pair) play(t *testing.T, ids map[string]string, scenarios []scenario) {
	t.Helper()
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			s := &stage{pair: p, ids: ids, more: record{}}
			s.userID, s.user = p.patron(t)
			s.itemID, s.barcode = p.item(t)
			if sc.given != nil {
				sc.given(t, s)
			}
			sc.run(t, s)
		})
	}
}

func (sc scenario) run(t *testing.T, s *stage) {
	t.Helper()
	t.Logf("stands for FOLIO's %q", sc.folio)
	before := s.left(t)
	a := s.asks(t, s.barcode, s.user, s.more, sc.may...)
	switch {
	case sc.failed != "":
		if a.Status != http.StatusInternalServerError || !strings.Contains(string(a.Body), s.fill(sc.failed)) {
			t.Errorf("got %d %s, want 500 %s", a.Status, a.Body, s.fill(sc.failed))
		}
	case sc.refused != "":
		if got, want := spell(refusals(t, a, http.StatusUnprocessableEntity)), s.fill(sc.refused); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	default:
		loan := object(t, a, http.StatusCreated)
		checkParts(t, "loan", loan, record{"userId": s.userID, "itemId": s.itemID, "status.name": "Open", "item.status.name": "Checked out"})
		checkParts(t, "loan", loan, sc.loan)
		if sc.after != nil {
			sc.after(t, s, loan)
		}
		return
	}
	if after := s.left(t); after != before {
		t.Errorf("it was refused and left\n%s\nwhere was\n%s", after, before)
	}
}

// left is what is stored about the scenario's patron and item.
func (s *stage) left(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, path := range []string{
		"/loan-storage/loans?query=userId==" + s.userID + "%20or%20itemId==" + s.itemID,
		"/request-storage/requests?query=requesterId==" + s.userID + "%20or%20itemId==" + s.itemID,
		"/patron-action-session-storage/patron-action-sessions?query=patronId==" + s.userID,
		"/check-out-lock-storage?userId=" + s.userID,
		"/item-storage/items/" + s.itemID,
	} {
		fmt.Fprintln(&all, s.stored(t, path))
	}
	fmt.Fprint(&all, s.events(t, s.itemID))
	return all.String()
}

// name lets the expected text of a refusal name a value of the stage.
func (s *stage) name(placeholder, value string) {
	s.names = append(s.names, "{"+placeholder+"}", value)
}

// fill puts the stage's values in the place of their names.
func (s *stage) fill(text string) string {
	names := append(slices.Clone(s.names), "{item}", s.barcode, "{patron}", s.user)
	return strings.NewReplacer(names...).Replace(text)
}

// spell writes errors one to a line: the message, [CODE], (key=value) of the
// parameters by key, and {block: permissions that are missing}.
func spell(list []refusal) string {
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

// lendBy stores loan policies by their names and makes rules that lend the items of
// each, which have a material type of their own, by it; books stay with the
// library's own policy, "Limited". It returns the ids by name, the material types'
// after "m ".
func (p *pair) lendBy(t *testing.T, policies map[string]record) map[string]string {
	t.Helper()
	ids := map[string]string{"Limited": p.PolicyID}
	rules := []string{"m " + p.MaterialTypeID, p.PolicyID}
	for name, policy := range policies {
		ids[name] = p.add(t, "/loan-policy-storage/loan-policies", with(record{"name": name, "loanable": true, "renewable": false}, policy))
		ids["m "+name] = p.materialType(t, name)
		rules = append(rules, "m "+ids["m "+name], ids[name])
	}
	p.setRules(t, p.rules(rules...))
	return ids
}

// of gives the stage an item that is lent by the policy of that name.
func (s *stage) of(t *testing.T, policy string, more ...record) {
	t.Helper()
	s.itemID, s.barcode = s.item(t, append([]record{{"materialTypeId": s.ids["m "+policy]}}, more...)...)
	s.name("policy", s.ids[policy])
}

// by gives the stage a patron who differs from others by more.
func (s *stage) by(t *testing.T, more record) {
	t.Helper()
	s.user = s.pair.user(t, more)
	users, _ := s.stored(t, "/users?query=barcode=="+s.user)["users"].([]any)
	s.userID, _ = users[0].(record)["id"].(string)
}

// rolling is what a policy that lends for so many intervals says of loans.
func rolling(duration int, intervalID string) record {
	return record{"profileId": "Rolling", "period": record{"duration": duration, "intervalId": intervalID}}
}
