package policy

import (
	"slices"
	"strings"
)

// The parts of error messages that name what may stand in a place.
const (
	wantCriterion  = "a criterium letter (t, a, b, c, s, m, g)"
	wantPolicyType = "a policy type (l, r, n, o, i)"
	wantFallback   = "'fallback-policy'"
	wantLineEnd    = "end of line"
)

// rulesText is a parsed rules text.
type rulesText struct {
	priority   priority
	statements []*statement // in the order of the text, the fallback included
}

// statement is one line of criteria, or the fallback without criteria. It applies if its criteria hold
// and the line it is nested in applies. It is a rule if it names policies.
type statement struct {
	line     int
	criteria []criterion
	named    letterSet   // letters of the criteria and of the lines it is nested in
	policies []Reference // one of each kind in the order of kindLetters, or nil
	fallback bool
	end      int  // place in statements of the first one that is not nested in it
	rank     rank // Compile sets it
}

// criterion is one letter with its names. A letter with `all` makes no criterion.
type criterion struct {
	field int  // place in criteriaLetters and in values
	not   bool // none of the names may match; else one must
	names []string
}

func (c *criterion) holds(v *values) bool {
	return slices.Contains(c.names, v[c.field]) != c.not
}

// parser is a recursive descent over the tokens. It has one method for each part of the grammar in
// FOLIO's CirculationRules.g4. It keeps the first fault and moves to the end of the text, where
// every loop ends.
type parser struct {
	tokens []token
	next   int // of tokens; never passes the last one
	err    *SyntaxError
	out    rulesText
}

func parse(text string) (*rulesText, error) {
	p := &parser{tokens: lex(text)}
	p.parseText()
	if p.err != nil {
		return nil, p.err
	}
	return &p.out, nil
}

func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) advance() token {
	t := p.tokens[p.next]
	p.next = min(p.next+1, len(p.tokens)-1)
	return t
}

// accept skips the given reserved word or sign if it comes next.
func (p *parser) accept(keyword string) bool {
	if !p.peek().isKeyword(keyword) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(keyword string) {
	if !p.accept(keyword) {
		p.failUnexpected("'" + keyword + "'")
	}
}

func (p *parser) expectNewline() {
	if p.peek().kind != tokenNewline {
		p.failUnexpected(wantLineEnd)
		return
	}
	p.advance()
}

func (p *parser) skipNewline() {
	if p.peek().kind == tokenNewline {
		p.advance()
	}
}

// fail reports a fault at t, unless there is an earlier one.
func (p *parser) fail(t token, message string) {
	if t.kind == tokenInvalid {
		message = t.text
	}
	if p.err == nil {
		p.err = &SyntaxError{Message: message, Line: t.line, Column: t.column}
	}
	p.next = len(p.tokens) - 1
}

// failUnexpected reports the next token, where one of the wanted ones should stand.
func (p *parser) failUnexpected(wanted ...string) {
	list := wanted[0]
	if last := len(wanted) - 1; last > 0 {
		list = strings.Join(wanted[:last], ", ") + " or " + wanted[last]
	}
	p.fail(p.peek(), "mismatched input "+p.peek().String()+" expecting "+list)
}
