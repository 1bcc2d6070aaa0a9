package httpapi

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

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

const rulesInterface = "circulation-rules 1.1"

// rulePolicyRoutes are FOLIO's matches of the rules (interface circulation-rules): which
// policy of a kind applies, and which rules match.
func rulePolicyRoutes(o Options) []web.Route {
	var routes []web.Route
	for _, k := range policyKinds {
		h := rulePolicyHandlers{o, k.kind, k.key}
		path, permission := "/circulation/rules/"+k.name+"-policy", "circulation.rules."+k.name+"-policy"
		ofAll := permission + "-all.get"
		if k.kind == policy.KindLostItem {
			ofAll = "circulation.rules.lost-item-all.get" // FOLIO's name
		}
		query := web.Query{Parameters: criteria, Refuse: refuseCriterion}
		routes = append(routes,
			web.Route{Method: http.MethodGet, Path: path, Permission: permission + ".get", Query: query, Endpoint: web.JSON(http.StatusOK, h.match)},
			web.Route{Method: http.MethodGet, Path: path + "-all", Permission: ofAll, Query: query, Endpoint: web.JSON(http.StatusOK, h.matchAll)},
		)
	}
	return web.WithGuard(web.WithInterface(rulesInterface, routes), func(web.Route) echo.MiddlewareFunc { return refuseAsText })
}

// criteria are the parameters that all of these endpoints require.
var criteria = []web.Parameter{
	criterion("item_type_id", "the item's material type"), criterion("loan_type_id", "the item's loan type"),
	criterion("patron_type_id", "the patron group"), criterion("location_id", "the item's location"),
}

func criterion(name, meaning string) web.Parameter {
	return web.Parameter{Name: name, Meaning: meaning, Required: true, Check: func(value string) string {
		if !schemas.IsFolioUUID(value) {
			return "must match " + schemas.FolioUUID
		}
		return ""
	}}
}

// refuseCriterion refuses with FOLIO's texts.
func refuseCriterion(p web.Parameter, value string) error {
	if value == "" {
		return fault.New(fault.Malformed, "required query parameter missing: %s", p.Name)
	}
	return fault.New(fault.Malformed, "invalid uuid format of %s, expecting %s but it is %.100s", p.Name, schemas.FolioUUID,
		strings.ToValidUTF8(value, "\uFFFD"))
}

// refuseAsText answers a bad parameter as FOLIO does here, that is as text.
func refuseAsText(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := next(c)
		if !fault.Is(err, fault.Malformed) {
			return err
		}
		c.Response().Header().Set(fault.Header, string(fault.Malformed))
		return c.String(http.StatusBadRequest, web.ToFault(err).Msg)
	}
}

// rulePolicyHandlers answer for one kind of policy.
type rulePolicyHandlers struct {
	options Options
	kind    policy.Kind
	key     string
}

// appliedRule is the answer about the rule that applies, beside its policy.
type appliedRule struct {
	MaterialType bool `json:"materialTypeMatch"`
	LoanType     bool `json:"loanTypeMatch"`
	PatronGroup  bool `json:"patronGroupMatch"`
}

// match handles GET /circulation/rules/{kind}-policy: 200 with the policy of the
// rule that applies, and which criteria that rule names.
func (h rulePolicyHandlers) match(c echo.Context) (map[string]any, error) {
	rules, criteria, err := h.readRules(c)
	if err != nil {
		return nil, err
	}
	m := rules.Match(h.kind, criteria)
	return map[string]any{h.key: m.PolicyID, "appliedRuleConditions": appliedRule(m.Conditions)}, nil
}

// matchAll handles GET /circulation/rules/{kind}-policy-all: 200 with every rule that
// applies, the one that decides first. Lines count from 1. The key
// circulationRuleMatches is what FOLIO sends, whatever its RAML says.
func (h rulePolicyHandlers) matchAll(c echo.Context) (map[string]any, error) {
	rules, criteria, err := h.readRules(c)
	if err != nil {
		return nil, err
	}
	key := h.key
	if h.kind == policy.KindOverdueFine {
		key = "overduePolicyId" // FOLIO's key in lists
	}
	matches := convert.All(rules.MatchAll(h.kind, criteria), func(m policy.Match) map[string]any {
		return map[string]any{key: m.PolicyID, "circulationRuleLine": m.Line}
	})
	return map[string]any{"circulationRuleMatches": matches}, nil
}

// readRules returns the rules, and what they are compared with.
func (h rulePolicyHandlers) readRules(c echo.Context) (*policy.Rules, policy.Criteria, error) {
	q := web.QueryOf(c)
	return h.options.RulesFor(c.Request().Context(), policy.Criteria{
		MaterialType: q.Text("item_type_id"), LoanType: q.Text("loan_type_id"),
		PatronGroup: q.Text("patron_type_id"), Location: q.Text("location_id"),
	})
}
