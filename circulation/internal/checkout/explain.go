package checkout

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
)

// DryRunRequest is the body of POST /circulation/check-out-by-barcode-dry-run. Unknown properties
// are ignored.
type DryRunRequest struct {
	ItemBarcode      string         `json:"itemBarcode"`
	UserBarcode      string         `json:"userBarcode"`
	ProxyUserBarcode string         `json:"proxyUserBarcode"`
	OverrideBlocks   OverrideBlocks `json:"overrideBlocks"`

	library.Sent `json:"-"`
}

// DryRun has the policies that the circulation rules choose for a check-out, as FOLIO's clients read it.
type DryRun struct {
	LoanPolicyID         string `json:"loanPolicyId"`
	OverdueFinePolicyID  string `json:"overdueFinePolicyId"`
	LostItemPolicyID     string `json:"lostItemPolicyId"`
	PatronNoticePolicyID string `json:"patronNoticePolicyId"`
}

// DryRun makes all checks that CheckOut makes before it takes the patron's lock, and stops there.
// It takes no lock, reads no lock settings and writes nothing. It promises nothing, because others
// lend meanwhile. It takes a place like a check-out, because it costs nearly as much. Faults:
// Overloaded; those of CheckOut's checks.
func (s *Service) DryRun(ctx context.Context, req DryRunRequest) (DryRun, error) {
	p, err := s.judgeDryRun(ctx, req)
	if err != nil {
		return DryRun{}, err
	}
	if err := p.wrong.Err(); err != nil {
		return DryRun{}, err
	}
	criteria, err := p.facts.Criteria()
	if err != nil {
		return DryRun{}, err
	}
	return DryRun{
		LoanPolicyID: p.chosen.policy.ID, OverdueFinePolicyID: p.chosen.overdueFine, LostItemPolicyID: p.chosen.lostItem,
		PatronNoticePolicyID: p.facts.Rules.Match(policy.KindNotice, criteria).PolicyID,
	}, nil
}

// judgeDryRun waits for a place, and judges a check-out that needs no service point, because nothing
// is lent.
func (s *Service) judgeDryRun(ctx context.Context, r DryRunRequest) (*plan, error) {
	leave, err := s.Admission.Enter(ctx, r.UserBarcode)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.judgeRequest(ctx, Request{
		ItemBarcode: r.ItemBarcode, UserBarcode: r.UserBarcode, ProxyUserBarcode: r.ProxyUserBarcode, OverrideBlocks: r.OverrideBlocks, Sent: r.Sent,
	}, nil)
}

// Explanation says whether a check-out would lend, and why. A part is nil if a check before it
// failed.
type Explanation struct {
	WouldLend bool `json:"wouldLend"`
	// Errors are those of a refusal; empty if the check-out would lend.
	Errors fault.List `json:"errors"`
	// Rule is the circulation rule that decides.
	Rule *AppliedRule `json:"rule,omitempty"`
	// LoanPolicy is that of the rule.
	LoanPolicy *library.Named `json:"loanPolicy,omitempty"`
	// Limit is nil if none applies.
	Limit *LimitStanding `json:"limit,omitempty"`
	// DueDate is that of a loan made now; nil unless it would lend.
	DueDate *library.Instant `json:"dueDate,omitempty"`

	// Patron and Item are nil if the record does not exist.
	Patron *ExplainedPatron `json:"patron,omitempty"`
	Item   *ExplainedItem   `json:"item,omitempty"`
}

// AppliedRule is a line of the circulation rules.
type AppliedRule struct {
	Line     int    `json:"line"` // counted from 1
	Text     string `json:"text"` // without white space at its ends
	Fallback bool   `json:"fallback"`
	// Names lists which of materialType, loanType and patronGroup the rule names. Without one of
	// the first two no limit applies (FOLIO).
	Names []string `json:"names"`
	// Terms are the ids in Text whose records the check-out read.
	Terms []RuleTerm `json:"terms"`
}

// RuleTerm is an id in a rule, with its record.
type RuleTerm struct {
	ID   string `json:"id"`
	Kind string `json:"kind"` // materialType, patronGroup, location or loanPolicy
	Name string `json:"name"`
}

