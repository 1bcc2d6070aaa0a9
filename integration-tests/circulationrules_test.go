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
	p := joinSharedPair(t, 3)
	before := p.readRecord(t, "/circulation-rules-storage")["rulesAsText"]
	good := p.formatRules("m "+p.MaterialTypeID, p.PolicyID)
	for name, tt := range map[string]struct {
		text, want string
		line       float64
	}{
		"a policy is missing": {
			text: strings.Replace(good, " i "+stack.LostItemPolicyID+"\nm ", "\nm ", 1),
			want: "Must have a fallback policy of type i", line: 2,
		},
		"an unknown loan policy": {
			text: p.formatRules("m "+p.MaterialTypeID, uuid.NewString()), want: "The policy l does not exist", line: 3,
		},
		"an unknown request policy": {
			text: strings.Replace(good, " r "+stack.RequestPolicyID, " r "+uuid.NewString(), 1),
			want: "The policy r does not exist", line: 2,
		},
		"an unknown notice policy": {
			text: strings.Replace(good, " n "+stack.NoticePolicyID, " n "+uuid.NewString(), 1),
			want: "The policy n does not exist", line: 2,
		},
		"an unknown overdue fine policy": {
			text: strings.Replace(good, " o "+stack.OverdueFinePolicyID, " o "+uuid.NewString(), 1),
			want: "The policy o does not exist", line: 2,
		},
		"an unknown lost item policy": {
			text: strings.Replace(good, " i "+stack.LostItemPolicyID, " i "+stack.OverdueFinePolicyID, 1),
			want: "The policy i does not exist", line: 2,
		},
		"a line without policies": {
			text: good + "g " + p.GroupID + "\n    m " + p.MaterialTypeID + "\n", want: "Policy missing", line: 5,
		},
		"a tabulator": {
			text: good + "\tm all: " + formatPolicies(p.PolicyID),
			want: "Tabulator character is not allowed, use spaces instead.", line: 4,
		},
		"a letter twice":  {text: strings.Replace(good, "m, g", "m, m", 1), want: "Duplicate letter m", line: 1},
		"no fallback":     {text: "priority: last-line\nm all: " + formatPolicies(p.PolicyID), want: "fallback", line: 2},
		"no rules at all": {line: 1},
		"SQL":             {text: "'; DROP TABLE loan; --", line: 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := readObject(t, callEndpoint(t, p.machines[0], http.MethodPut, "/circulation/rules",
				record{"rulesAsText": tt.text}), http.StatusUnprocessableEntity)
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

func TestCirculationRules_WarnOfLimitsThatCountNothing(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	put := func(rules string) []string {
		t.Helper()
		a := callEndpoint(t, p.machines[0], http.MethodPut, "/circulation/rules", record{"rulesAsText": rules})
		if a.Status != http.StatusNoContent {
			t.Fatalf("got %d %s", a.Status, a.Body)
		}
		return a.Header.Values("X-Rules-Warning")
	}
	free := p.addLoanPolicy(t, "Free", nil)
	rules := strings.Replace(p.formatRules("m "+p.MaterialTypeID, p.PolicyID, "s "+p.LocationID, free), "l "+p.PolicyID,
		"l "+free, 1)
	if got := put(rules); got != nil {
		t.Errorf("rules whose limit counts have the warnings %q", got)
	}
	got := put(rules + "g " + p.GroupID + ": " + formatPolicies(p.PolicyID) + "\n")
	want := "line 5: the item limit 3 of the loan policy " + p.PolicyID +
		" counts nothing, because the rule names neither a material type nor a loan type"
	if len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got = put(rules + strings.Repeat("g "+p.GroupID+": "+formatPolicies(p.PolicyID)+"\n", 25))
	if len(got) != 21 || got[20] != "5 more rules like these" {
		t.Errorf("got %q, want 20 warnings and the number of the others", got)
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
		if got := readObject(t, callEndpoint(t, m, http.MethodGet, "/circulation/rules", nil),
			http.StatusOK)["rulesAsText"]; got != rules {
			t.Errorf("the rules are %v", got)
		}
	}
	if a := p.lendBook(t, 0, p.addBooks(t, 1)[0], patron); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("instance 0: got %d %s", a.Status, a.Body)
	}
	waitUntil(t, patience, "the rules are in force on instance 1", func() bool {
		return p.lendBook(t, 1, p.addBooks(t, 1)[0], patron).Status == http.StatusUnprocessableEntity
	})
}

// The rules editor shows the date and the user of the last change.
func TestCirculationRules_NameTheUserOfTheLastChange(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	editor := p.machines[0]
	user := uuid.NewString()
	editor.Header = p.signIn(user)
	if a := callEndpoint(t, editor, http.MethodPut, "/circulation/rules",
		record{"rulesAsText": p.formatRules()}); a.Status != http.StatusNoContent {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	got, _ := readObject(t, callEndpoint(t, editor, http.MethodGet, "/circulation/rules", nil),
		http.StatusOK)["metadata"].(record)
	if got["updatedByUserId"] != user || got["updatedDate"] == nil || got["createdDate"] == nil {
		t.Errorf("got the metadata %v, want the user %s and dates", got, user)
	}
}

func TestCirculationRules_PolicyLookup(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	house := p.addLoanPolicy(t, "In the house", nil)
	p.storeRules(t, p.formatRules("m "+p.MaterialTypeID+" + s "+p.LocationID, house))
	query := "?item_type_id=" + p.MaterialTypeID + "&loan_type_id=" + p.LoanTypeID + "&patron_type_id=" + p.GroupID +
		"&location_id=" + p.LocationID
	checkParts(t, "answer", readObject(t,
		callEndpoint(t, p.machines[0], http.MethodGet, "/circulation/rules/loan-policy"+query, nil), http.StatusOK), record{
		"loanPolicyId": house, "appliedRuleConditions.materialTypeMatch": true,
		"appliedRuleConditions.patronGroupMatch": false,
	})
	all := readObject(t, callEndpoint(t, p.machines[0], http.MethodGet, "/circulation/rules/request-policy-all"+query,
		nil), http.StatusOK)
	if matches, _ := all["circulationRuleMatches"].([]any); len(matches) != 2 {
		t.Errorf("got %v, want the rule and the fallback", all)
	}
}

// Rules that were written straight to storage stay in force, and the staff page names their fault.
func TestCirculationRules_WrittenStraightToStorage(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 3)
	_, patron := p.addPatron(t)
	rules := p.formatRules() + "g " + p.GroupID + "\n    m " + p.MaterialTypeID + "\n"
	if a := callEndpoint(t, p.Storage, http.MethodPut, "/circulation-rules-storage",
		record{"rulesAsText": rules}); a.Status != http.StatusNoContent {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	waitUntil(t, patience, "the rules are in force", func() bool {
		return p.lendBook(t, 0, p.addBooks(t, 1)[0], patron).Status == http.StatusCreated
	})
	a := callEndpoint(t, p.machines[0], http.MethodGet, "/staff/"+p.Storage.Tenant+"/rules", nil)
	if a.Status != http.StatusOK || !strings.Contains(string(a.Body), "Policy missing") {
		t.Errorf("got %d %.3000s, want the line without policies", a.Status, a.Body)
	}
}
