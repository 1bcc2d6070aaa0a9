package staff_test

import (
	"context"
	"net/http"
	"testing"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/web/auth"
)

func (l *library) Rules(context.Context) (admin.RulesReview, error) { return l.rules, l.err }

const adultsID = "3684a786-6671-4268-8ed0-9db82ebca60b"

func (l *library) NameRules(context.Context, string) map[string]string {
	return map[string]string{adultsID: "Adults <b>"}
}

func TestRulesPage_NamesRecords(t *testing.T) {
	t.Parallel()
	l := &library{rules: admin.RulesReview{Text: "priority: last-line\ng " + adultsID + " + m " + annID + ": l x"}}
	v := visit(t, l)
	p := v.get(t, "/staff/diku/rules")
	p.want(t, http.StatusOK, "2 g Adults <b> + m "+annID+": l x", "Show the ids")
	p.has(t, `<b title="`+adultsID+`">Adults &lt;b&gt;</b>`, `<details id="stored">`)
	p = v.get(t, "/staff/diku/rules?ids=shown")
	p.want(t, http.StatusOK, "g Adults <b> ("+adultsID+") + m", "Hide the ids")
	p.has(t, `<details id="stored" open>`)
}

func TestFeaturePage_LeadsToLimitsThatCountNothing(t *testing.T) {
	t.Parallel()
	l := &library{view: own(true, 3000), uncounted: 1}
	visit(t, l).get(t, "/staff/diku/").want(t, http.StatusOK, "1 item limit counts nothing: see the rules .")
	visitAs(t, l, auth.Gateway, granted(admin.MaySeeSettings)).get(t, "/staff/diku/").lacks(t, "counts nothing")
}

func TestRulesPage_ShowsWarningsAtTheirLines(t *testing.T) {
	t.Parallel()
	three := policy.LoanPolicy{Name: "Three <b>", ItemLimit: 3}
	p := visit(t, &library{rules: admin.RulesReview{
		Text:      "priority: last-line\nfallback-policy: l 1\n# <i>\n    g adults: l 1\n\n",
		Uncounted: []policy.UncountedLimit{{Line: 2, Fallback: true, Policy: three}, {Line: 4, Policy: three}},
	}}).get(t, "/staff/diku/rules")
	p.want(t, http.StatusOK, "2 item limits count nothing",
		"Line 2 : the limit of 3 items in the policy Three <b> counts nothing here, because the fallback names neither",
		"4 g adults: l 1 ! the limit of 3 items in the policy Three <b> counts nothing here, because the rule names neither",
		"3 # <i>")
	p.has(t, `<a href="#line-4">`, `id="line-4"`, "    g adults: l 1")
	p.lacks(t, "<b>counts", `id="line-5"`, "cannot be used")
}

// Lines end with \n, \r\n or \r.
func TestRulesPage_CountsLinesAsTheParser(t *testing.T) {
	t.Parallel()
	p := visit(t, &library{rules: admin.RulesReview{
		Text:      "priority: last-line\r\nfallback-policy: l 1\rg adults: l 1\r",
		Uncounted: []policy.UncountedLimit{{Line: 3, Policy: policy.LoanPolicy{Name: "Three", ItemLimit: 3}}},
	}}).get(t, "/staff/diku/rules")
	p.want(t, http.StatusOK, "2 fallback-policy: l 1",
		"3 g adults: l 1 ! the limit of 3 items in the policy Three counts nothing here")
	p.lacks(t, `id="line-4"`)
}

func TestRulesPage_ShowsRulesWithoutWarnings(t *testing.T) {
	t.Parallel()
	p := visit(t, &library{
		rules: admin.RulesReview{Text: "priority: last-line\nfallback-policy: l 1"},
	}).get(t, "/staff/diku/rules")
	p.want(t, http.StatusOK, "2 fallback-policy: l 1")
	p.lacks(t, "counts nothing here", "cannot be used")
	visit(t, &library{}).get(t, "/staff/diku/rules").want(t, http.StatusOK, "This library has no circulation rules yet.")
	p = visit(t, &library{
		rules: admin.RulesReview{Text: "g\n", Fault: &policy.SyntaxError{Message: "missing <x>", Line: 1}},
	}).get(t, "/staff/diku/rules")
	p.want(t, http.StatusOK, "These rules cannot be used, so no check-out succeeds. Line 1: missing <x>")
	p.lacks(t, "could not be saved again")
	p = visit(t, &library{
		rules: admin.RulesReview{Text: "g x\n", Broken: &policy.SyntaxError{Message: "Policy missing", Line: 1}},
	}).get(t, "/staff/diku/rules")
	p.want(t, http.StatusOK, "These rules are in use, but could not be saved again. Line 1 : Policy missing. A line "+
		"without policies never applies")
	p.lacks(t, "cannot be used")
}

func TestRulesPage_NeedsThePermissionOfTheRules(t *testing.T) {
	t.Parallel()
	header := func(permission string) http.Header {
		return http.Header{"X-Okapi-Tenant": {"diku"}, "X-Okapi-Permissions": {`["` + permission + `"]`}}
	}
	l := &library{rules: admin.RulesReview{Text: "priority: last-line"}}
	visitAs(t, l, auth.Gateway, header("circulation.rules.get")).get(t, "/staff/diku/rules").want(t, http.StatusOK,
		"1 priority: last-line")
	visitAs(t, l, auth.Gateway, header(admin.MaySeeLocks)).get(t, "/staff/diku/rules").want(t, http.StatusForbidden)
}