// LimitStanding compares the patron's open loans with the item limit.
type LimitStanding struct {
	Max     int    `json:"max"`
	Open    int    `json:"open"` // loans that the limit counts
	Reached bool   `json:"reached"`
	Message string `json:"message"` // FOLIO's, as a refusal would have it
}

// ExplainedPatron is a patron as an explanation names them.
type ExplainedPatron struct {
	ID    string `json:"id"`
	Name  string `json:"name"` // last name first
	Group string `json:"group"`
}

// ExplainedItem is an item as an explanation names it.
type ExplainedItem struct {
	ID           string `json:"id"`
	Title        string `json:"title"`
	Status       string `json:"status"`
	MaterialType string `json:"materialType"`
	Location     string `json:"location"`
}

// Explain makes the checks of DryRun and returns what they found, refusals included. Faults:
// Overloaded; those of stored configuration, and of a storage that cannot be read.
func (s *Service) Explain(ctx context.Context, req DryRunRequest) (Explanation, error) {
	p, err := s.judgeDryRun(ctx, req)
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{
		WouldLend: len(p.wrong) == 0, Errors: append(fault.List{}, p.wrong...), // not null
		Rule: p.describeRule(), Limit: p.standing,
		Patron: p.describePatron(), Item: p.describeItem(),
	}
	if p.chosen.policy.ID != "" {
		e.LoanPolicy = &library.Named{ID: p.chosen.policy.ID, Name: p.chosen.policy.Name}
	}
	if e.WouldLend {
		e.DueDate = &p.loan.DueDate
	}
	return e, nil
}

// describeRule returns nil if the rules were not asked.
func (p *plan) describeRule() *AppliedRule {
	if p.chosen.match.Line == 0 {
		return nil
	}
	text := p.facts.Rules.Line(p.chosen.match.Line)
	return &AppliedRule{
		Line: p.chosen.match.Line, Text: text, Fallback: p.chosen.match.Fallback, Names: listConditions(p.chosen.match.Conditions), Terms: p.findTerms(text),
	}
}

// findTerms returns the ids that the rule names: criteria before its colon, policies after it.
func (p *plan) findTerms(rule string) []RuleTerm {
	criteria, policies, _ := strings.Cut(rule, ":")
	item, user := p.facts.Item, p.facts.User
	terms := []RuleTerm{}
	for _, t := range []struct {
		where string
		term  RuleTerm
	}{
		{criteria, RuleTerm{item.MaterialTypeID, "materialType", p.facts.Material.Name}},
		{criteria, RuleTerm{user.PatronGroup, "patronGroup", p.facts.Group.Group}},
		{criteria, RuleTerm{item.EffectiveLocationID, "location", p.facts.Location.Name}},
		{policies, RuleTerm{p.chosen.match.PolicyID, "loanPolicy", p.chosen.policy.Name}},
	} {
		words := strings.FieldsFunc(t.where, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("+!", r) })
		if t.term.Name != "" && slices.Contains(words, t.term.ID) {
			terms = append(terms, t.term)
		}
	}
	return terms
}

func (p *plan) describePatron() *ExplainedPatron {
	if p.facts.User.ID == "" {
		return nil
	}
	return &ExplainedPatron{ID: p.facts.User.ID, Name: p.facts.User.Personal.FullName(), Group: p.facts.Group.Group}
}

func (p *plan) describeItem() *ExplainedItem {
	if p.facts.Item.ID == "" {
		return nil
	}
	book := p.facts.Copy()
	return &ExplainedItem{
		ID: book.Item.ID, Title: book.Instance.Title, Status: book.Item.Status.Name,
		MaterialType: book.Material.Name, Location: book.Location.Name,
	}
}

func listConditions(c policy.Conditions) []string {
	names := []string{}
	for _, n := range []struct {
		named bool
		name  string
	}{{c.MaterialType, "materialType"}, {c.LoanType, "loanType"}, {c.PatronGroup, "patronGroup"}} {
		if n.named {
			names = append(names, n.name)
		}
	}
	return names
}
