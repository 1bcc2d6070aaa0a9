package policy_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/policy"
)

func parsePolicy(t *testing.T, raw string) policy.LoanPolicy {
	t.Helper()
	p, err := policy.ParseLoanPolicy([]byte(raw))
	if err != nil {
		t.Fatalf("ParseLoanPolicy(%s): %v", raw, err)
	}
	return p
}

func TestParseLoanPolicy(t *testing.T) {
	t.Parallel()
	p := parsePolicy(t, `{
		"id": "43198de5-f56a-4a53-a0bd-5a324418967a", "name": "One hour", "description": "unused", "loanable": true,
		"loansPolicy": {
			"profileId": "Rolling", "period": {"duration": 1, "intervalId": "Hours"}, "itemLimit": 5,
			"closedLibraryDueDateManagementId": "CURRENT_DUE_DATE_TIME", "gracePeriod": {"duration": 7, "intervalId": "Days"}
		},
		"renewable": true, "renewalsPolicy": {"unlimited": false, "numberAllowed": 3.0}, "somethingNew": [1]
	}`)
	if p.ID != "43198de5-f56a-4a53-a0bd-5a324418967a" || p.Name != "One hour" || !p.Loanable || p.ItemLimit != 5 {
		t.Errorf("got %+v", p)
	}
}

func TestParseLoanPolicy_ItemLimit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		loansPolicy string
		want        int
		wantErr     string
	}{
		"absent":                {loansPolicy: `{}`, want: 0},
		"null":                  {loansPolicy: `{"itemLimit":null}`, want: 0},
		"no loans policy":       {loansPolicy: `null`, want: 0},
		"smallest":              {loansPolicy: `{"itemLimit":1}`, want: 1},
		"largest":               {loansPolicy: `{"itemLimit":9999}`, want: 9999},
		"written with fraction": {loansPolicy: `{"itemLimit":3.0}`, want: 3},
		"zero":                  {loansPolicy: `{"itemLimit":0}`, want: 0, wantErr: "itemLimit is 0, allowed are 1 to 9999"},
		"negative": {
			loansPolicy: `{"itemLimit":-1}`, want: 0, wantErr: "itemLimit is -1, allowed are 1 to 9999",
		},
		"too large": {loansPolicy: `{"itemLimit":10000}`, want: 0, wantErr: "itemLimit is 10000, allowed are 1 to 9999"},
		"huge":      {loansPolicy: `{"itemLimit":1e300}`, want: 0, wantErr: "not a whole number of 32 bits: 1e300"},
		"not whole": {loansPolicy: `{"itemLimit":1.5}`, want: 0, wantErr: "not a whole number of 32 bits: 1.5"},
		"text":      {loansPolicy: `{"itemLimit":"5"}`, want: 0, wantErr: "cannot unmarshal string"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := policy.ParseLoanPolicy([]byte(`{"id":"p1","loanable":true,"loansPolicy":` + tt.loansPolicy + `}`))
			if (err != nil) != (tt.wantErr != "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Fatalf("got error %v, want %q", err, tt.wantErr)
			}
			if p.ItemLimit != tt.want {
				t.Errorf("got limit %d, want %d", p.ItemLimit, tt.want)
			}
		})
	}
}

func TestParseLoanPolicy_Refuses(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"", "[]", `"x"`, "{", `{"loanable":"yes"}`, `{"loansPolicy":[]}`, `{"loansPolicy":{"period":{"duration":"1"}}}`,
	} {
		if p, err := policy.ParseLoanPolicy([]byte(raw)); err == nil {
			t.Errorf("%s: got %+v, want an error", raw, p)
		}
	}
}

// A policy that does not say that it lends must not lend.
func TestParseLoanPolicy_IsNotLoanableByDefault(t *testing.T) {
	t.Parallel()
	if p := parsePolicy(t, `{"name":"x"}`); p.Loanable {
		t.Errorf("got %+v, want not loanable", p)
	}
}

