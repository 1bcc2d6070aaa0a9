// Package policy decides which loan policy applies to a check-out, when the
// loan is due and how many items the policy allows.
//
// Its three parts are the circulation rules (Compile, Rules), the loan policy
// with its due dates (ParseLoanPolicy, LoanPolicy) and the item limit
// (LoanPolicy.ItemLimitFor). Language, messages and rank are those of FOLIO's
// mod-circulation. The package is pure: it reads no clock, no record and no
// setting.
package policy

import (
	"iter"
	"slices"
	"strings"
)

// Kind is one of the five sorts of policy that a rule names, written as its
// letter in the rules text. Only the constants below are kinds.
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

// String returns the kind's letter.
func (k Kind) String() string { return string(rune(k)) }

func (k Kind) index() int { return strings.IndexByte(kindLetters, byte(k)) }

// Criteria says what is lent to whom: the ids that rules are compared with,
// exactly and case-sensitively. An empty id equals no name, so that only `all`
// and `!name` match it.
type Criteria struct {
	MaterialType string // m
	LoanType     string // t: the item's temporary loan type, else its permanent one
	PatronGroup  string // g
	Location     string // s: the item's effective location, the others follow from it
	Library      string // c
	Campus       string // b
	Institution  string // a
}

// criteriaLetters holds the criterion letters. A letter's place in it is the
// place of its value in values.
const criteriaLetters = "tabcsmg"

type values [len(criteriaLetters)]string

func (c Criteria) values() values {
	return values{c.LoanType, c.Institution, c.Campus, c.Library, c.Location, c.MaterialType, c.PatronGroup}
}

// Conditions says which criteria a rule names, in its own line or in the lines
// it is nested in. `all` and `!` count as naming. The item limit depends on it.
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

// NotFound is the error for a policy that has no record. Source: FOLIO's
// `The policy l does not exist`; since that does not say which one, line and
// column are those of the name.
func (p Reference) NotFound() *SyntaxError {
	return &SyntaxError{Message: "The policy " + p.Kind.String() + " does not exist", Line: p.Line, Column: p.Column}
}

// Rules is a compiled rules text. It never changes and may be used by many
// goroutines at once. Only Compile makes one.
type Rules struct {
	lines []line
	text  []string                      // lines of the text, for people
	refs  [len(kindLetters)][]Reference // in order of appearance
}

// line is a line of the text with its own criteria. It applies if they hold and
// the line it is nested in applies. It is a rule if it names policies.
type line struct {
	criteria   []criterion
	end        int // place in Rules.lines of the first one that is not nested in this one
	number     int // in the text, counted from 1
	isRule     bool
	isFallback bool
	rank       rank
	policies   [len(kindLetters)]string
	conditions Conditions
}

// Compile reads a rules text. Its error is always a *SyntaxError, and ErrBlank
// for a text of nothing but white space. Whether the named policies exist is
// not asked here, see PolicyIDs.
func Compile(text string) (*Rules, error) {
	if strings.TrimSpace(text) == "" {
		return nil, ErrBlank
	}
	parsed, err := parse(text)
	if err != nil {
		return nil, err
	}
	r := &Rules{lines: make([]line, len(parsed.statements)), text: splitLines(text)}
	known := map[Reference]bool{}
	for i, s := range parsed.statements {
		r.lines[i] = newLine(s, parsed.priority)
		for k, ref := range s.policies {
			if id := (Reference{Kind: ref.Kind, ID: ref.ID}); !known[id] {
				known[id] = true
				r.refs[k] = append(r.refs[k], ref)
			}
		}
	}
	return r, nil
}

func newLine(s *statement, p priority) line {
	l := line{
		criteria: s.criteria,
		end:      s.end,
		number:   s.line,
		isRule:   s.policies != nil, isFallback: s.fallback,
		rank: p.rank(s.named, s.line),
		conditions: Conditions{
			MaterialType: s.named.hasAny("m"),
			LoanType:     s.named.hasAny("t"),
			PatronGroup:  s.named.hasAny("g"),
		},
	}
	for k, ref := range s.policies {
		l.policies[k] = ref.ID
	}
	return l
}

// Match returns the rule of the highest rank that applies to c. There always
// is one, since the fallback applies to everything. It panics if k is not one
// of the constants.
func (r *Rules) Match(k Kind, c Criteria) Match {
	var best *line
	for l := range r.applying(c) {
		if best == nil || l.rank.compare(best.rank) > 0 {
			best = l
		}
	}
	return best.match(k)
}

// MatchAll returns every rule that applies to c, highest rank first. The last
// is the fallback. It panics if k is not one of the constants.
func (r *Rules) MatchAll(k Kind, c Criteria) []Match {
	lines := slices.SortedFunc(r.applying(c), func(a, b *line) int { return b.rank.compare(a.rank) })
	all := make([]Match, len(lines))
	for i, l := range lines {
		all[i] = l.match(k)
	}
	return all
}

// applying yields the rules that apply to c in the order of the text. What is
// nested in a line that does not apply is passed over.
func (r *Rules) applying(c Criteria) iter.Seq[*line] {
	return func(yield func(*line) bool) {
		v := c.values()
		for i := 0; i < len(r.lines); {
			l := &r.lines[i]
			if !l.holds(&v) {
				i = l.end
				continue
			}
			if l.isRule && !yield(l) {
				return
			}
			i++
		}
	}
}

func (l *line) holds(v *values) bool {
	for i := range l.criteria {
		if !l.criteria[i].holds(v) {
			return false
		}
	}
	return true
}

func (l *line) match(k Kind) Match {
	return Match{PolicyID: l.policies[k.index()], Line: l.number, Conditions: l.conditions, Fallback: l.isFallback}
}

// Line returns a line of the text as it stands, but for white space around it.
// Lines are counted from 1, as in Match; what is no line is "".
func (r *Rules) Line(number int) string {
	if number < 1 || number > len(r.text) {
		return ""
	}
	return strings.TrimSpace(r.text[number-1])
}

// PolicyIDs returns the distinct policies of kind k that the text names, each
// with the place where it stands first, in that order. It panics if k is not
// one of the constants.
func (r *Rules) PolicyIDs(k Kind) []Reference {
	return slices.Clone(r.refs[k.index()])
}
