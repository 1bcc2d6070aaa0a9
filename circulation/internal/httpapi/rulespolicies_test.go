package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
)

const (
	bookID    = "1a54b431-2e4f-452d-9cae-9cee66c9a892"
	canLendID = "2b94c631-fca9-4892-a730-03ee529ffe27"
	adultsID  = "503a81cd-6c26-400f-b620-14c08943697c"
	mainID    = "fcd64ce1-6995-48f0-840e-89ffa2288371"
)

// RulesFor completes the criteria.
func (b *backend) RulesFor(ctx context.Context, c policy.Criteria) (*policy.Rules, policy.Criteria, error) {
	if b.err != nil {
		return nil, c, b.err
	}
	return library.Matching{Records: ruleLibrary{text: b.rules}}.RulesFor(ctx, c)
}

// ruleLibrary is a library with rules and one location.
type ruleLibrary struct {
	library.Records
	text string
}

func (l ruleLibrary) Rules(context.Context) (*policy.Rules, error) { return policy.Compile(l.text) }

func (l ruleLibrary) Location(_ context.Context, id string) (library.Location, error) {
	if id != mainID {
		return library.Location{}, errNone
	}
	return library.Location{ID: mainID, LibraryID: "lib", CampusID: "camp", InstitutionID: "inst"}, nil
}

const severalRules = "priority: last-line\n" +
	"fallback-policy: l l0 r r0 n n0 o o0 i i0\n" +
	"c lib: l l1 r r1 n n1 o o1 i i1\n" +
	"m " + bookID + " + g all: l l2 r r2 n n2 o o2 i i2\n" +
	"    t " + canLendID + ": l l3 r r3 n n3 o o3 i i3\n"

const askBook = "?item_type_id=" + bookID + "&loan_type_id=" + canLendID + "&patron_type_id=" + adultsID +
	"&location_id="

func TestRulePolicies_AnswerEachKind(t *testing.T) {
	t.Parallel()
	for kind, key := range map[string]string{
		"loan": "loanPolicyId", "request": "requestPolicyId", "notice": "noticePolicyId",
		"overdue-fine": "overdueFinePolicyId", "lost-item": "lostItemPolicyId",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b, letter := &backend{rules: severalRules}, map[string]string{
				"loan": "l", "request": "r", "notice": "n", "overdue-fine": "o", "lost-item": "i",
			}[kind]
			path := "/circulation/rules/" + kind + "-policy"
			status, _, body := b.send(t, "GET", path+askBook+mainID, "")
			want := `{"appliedRuleConditions":{"materialTypeMatch":true,"loanTypeMatch":true,"patronGroupMatch":true},"` + key +
				`":"` + letter + `3"}`
			if status != http.StatusOK || body != want {
				t.Errorf("got %d %s, want %s", status, body, want)
			}
			match := func(n, line string) string {
				return `{"circulationRuleLine":` + line + `,"` + strings.Replace(key, "overdueFine", "overdue", 1) + `":"` +
					letter + n + `"}`
			}
			want = `{"circulationRuleMatches":[` + strings.Join([]string{
				match("3", "5"), match("2", "4"), match("1", "3"), match("0", "2"),
			}, ",") + `]}`
			if status, _, body = b.send(t, "GET", path+"-all"+askBook+mainID, ""); status != http.StatusOK || body != want {
				t.Errorf("got %d %s, want %s", status, body, want)
			}
		})
	}
}

func TestRulePolicies_AcceptAnUnknownLocation(t *testing.T) {
	t.Parallel()
	b := &backend{rules: severalRules}
	const lonely = "?item_type_id=" + canLendID + "&loan_type_id=" + canLendID + "&patron_type_id=" + adultsID +
		"&location_id=" + canLendID
	_, _, body := b.send(t, "GET", "/circulation/rules/loan-policy"+lonely, "")
	const want = `{"appliedRuleConditions":{"materialTypeMatch":false,"loanTypeMatch":false,"patronGroupMatch":false},` +
		`"loanPolicyId":"l0"}`
	if body != want {
		t.Errorf("got %s, want the fallback %s", body, want)
	}
}

func TestRulePolicies_RequireFourIDs(t *testing.T) {
	t.Parallel()
	const pattern = `^[a-fA-F0-9]{8}-[a-fA-F0-9]{4}-[1-5][a-fA-F0-9]{3}-[89abAB][a-fA-F0-9]{3}-[a-fA-F0-9]{12}$`
	whole := askBook + mainID
	tests := map[string]struct{ query, want string }{
		"nothing": {"", "required query parameter missing: item_type_id"},
		"no material type": {
			strings.Replace(whole, "item_type_id="+bookID, "", 1), "required query parameter missing: item_type_id",
		},
		"no loan type": {
			strings.Replace(whole, "loan_type_id="+canLendID, "", 1), "required query parameter missing: loan_type_id",
		},
		"no patron group": {
			strings.Replace(whole, "patron_type_id="+adultsID, "", 1), "required query parameter missing: patron_type_id",
		},
		"no location": {askBook, "required query parameter missing: location_id"},
		"no id":       {askBook + "main", "invalid uuid format of location_id, expecting " + pattern + " but it is main"},
		"an id of version 0": {
			strings.Replace(whole, "-4892-", "-0892-", 1),
			"invalid uuid format of loan_type_id, expecting " + pattern + " but it is 2b94c631-fca9-0892-a730-03ee529ffe27",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, path := range []string{"/circulation/rules/request-policy", "/circulation/rules/request-policy-all"} {
				status, header, body := (&backend{rules: severalRules}).send(t, "GET", path+tt.query, "")
				if status != http.StatusBadRequest || body != tt.want || header.Get(fault.Header) != string(fault.Malformed) {
					t.Errorf("%s: got %d %s, want 400 with %s", path, status, body, tt.want)
				}
			}
		})
	}
}

func TestRulePolicies_AnswerUnusableRules(t *testing.T) {
	t.Parallel()
	status, _, body := (&backend{rules: " "}).send(t, "GET", "/circulation/rules/loan-policy"+askBook+mainID, "")
	if status != http.StatusInternalServerError || !strings.Contains(body, "Cannot apply blank circulation rules") {
		t.Errorf("got %d %s", status, body)
	}
	status, _, _ = (&backend{
		err: fault.Wrap(errors.New("lost"), fault.Unavailable, "Storage was not reached"),
	}).send(t, "GET", "/circulation/rules/loan-policy"+askBook+mainID, "")
	if status != http.StatusServiceUnavailable {
		t.Errorf("got %d, want 503", status)
	}
}
