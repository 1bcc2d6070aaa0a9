package checkout

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"checkoutlock/circulation/internal/policy"
	"checkoutlock/schemas/fault"
)

// Explanation is what would become of a check-out, and why. Parts that could not
// be found out, because a check before them failed, are nil.
type Explanation struct {
	WouldLend bool `json:"wouldLend"`
	// Errors are what a check-out would be refused with; empty if it would lend.
	Errors []fault.Detail `json:"errors"`
	// Rule is the circulation rule that decides.
	Rule *AppliedRule `json:"rule,omitempty"`
	// LoanPolicy is the one that the rule names.
	LoanPolicy *Named `json:"loanPolicy,omitempty"`
	// Limit is nil when none applies.
	Limit *LimitStanding `json:"limit,omitempty"`
	// DueDate is that of a loan made now; nil unless it would lend.
	DueDate *Instant `json:"dueDate,omitempty"`

	// Patron and Item are what was found; nil when there is no such record.
	Patron *ExplainedPatron `json:"patron,omitempty"`
	Item   *ExplainedItem   `json:"item,omitempty"`
}

// AppliedRule is a line of the circulation rules.
type AppliedRule struct {
	Line     int    `json:"line"` // counted from 1
	Text     string `json:"text"` // the line as it stands, without white space around
	Fallback bool   `json:"fallback"`
	// Names are what it names of those that an item limit depends on: materialType,
	// loanType, patronGroup. Without one of the first two no limit applies (FOLIO).
	Names []string `json:"names"`
	// Terms are the ids in Text of which the check-out knows the record.
	Terms []RuleTerm `json:"terms"`
}

// RuleTerm is an id in a rule and the record that has it.
type RuleTerm struct {
	ID   string `json:"id"`
	Kind string `json:"kind"` // materialType, patronGroup, location or loanPolicy
	Name string `json:"name"`
}

// LimitStanding is how the patron stands with the item limit.
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

// Explain makes the checks of DryRun and says what they found, refusals included.
// Faults: Overloaded; those of stored configuration, and of a storage that cannot be read.
func (s *Service) Explain(ctx context.Context, req DryRunRequest) (Explanation, error) {
	leave, err := s.Admission.Enter(ctx, req.UserBarcode)
	if err != nil {
		return Explanation{}, err
	}
	defer leave()
	p, wrong, err := s.judge(ctx, req.asRequest())
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{
		WouldLend: len(wrong) == 0, Errors: append([]fault.Detail{}, wrong...), // not null
		Rule: p.appliedRule(), Limit: p.standing,
		Patron: p.explainedPatron(), Item: p.explainedItem(),
	}
	if p.policy.ID != "" {
		e.LoanPolicy = &Named{ID: p.policy.ID, Name: p.policy.Name}
	}
	if e.WouldLend {
		e.DueDate = &p.loan.DueDate
	}
	return e, nil
}

// appliedRule is nil when the rules were not asked.
func (p *plan) appliedRule() *AppliedRule {
	if p.match.Line == 0 {
		return nil
	}
	text := p.rules.Line(p.match.Line)
	return &AppliedRule{
		Line: p.match.Line, Text: text, Fallback: p.match.Fallback, Names: namesOf(p.match.Conditions), Terms: p.termsIn(text),
	}
}

// termsIn names what stands in a rule, whose policies stand after its colon.
func (p *plan) termsIn(rule string) []RuleTerm {
	criteria, policies, _ := strings.Cut(rule, ":")
	terms := []RuleTerm{}
	for _, t := range []struct {
		where string
		RuleTerm
	}{
		{criteria, RuleTerm{p.item.MaterialTypeID, "materialType", p.material.Name}},
		{criteria, RuleTerm{p.user.PatronGroup, "patronGroup", p.group.Group}},
		{criteria, RuleTerm{p.item.EffectiveLocationID, "location", p.location.Name}},
		{policies, RuleTerm{p.policy.ID, "loanPolicy", p.policy.Name}},
	} {
		words := strings.FieldsFunc(t.where, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("+!", r) })
		if t.Name != "" && slices.Contains(words, t.ID) {
			terms = append(terms, t.RuleTerm)
		}
	}
	return terms
}

func (p *plan) explainedPatron() *ExplainedPatron {
	if !p.userFound {
		return nil
	}
	return &ExplainedPatron{ID: p.user.ID, Name: p.user.Personal.FullName(), Group: p.group.Group}
}

func (p *plan) explainedItem() *ExplainedItem {
	if !p.itemFound {
		return nil
	}
	return &ExplainedItem{
		ID: p.item.ID, Title: p.instance.Title, Status: p.item.Status.Name, MaterialType: p.material.Name, Location: p.location.Name,
	}
}

func namesOf(c policy.Conditions) []string {
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