func TestItemLimitFor(t *testing.T) {
	t.Parallel()
	const start = "Patron has reached maximum limit of 3 items for "
	tests := map[string]struct {
		rule          policy.Conditions
		limited       bool
		message, code string
	}{
		"fallback or location": {rule: policy.Conditions{}},
		"g":                    {rule: policy.Conditions{PatronGroup: true}},
		"m": {
			rule: policy.Conditions{MaterialType: true}, limited: true, message: start + "material type",
			code: "ITEM_LIMIT_MATERIAL_TYPE",
		},
		"t": {
			rule: policy.Conditions{LoanType: true}, limited: true, message: start + "loan type", code: "ITEM_LIMIT_LOAN_TYPE",
		},
		"m+t": {
			rule:    policy.Conditions{MaterialType: true, LoanType: true},
			limited: true,
			message: start + "combination of material type and loan type", code: "ITEM_LIMIT_MATERIAL_TYPE_LOAN_TYPE",
		},
		"g+m": {
			rule:    policy.Conditions{PatronGroup: true, MaterialType: true},
			limited: true,
			message: start + "combination of patron group and material type", code: "ITEM_LIMIT_PATRON_GROUP_MATERIAL_TYPE",
		},
		"g+t": {
			rule:    policy.Conditions{PatronGroup: true, LoanType: true},
			limited: true,
			message: start + "combination of patron group and loan type", code: "ITEM_LIMIT_PATRON_GROUP_LOAN_TYPE",
		},
		"g+m+t": {
			rule:    policy.Conditions{PatronGroup: true, MaterialType: true, LoanType: true},
			limited: true,
			message: start + "combination of patron group, material type and loan type",
			code:    "ITEM_LIMIT_PATRON_GROUP_MATERIAL_TYPE_LOAN_TYPE",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, limited := policy.LoanPolicy{ItemLimit: 3}.ItemLimitFor(tt.rule)
			var want policy.ItemLimit
			if tt.limited {
				want = policy.ItemLimit{
					Max: 3, ByMaterialType: tt.rule.MaterialType, ByLoanType: tt.rule.LoanType,
					Message: tt.message, Code: tt.code,
				}
			}
			if limited != tt.limited || got != want {
				t.Errorf("got %+v, %t, want %+v, %t", got, limited, want, tt.limited)
			}
			if unlimited, ok := (policy.LoanPolicy{}).ItemLimitFor(tt.rule); ok {
				t.Errorf("without a limit: got %+v, want none", unlimited)
			}
		})
	}
}

func TestItemLimit_IsReached(t *testing.T) {
	t.Parallel()
	limit := policy.ItemLimit{Max: 1}
	for loans, want := range map[int]bool{0: false, 1: true, 2: true} {
		if got := limit.IsReached(loans); got != want {
			t.Errorf("%d loans of 1: got reached %t, want %t", loans, got, want)
		}
	}
}

// A policy is refused, or it has dates that FOLIO's records can hold.
func FuzzParseLoanPolicy(f *testing.F) {
	for _, raw := range []string{
		`{"loanable":true,"loansPolicy":{"profileId":"Rolling","period":{"duration":1,"intervalId":"Months"},"itemLimit":5}}`,
		`{"loansPolicy":{"profileId":"rolling","period":{"duration":2147483647,"intervalId":"Weeks"}}}`,
		`{"loansPolicy":{"profileId":"Fixed"},"renewable":true,"renewalsPolicy":{"unlimited":true,"differentPeriod":true}}`,
		`{"renewable":true,"loanable":true,"renewalsPolicy":{"numberAllowed":3.0,"renewFromId":"SYSTEM_DATE",` +
			`"differentPeriod":true,"period":{"duration":95917000,"intervalId":"Months"}}}`,
		`{"requestManagement":{"recalls":{"recallReturnInterval":{"duration":1,"intervalId":"Minutes"}}}}`,
	} {
		f.Add([]byte(raw))
	}
	now := time.Date(2026, 1, 31, 10, 11, 12, 0, time.UTC)
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := policy.ParseLoanPolicy(raw)
		if err != nil {
			return
		}
		if p.ItemLimit < 0 || p.ItemLimit > 9999 {
			t.Errorf("%s has the limit %d", raw, p.ItemLimit)
		}
		due, err := p.DueDate(policy.Terms{LoanDate: now, HoldWaits: len(raw)%2 == 0})
		recalled, recallErr := p.Recall(policy.RecallTerms{Now: now, LoanDate: now, DueDate: now.AddDate(0, 0, 9)})
		for date, err := range map[time.Time]error{due: err, recalled: recallErr} {
			if err == nil && (date.Before(now) || date.Year() > 9999) {
				t.Errorf("%s: a loan of %s is due on %s", raw, now, date)
			}
			if refusal, ok := errors.AsType[*policy.DueDateError](err); err != nil && (!ok || refusal.Message == "") {
				t.Errorf("%s: got %#v, want a DueDateError", raw, err)
			}
		}
	})
}
