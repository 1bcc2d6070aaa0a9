package policy

import (
	"fmt"
	"strings"
)

// rulesText reads everything: the priority line, the rules and the fallback,
// which stands after the rules for `priority: first-line` and else before them.
// As in FOLIO's grammar the line end after the priority may be left out.
func (p *parser) rulesText() {
	p.expect("priority")
	p.expect(":")
	if p.accept("first-line") {
		p.out.priority.firstLine = true
		p.skipNewline()
		p.statements(0)
		if !p.peek().is("fallback-policy") {
			p.unexpected(wantCriterion, wantFallback)
		}
		p.fallback()
		if p.peek().kind == tokenLetter {
			p.fail(p.peek(), "For 'priority: first-line' the fallback-policy must be after the last rule.")
		}
	} else {
		p.priority()
		if !p.peek().is("fallback-policy") && p.peek().kind != tokenNewline {
			p.unexpected(wantLineEnd, wantFallback)
		}
		p.skipNewline()
		if !p.peek().is("fallback-policy") {
			p.unexpected(wantFallback)
		}
		p.fallback()
		p.statements(0)
	}
	if p.peek().kind != tokenEnd {
		p.unexpected(wantCriterion, "end of text")
	}
}

// statements reads lines of one level, whose parents name the given letters,
// and whatever is nested in them.
func (p *parser) statements(inherited letterSet) {
	for p.peek().kind == tokenLetter {
		s := &statement{line: p.peek().line, named: inherited}
		p.criterion(s)
		for p.accept("+") {
			p.criterion(s)
		}
		switch {
		case p.peek().is(":"):
			s.policies = p.policies(p.peek(), "Only one policy of type %s allowed",
				"Must contain one of each policy type, missing type %s")
		case p.peek().kind != tokenNewline:
			p.unexpected("'+'", "':'", wantLineEnd)
		}
		p.expectNewline()
		p.out.statements = append(p.out.statements, s)

		if p.peek().kind == tokenIndent {
			p.advance()
			p.nested(s)
		}
		s.end = len(p.out.statements)
	}
}

// nested reads the lines nested in s, of which the indentation is read already.
func (p *parser) nested(s *statement) {
	if p.peek().kind != tokenLetter {
		p.unexpected(wantCriterion)
	}
	p.statements(s.named)
	if p.peek().kind != tokenDedent {
		p.unexpected(wantCriterion)
	}
	p.advance()
}

// criterion reads a letter and `all`, names, or names with a `!` each.
func (p *parser) criterion(s *statement) {
	if p.peek().kind != tokenLetter {
		p.unexpected(wantCriterion)
		return
	}
	c := criterion{field: strings.Index(criteriaLetters, p.advance().text)}
	s.named |= 1 << c.field
	if p.accept("all") {
		return // counts as named, and holds always
	}
	c.not = p.peek().is("!")
	for p.peek().kind == tokenName || p.peek().is("!") {
		if p.peek().is("!") != c.not {
			p.fail(p.peek(), "A '!' must precede each name or no name.")
			return
		}
		p.accept("!")
		if p.peek().kind != tokenName {
			p.fail(p.peek(), "Name missing.")
			return
		}
		c.names = append(c.names, p.advance().text)
	}
	if len(c.names) == 0 {
		p.fail(p.peek(), "Name missing.")
	}
	s.criteria = append(s.criteria, c)
}

// fallback reads the line of policies for whatever no rule applies to.
func (p *parser) fallback() {
	at := p.peek()
	p.expect("fallback-policy")
	switch {
	case p.peek().is(":"):
		p.out.statements = append(p.out.statements, &statement{
			line:     at.line,
			fallback: true,
			end:      len(p.out.statements) + 1,
			policies: p.policies(at, "Only one fallback policy of type %s is allowed",
				"Must have a fallback policy of type %s"),
		})
	case p.peek().kind == tokenNewline:
		p.fail(p.peek(), "Policy missing")
	default:
		p.unexpected("':'")
	}
	p.expectNewline()
}

// policies reads a colon and one policy of each kind, in any order. Too many or
// too few are reported at the given token with these messages, %s being the kind.
func (p *parser) policies(at token, repeated, missing string) []Reference {
	p.expect(":")
	if p.peek().kind == tokenNewline {
		p.fail(p.peek(), "Policy missing after ':'")
	}
	if p.peek().kind != tokenPolicyType {
		p.unexpected(wantPolicyType)
	}
	var count [len(kindLetters)]int
	refs := make([]Reference, len(kindLetters))
	for p.peek().kind == tokenPolicyType {
		kind, name := Kind(p.advance().text[0]), p.peek()
		if name.kind != tokenName {
			p.fail(name, "Name missing.")
			return nil
		}
		p.advance()
		count[kind.index()]++
		refs[kind.index()] = Reference{Kind: kind, ID: name.text, Line: name.line, Column: name.column}
	}
	if p.peek().kind != tokenNewline {
		p.unexpected(wantPolicyType, wantLineEnd)
	}
	for i, n := range count {
		switch kind := kindLetters[i : i+1]; {
		case n > 1:
			p.fail(at, fmt.Sprintf(repeated, kind))
		case n == 0:
			p.fail(at, fmt.Sprintf(missing, kind))
		}
	}
	return refs
}
