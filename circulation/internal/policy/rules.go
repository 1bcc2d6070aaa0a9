// Package policy decides which loan policy applies to a check-out, when the loan is due, whether it
// can be renewed, and how many items the policy allows.
//
// Its parts are the circulation rules (Compile, Rules) and the loan policy (ParseLoanPolicy,
// LoanPolicy) with its due dates, renewals and item limit. Language, messages and rank are those of
// FOLIO's mod-circulation. The package is pure: it reads no clock, no record and no setting.
package policy

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"checkoutlock/schemas/convert"
)

// Kind is one of the five kinds of policies that a rule names, written as its letter in the rules
// text. Only the constants below are kinds.
type Kind byte

// The kinds of policy. Every rule and the fallback name exactly one of each.
const (
	KindLoan        Kind = 'l'
	KindRequest     Kind = 'r'
	KindNotice      Kind = 'n'
	KindOverdueFine Kind = 'o'
	KindLostItem    Kind = 'i'
)

// kindLetters holds every kind, in the order in which a rule is checked for them.
const kindLetters = "lrnoi"

// Kinds returns every kind.
func Kinds() []Kind { return []Kind(kindLetters) }

// String returns the kind's letter.
func (k Kind) String() string { return string(rune(k)) }

func (k Kind) index() int { return strings.IndexByte(kindLetters, byte(k)) }

// Criteria has the ids of an item and a patron that rules are compared with, exactly and
// case-sensitively. An empty id equals no name, so that only `all` and `!name` match it.
type Criteria struct {
	MaterialType string // m
	LoanType     string // t: the item's temporary loan type, else its permanent one
	PatronGroup  string // g
	Location     string // s: the item's effective location, the others follow from it
	Library      string // c
	Campus       string // b
	Institution  string // a
}

// criteriaLetters holds the criterion letters. A letter's place in it is the place of its value in
// values.
const criteriaLetters = "tabcsmg"

type values [len(criteriaLetters)]string

func (c Criteria) listValues() values {
	return values{c.LoanType, c.Institution, c.Campus, c.Library, c.Location, c.MaterialType, c.PatronGroup}
}

// Conditions says which criteria a rule names, in its own line or in the lines it is nested in.
// `all` and `!` count as naming. The item limit depends on it.
type Conditions struct {
	MaterialType bool
	LoanType     bool
	PatronGroup  bool
}

// Match is one rule that applies.
type Match struct {
	PolicyID   string     // name of the policy as the rule has it; a UUID in FOLIO
	Line       int        // line of the rule in the text, counted from 1
	Conditions Conditions // all false for the fallback
	Fallback   bool       // no rule applies but the fallback
}

// Reference is the place in a rules text where a policy is named.
type Reference struct {
	Kind   Kind
	ID     string
	Line   int // counted from 1
	Column int // of the name, counted from 0
}

// NewNotFound returns the error for a policy that has no record. The message is FOLIO's, which
// names only the kind. Line and column are those of the name.
func (p Reference) NewNotFound() *SyntaxError {
	return &SyntaxError{Message: "The policy " + p.Kind.String() + " does not exist", Line: p.Line, Column: p.Column}
}

// Rules is a compiled rules text. It never changes, and many goroutines may use it at once. Only
// Compile makes one.
type Rules struct {
	statements []*statement                  // in the order of the text, the fallback included
	text       []string                      // lines of the text, for display
	refs       [len(kindLetters)][]Reference // in order of appearance
}

// Compile reads a rules text. Its error is always a *SyntaxError, and ErrBlank for a text of white
// space only. It does not check whether the named policies exist, see PolicyIDs.
func Compile(text string) (*Rules, error) {
	if strings.TrimSpace(text) == "" {
		return nil, ErrBlank
	}
	parsed, err := parse(text)
	if err != nil {
		return nil, err
	}
	r := &Rules{statements: parsed.statements, text: SplitLines(text)}
	known := map[Reference]bool{}
	for _, s := range r.statements {
		s.rank = parsed.priority.rankLine(s.named, s.line)
		for k, ref := range s.policies {
			if id := (Reference{Kind: ref.Kind, ID: ref.ID}); !known[id] {
				known[id] = true
				r.refs[k] = append(r.refs[k], ref)
			}
		}
	}
	return r, nil
}

// Match returns the rule of the highest rank that applies to c. It always exists, because the
// fallback applies to everything. Match panics if k is not one of the constants.
func (r *Rules) Match(k Kind, c Criteria) Match {
	var best *statement
	for s := range r.selectRules(c) {
		if best == nil || s.rank.compare(best.rank) > 0 {
			best = s
		}
	}
	return best.match(k)
}

// MatchAll returns every rule that applies to c, highest rank first. The last is the fallback.
// MatchAll panics if k is not one of the constants.
func (r *Rules) MatchAll(k Kind, c Criteria) []Match {
	rules := slices.SortedFunc(r.selectRules(c), func(a, b *statement) int { return b.rank.compare(a.rank) })
	return convert.All(rules, func(s *statement) Match { return s.match(k) })
}

// selectRules yields the rules that apply to c in the order of the text. It skips what is nested in
// a line that does not apply.
func (r *Rules) selectRules(c Criteria) iter.Seq[*statement] {
	return func(yield func(*statement) bool) {
		v, i := c.listValues(), 0
		for i < len(r.statements) {
			s := r.statements[i]
			if !s.holds(&v) {
				i = s.end
				continue
			}
			if s.policies != nil && !yield(s) {
				return
			}
			i++
		}
	}
}

func (s *statement) holds(v *values) bool {
	for i := range s.criteria {
		if !s.criteria[i].holds(v) {
			return false
		}
	}
	return true
}

func (s *statement) match(k Kind) Match {
	return Match{PolicyID: s.policies[k.index()].ID, Line: s.line, Conditions: s.conditions(), Fallback: s.fallback}
}

func (s *statement) conditions() Conditions {
	return Conditions{MaterialType: s.named.hasAny("m"), LoanType: s.named.hasAny("t"), PatronGroup: s.named.hasAny("g")}
}

// Line returns a line of the text without white space at its ends. Lines are counted from 1, as in
// Match. Any other number returns "".
func (r *Rules) Line(number int) string {
	if number < 1 || number > len(r.text) {
		return ""
	}
	return strings.TrimSpace(r.text[number-1])
}

// CheckPolicies returns a *SyntaxError for the first line with neither policies nor nested lines:
// it never applies. Compile accepts such a line, because stored rules may have one.
func (r *Rules) CheckPolicies() error {
	for i, s := range r.statements {
		if s.policies == nil && s.end == i+1 {
			text := r.text[s.line-1]
			return &SyntaxError{Message: "Policy missing", Line: s.line, Column: len(text) - len(strings.TrimLeft(text, " "))}
		}
	}
	return nil
}

// PolicyIDs returns the distinct policies of kind k that the text names, each with its first place,
// in the order of these places. It panics if k is not one of the constants.
func (r *Rules) PolicyIDs(k Kind) []Reference {
	return slices.Clone(r.refs[k.index()])
}

// SyntaxError is the first fault of a rules text, with its place.
type SyntaxError struct {
	Message string // in FOLIO's words
	Line    int    // counted from 1
	// Column is counted from 0 in characters, as ANTLR does. FOLIO's answer has this number for
	// missing and repeated policies, and one more for everything else.
	Column int
}

// Error returns the message with its line and column, counted as in the fields.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// ErrBlank is Compile's *SyntaxError for a text of white space only. The message is FOLIO's for a
// check-out under blank rules.
var ErrBlank error = &SyntaxError{Message: "Cannot apply blank circulation rules", Line: 1}
