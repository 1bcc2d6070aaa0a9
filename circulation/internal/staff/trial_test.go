package staff_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkout"
	records "checkoutlock/circulation/internal/library"
	"checkoutlock/schemas/fault"
)

func TestTrialPage_SaysWhatWouldHappenAndWhy(t *testing.T) {
	t.Parallel()
	due := records.Instant{Time: time.Date(2026, 9, 22, 12, 0, 0, 0, time.Local)}
	rule := &checkout.AppliedRule{
		Line: 7, Text: "g <staff>: l two-weeks", Names: []string{"materialType", "patronGroup"},
		Terms: []checkout.RuleTerm{
			{ID: "two-weeks", Kind: "loanPolicy", Name: "Two weeks"}, {ID: "<staff>", Kind: "patronGroup", Name: "staff"},
		},
	}
	patron := &checkout.ExplainedPatron{ID: "1", Name: "Lovelace, Ada", Group: "staff"}
	item := &checkout.ExplainedItem{ID: "2", Title: "Notes", Status: "Available", MaterialType: "book", Location: "Main"}
	tests := map[string]struct {
		e     checkout.Explanation
		words []string
	}{
		"lent": {
			checkout.Explanation{
				WouldLend: true, DueDate: &due, Rule: rule, LoanPolicy: &records.Named{ID: "9", Name: "Two weeks"},
				Limit: &checkout.LimitStanding{Max: 3, Open: 2}, Patron: patron, Item: item,
			},
			[]string{
				"Would be lent, due 22 Sep 2026, 12:00:00",
				"Line 7 of the circulation rules, about material type, patron group: g <staff>: l two-weeks loan policy Two " +
					"weeks: two-weeks patron group staff: <staff> Loan policy Two weeks", "Loan policy Two weeks", "2 of 3 loans This",
				"Lovelace, Ada, group staff", "Notes Status: Available Type: book Location: Main", "This promises nothing",
			},
		},
		"refused": {
			checkout.Explanation{
				Errors: []fault.Detail{
					{
						Message: "Patron has reached maximum limit of 3 items for loan type", Code: "ITEM_LIMIT_LOAN_TYPE",
						OverridableBlock: &fault.OverridableBlock{Name: "itemLimitBlock"},
					},
					{Message: "Item is withdrawn"},
				},
				Rule: &checkout.AppliedRule{
					Line: 2, Text: "fallback-policy: l x", Fallback: true,
				}, LoanPolicy: &records.Named{ID: "policy-9"},
				Limit: &checkout.LimitStanding{Max: 3, Open: 3, Reached: true}, Patron: patron, Item: item,
			},
			[]string{
				"Would be refused", "Patron has reached maximum limit of 3 items for loan type (code ITEM_LIMIT_LOAN_TYPE ) " +
					"Staff with the permission can override it.",
				"Item is withdrawn", "Line 2 of the circulation rules, the fallback: fallback-policy: l x", "Loan policy policy-9",
				"3 of 3 loans, the limit is reached",
			},
		},
		"on loan": {
			checkout.Explanation{Errors: []fault.Detail{
				{Message: "Item is already checked out", Code: "ITEM_ALREADY_CHECKED_OUT"},
				{Message: "Item is not loanable", Code: "ITEM_NOT_LOANABLE"},
			}},
			[]string{
				"Would be refused Item is already checked out (code ITEM_ALREADY_CHECKED_OUT ) " +
					"Item is not loanable (code ITEM_NOT_LOANABLE )",
			},
		},
		"unknown": {
			checkout.Explanation{Errors: []fault.Detail{{Message: "No item with barcode 036 exists"}}},
			[]string{
				"Would be refused", "No item with barcode 036 exists", "Patron not found", "Item not found",
				"Rule that decides not asked", "Loan policy not asked", "Loan limit not asked",
			},
		},
		"a rule without a limit": {
			checkout.Explanation{
				WouldLend: true, Rule: &checkout.AppliedRule{Line: 1, Names: []string{"patronGroup"}},
				LoanPolicy: &records.Named{Name: "Long"},
			},
			[]string{
				"about patron group", "Loan limit none applies, since the rule names neither a material type nor a loan type",
			},
		},
		"no limit": {
			checkout.Explanation{WouldLend: true, LoanPolicy: &records.Named{Name: "Long"}}, []string{"Loan limit none applies"},
		},
		"nameless": {
			checkout.Explanation{WouldLend: true, Patron: &checkout.ExplainedPatron{}, Item: &checkout.ExplainedItem{}},
			[]string{"Patron without a name", "Item without a title"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &library{explanation: tt.e}
			p := visit(t, l).get(t, "/staff/diku/try?itemBarcode=+036+&userBarcode=569&proxyUserBarcode=570")
			p.want(t, 200, append(tt.words, "Nothing is lent and no lock is taken.")...)
			p.has(t, `name="itemBarcode" value="036"`, `name="userBarcode" value="569"`, `name="proxyUserBarcode" value="570"`)
			if l.tried == nil || l.tried.ItemBarcode != "036" || l.tried.UserBarcode != "569" ||
				l.tried.ProxyUserBarcode != "570" {
				t.Errorf("tried %+v", l.tried)
			}
		})
	}
}

