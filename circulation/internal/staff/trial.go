package staff

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/texts"
)

// The page Try a check-out: what a check-out would end in.

type trialPage struct {
	Item, Patron, Other field
	Problems            []field
	Failure             string // why there is no result
	Result              *trialResult
}

type trialResult struct {
	Found checkout.Explanation
	Due   string // RFC 3339; empty if the item would not be lent
	visit *visit
}

// RuleNames lists the criteria of the deciding rule on which an item limit depends.
func (r trialResult) RuleNames() string {
	return strings.Join(convert.All(r.Found.Rule.Names, r.Word), ", ")
}

// Word is the everyday name of a criterion of a rule.
func (r trialResult) Word(kind string) string {
	words := map[string]texts.Code{
		"materialType": "try.materialType", "loanType": "try.loanType", "patronGroup": "try.patronGroup", "loanPolicy": "try.loanPolicy",
	}
	return cmp.Or(r.visit.say(words[kind], nil), kind)
}

// Cause says in the visitor's language why a check-out with the code is refused. It is empty in English, where
// the message says it, and for other codes.
func (r trialResult) Cause(code string) string {
	return r.visit.say(r.visit.translateCause(code), nil)
}

// Unlimited reports whether no item limit can apply, regardless of the policy. As in
// FOLIO, a limit counts only if the rule names a material type or a loan type.
func (r trialResult) Unlimited() bool {
	rule := r.Found.Rule
	return rule != nil && !slices.Contains(rule.Names, "materialType") && !slices.Contains(rule.Names, "loanType")
}

func (p *pages) showTrial(v *visit) error {
	page := v.readTrialForm()
	show := func(status int) error { return v.show(status, "trial.html", "/try", "nav.try", page) }
	switch {
	case len(page.Problems) > 0:
		return show(http.StatusUnprocessableEntity)
	case page.Item.Value == "" || page.Patron.Value == "":
		return show(http.StatusOK)
	}
	found, err := p.admin.Explain(v.ctx(), checkout.DryRunRequest{
		ItemBarcode: page.Item.Value, UserBarcode: page.Patron.Value, ProxyUserBarcode: page.Other.Value,
	})
	if err == nil {
		page.Result = &trialResult{Found: found, visit: v}
		if found.DueDate != nil {
			page.Result.Due = found.DueDate.Format(time.RFC3339)
		}
		return show(http.StatusOK)
	}
	f, known := errors.AsType[*fault.Error](err)
	if !known || f.Code == fault.Unavailable || f.Code == fault.Timeout || f.Code == fault.Overloaded {
		return err // shown as on all pages
	}
	// For example rules that cannot be used: the page shows the error as its result.
	page.Failure = f.Msg
	v.c.Response().Header().Set(fault.Header, string(f.Code))
	return cmp.Or(show(fault.Status(f.Code)), err) // err is for the log
}

// readTrialForm reads the form. One that is not filled in yet has no problems.
func (v *visit) readTrialForm() trialPage {
	page := trialPage{
		Item:   v.readBarcode("itemBarcode", "form.item"),
		Patron: v.readBarcode("userBarcode", "form.patron"),
		Other:  v.readBarcode("proxyUserBarcode", "form.proxy"),
	}
	page.Item.Required, page.Patron.Required = true, true
	if web.QueryOf(v.c).Count(page.Patron.Name) > 0 { // a link may name the item alone
		if page.Item.Value == "" {
			page.Item.Wrong = v.say("form.typeItem", nil)
		}
		if page.Patron.Value == "" {
			page.Patron.Wrong = v.say("form.typePatron", nil)
		}
	}
	page.Problems = findProblems(page.Item, page.Patron, page.Other)
	return page
}
