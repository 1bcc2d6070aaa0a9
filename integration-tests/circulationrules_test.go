package integration_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
)

func TestCirculationRules_RefusalsNameThePlace(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 3)
	before := p.readRecord(t, "/circulation-rules-storage")["rulesAsText"]
	good := p.formatRules("m "+p.MaterialTypeID, p.PolicyID)
	for name, tt := range map[string]struct {
		text, want string
		line       float64
	}{
		"a policy is missing":       {strings.Replace(good, " i 0bab56e5-1ab6-4ac2-afdf-8b2df0434378\nm ", "\nm ", 1), "Must have a fallback policy of type i", 2},
		"an unknown loan policy":    {p.formatRules("m "+p.MaterialTypeID, uuid.NewString()), "The policy l does not exist", 3},
		"an unknown request policy": {strings.Replace(good, " r "+stack.RequestPolicyID, " r "+uuid.NewString(), 1), "The policy r does not exist", 2},
		"a tabulator":               {good + "\tm all: " + formatPolicies(p.PolicyID), "Tabulator character is not allowed, use spaces instead.", 4},
		"a letter twice":            {strings.Replace(good, "m, g", "m, m", 1), "Duplicate letter m", 1},
		"no fallback":               {"priority: last-line\nm all: " + formatPolicies(p.PolicyID), "fallback", 2},
		"no rules at all":           {"", "", 1},
		"SQL":                       {"'; DROP TABLE loan; --", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := readObject(t, callEndpoint(t, p.machines[0], http.MethodPut, "/circulation/rules", record{"rulesAsText": tt.text}), http.StatusUnprocessableEntity)
			message, _ := a["message"].(string)
			column, _ := a["column"].(float64)
			if message == "" || !strings.Contains(message, tt.want) || a["line"] != tt.line || column < 1 {
				t.Errorf("got %v, want %q in line %v", a, tt.want, tt.line)
			}
		})
	}
	if after := p.readRecord(t, "/circulation-rules-storage")["rulesAsText"]; after != before {
		t.Errorf("the rules are now %q, were %q", after, before)
	}
}

func TestCirculationRules_ReachAllInstances(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Storages: 2, Circulations: 2, CirculationEnv: enableLock()}, 1000)
	_, patron := p.addPatron(t)
	for i := range p.machines {
		readObject(t, p.lendBook(t, i, p.addBooks(t, 1)[0], patron), http.StatusCreated)
	}
	house := p.addLoanPolicy(t, "In the house", nil, record{"loanable": false, "loansPolicy": nil})
	rules := p.formatRules("m "+p.MaterialTypeID, house)
	p.storeRules(t, rules)
	for _, m := range p.machines {
		if got := readObject(t, callEndpoint(t, m, http.MethodGet, "/circulation/rules", nil), http.StatusOK)["rulesAsText"]; got != rules {
			t.Errorf("the rules are %v", got)
		}
	}
	if a := p.lendBook(t, 0, p.addBooks(t, 1)[0], patron); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("where the rules were changed: got %d %s", a.Status, a.Body)
	}
	waitUntil(t, patience, "the rules are in force elsewhere", func() bool {
		return p.lendBook(t, 1, p.addBooks(t, 1)[0], patron).Status == http.StatusUnprocessableEntity
	})
}

func TestCirculationRules_PolicyLookup(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 3)
	house := p.addLoanPolicy(t, "In the house", nil)
	p.storeRules(t, p.formatRules("m "+p.MaterialTypeID+" + s "+p.LocationID, house))
	query := "?item_type_id=" + p.MaterialTypeID + "&loan_type_id=" + p.LoanTypeID + "&patron_type_id=" + p.GroupID + "&location_id=" + p.LocationID
	checkParts(t, "answer", readObject(t, callEndpoint(t, p.machines[0], http.MethodGet, "/circulation/rules/loan-policy"+query, nil), http.StatusOK), record{
		"loanPolicyId": house, "appliedRuleConditions.materialTypeMatch": true, "appliedRuleConditions.patronGroupMatch": false,
	})
	all := readObject(t, callEndpoint(t, p.machines[0], http.MethodGet, "/circulation/rules/request-policy-all"+query, nil), http.StatusOK)
	if matches, _ := all["circulationRuleMatches"].([]any); len(matches) != 2 {
		t.Errorf("got %v, want the rule and the fallback", all)
	}
}