func TestTrialPage_NeedsBothBarcodes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		query  string
		status int
		wrong  []string
	}{
		"not yet": {status: 200},
		"no item": {
			query: "?itemBarcode=&userBarcode=569", status: 422, wrong: []string{"Type or scan the item's barcode."},
		},
		"no patron": {
			query: "?itemBarcode=036&userBarcode=++", status: 422, wrong: []string{"Type or scan the patron's barcode."},
		},
		"neither": {
			query: "?itemBarcode=&userBarcode=", status: 422,
			wrong: []string{"Type or scan the item's barcode.", "Type or scan the patron's barcode."},
		},
		"a long barcode": {
			query: "?itemBarcode=036&userBarcode=" + strings.Repeat("9", 256), status: 422,
			wrong: []string{"The barcode has 256 characters"},
		},
		"a long proxy": {
			query: "?itemBarcode=036&userBarcode=569&proxyUserBarcode=" + strings.Repeat("9", 256), status: 422,
			wrong: []string{"The barcode has 256 characters"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &library{}
			p := visit(t, l).get(t, "/staff/diku/try"+tt.query)
			p.want(t, tt.status, tt.wrong...)
			p.lacks(t, "Would be")
			if strings.Contains(p.html, `id="problems"`) != (tt.wrong != nil) {
				t.Errorf("the summary of what is wrong: %v", tt.wrong == nil)
			}
			if l.tried != nil {
				t.Errorf("tried %+v", *l.tried)
			}
		})
	}
}

func TestTrialPage_SaysWhyItWouldFail(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err    error
		status int
		words  []string
	}{
		"rules that cannot be used": {
			err:    fault.Wrap(errors.New("secret"), fault.Internal, "The circulation rules cannot be used: line 3: <b>"),
			status: 500,
			words:  []string{"Would fail", "The circulation rules cannot be used: line 3: <b>"},
		},
		"something inside": {
			err: errors.New("secret"), status: 500,
			words: []string{"Something went wrong", "The service could not make this page."},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := visit(t, &library{err: tt.err})
			p := v.get(t, "/staff/diku/try?itemBarcode=036&userBarcode=569")
			p.want(t, tt.status, tt.words...)
			p.lacks(t, "secret")
			if !strings.Contains(v.logged.String(), tt.err.Error()) {
				t.Errorf("the log lacks %q:\n%s", tt.err, v.logged)
			}
			if p.header.Get(fault.Header) != string(fault.CodeOf(tt.err)) {
				t.Errorf("got code %q", p.header.Get(fault.Header))
			}
		})
	}
}

func TestTrialPage_ShowsAnOutageAsAllPagesDo(t *testing.T) {
	t.Parallel()
	for _, code := range []fault.Code{fault.Unavailable, fault.Timeout, fault.Overloaded} {
		l := &library{err: fault.New(code, "Storage did not answer")}
		p := visit(t, l).get(t, "/staff/diku/try?itemBarcode=036&userBarcode=569")
		p.want(t, fault.Status(code), "Not available right now", "Storage did not answer", "tries again by itself")
		p.lacks(t, "Would fail")
		if p.header.Get("Refresh") != "10" || p.header.Get(fault.Header) != string(code) {
			t.Errorf("%s: got the header %v", code, p.header)
		}
	}
}

func TestTrialPage_EscapesText(t *testing.T) {
	t.Parallel()
	const bad = `<script>alert("1")</script>`
	l := &library{explanation: checkout.Explanation{
		Errors: []fault.Detail{
			{Message: bad, Code: bad, OverridableBlock: &fault.OverridableBlock{Name: bad}},
		}, Rule: &checkout.AppliedRule{Text: bad, Terms: []checkout.RuleTerm{{ID: bad, Kind: bad, Name: bad}}},
		LoanPolicy: &records.Named{Name: bad}, Patron: &checkout.ExplainedPatron{Name: bad, Group: bad},
		Item: &checkout.ExplainedItem{Title: bad, Status: bad, MaterialType: bad, Location: bad},
	}}
	typed := url.Values{"itemBarcode": {bad}, "userBarcode": {bad}, "proxyUserBarcode": {bad}}
	p := visit(t, l).get(t, "/staff/diku/try?"+typed.Encode())
	p.want(t, 200, bad)
	if strings.Contains(p.html, "<script>") || strings.Contains(p.html, `alert("`) {
		t.Errorf("the page has HTML of others:\n%s", p.html)
	}
}
