package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// RuleMatching answers what the circulation rules would choose.
type RuleMatching interface {
	// RulesFor returns the tenant's rules, and c with what its location belongs
	// to. Fault: Internal for rules that cannot be used.
	RulesFor(ctx context.Context, c policy.Criteria) (*policy.Rules, policy.Criteria, error)
}

// policyKinds are the sorts of policies as the paths name them, with the key of
// the answer.
var policyKinds = [...]struct {
	name string
	kind policy.Kind
	key  string
}{
	{"loan", policy.KindLoan, "loanPolicyId"},
	{"request", policy.KindRequest, "requestPolicyId"},
	{"notice", policy.KindNotice, "noticePolicyId"},
	{"overdue-fine", policy.KindOverdueFine, "overdueFinePolicyId"},
	{"lost-item", policy.KindLostItem, "lostItemPolicyId"},
}

// rulePolicyRoutes are FOLIO's questions to the rules (interface
// circulation-rules): which policy of a kind applies, and which rules would.
func rulePolicyRoutes(m RuleMatching) []web.Route {
	var routes []web.Route
	for _, k := range policyKinds {
		h := rulePolicyHandlers{matching: m, kind: k.kind, key: k.key}
		path, permission := "/circulation/rules/"+k.name+"-policy", "circulation.rules."+k.name+"-policy"
		routes = append(routes,
			web.Route{Method: http.MethodGet, Path: path, Handler: h.one, Permission: permission + ".get"},
			web.Route{Method: http.MethodGet, Path: path + "-all", Handler: h.all, Permission: permission + "-all.get"},
		)
	}
	return routes
}

// rulePolicyHandlers answer for one kind of policy.
type rulePolicyHandlers struct {
	matching RuleMatching
	kind     policy.Kind
	key      string
}

// appliedRule is the answer about the rule that applies, beside its policy.
type appliedRule struct {
	MaterialType bool `json:"materialTypeMatch"`
	LoanType     bool `json:"loanTypeMatch"`
	PatronGroup  bool `json:"patronGroupMatch"`
}

// one handles GET /circulation/rules/{kind}-policy: 200 with the policy of the
// rule that applies, and which criteria that rule names.
func (h rulePolicyHandlers) one(c echo.Context) error {
	rules, criteria, err := h.rulesFor(c)
	if err != nil {
		return refuseQuestion(c, err)
	}
	m := rules.Match(h.kind, criteria)
	return c.JSON(http.StatusOK, map[string]any{h.key: m.PolicyID, "appliedRuleConditions": appliedRule(m.Conditions)})
}

// all handles GET /circulation/rules/{kind}-policy-all: 200 with every rule that
// applies, the one that decides first. Lines count from 1. The key
// circulationRuleMatches is what FOLIO sends, whatever its RAML says.
func (h rulePolicyHandlers) all(c echo.Context) error {
	rules, criteria, err := h.rulesFor(c)
	if err != nil {
		return refuseQuestion(c, err)
	}
	matches := []map[string]any{}
	for _, m := range rules.MatchAll(h.kind, criteria) {
		matches = append(matches, map[string]any{h.key: m.PolicyID, "circulationRuleLine": m.Line})
	}
	return c.JSON(http.StatusOK, map[string]any{"circulationRuleMatches": matches})
}

// rulesFor reads the four parameters, all of them required, and returns what
// they are compared with. The texts of refusals are FOLIO's.
func (h rulePolicyHandlers) rulesFor(c echo.Context) (*policy.Rules, policy.Criteria, error) {
	var criteria policy.Criteria
	for _, p := range []struct {
		name  string
		value *string
	}{
		{"item_type_id", &criteria.MaterialType},
		{"loan_type_id", &criteria.LoanType},
		{"patron_type_id", &criteria.PatronGroup},
		{"location_id", &criteria.Location},
	} {
		*p.value = c.QueryParam(p.name)
		switch {
		case *p.value == "":
			return nil, criteria, fault.New(fault.Malformed, "required query parameter missing: %s", p.name)
		case !schemas.IsFolioUUID(*p.value):
			return nil, criteria, fault.New(fault.Malformed, "invalid uuid format of %s, expecting %s but it is %.100s", p.name, schemas.FolioUUID,
				strings.ToValidUTF8(*p.value, "\uFFFD"))
		}
	}
	return h.matching.RulesFor(c.Request().Context(), criteria)
}

// refuseQuestion answers a bad parameter as FOLIO does here, that is as text.
func refuseQuestion(c echo.Context, err error) error {
	if !fault.Is(err, fault.Malformed) {
		return err
	}
	c.Response().Header().Set(fault.Header, string(fault.Malformed))
	return c.String(http.StatusBadRequest, publicMessage(err))
}
