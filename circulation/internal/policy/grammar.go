package policy

import (
	"fmt"
	"strings"
)

// parseText reads everything: the priority line, the rules and the fallback. The fallback stands
// after the rules for `priority: first-line`, else before them. As in FOLIO's grammar the line end
// after the priority is optional.
func (p *parser) parseText() {
	p.expect("priority")
	p.expect(":")
	if p.accept("first-line") {
		p.out.priority.firstLine = true
		p.skipNewline()
		p.parseStatements(0)
		if !p.peek().isKeyword("fallback-policy") {
			p.failUnexpected(wantCriterion, wantFallback)
		}
		p.parseFallback()
		if p.peek().kind == tokenLetter {
			p.fail(p.peek(), "For 'priority: first-line' the fallback-policy must be after the last rule.")
		}
	} else {
		p.parsePriority()
		if !p.peek().isKeyword("fallback-policy") && p.peek().kind != tokenNewline {
			p.failUnexpected(wantLineEnd, wantFallback)
		}
		p.skipNewline()
		if !p.peek().isKeyword("fallback-policy") {
			p.failUnexpected(wantFallback)
		}
		p.parseFallback()
		p.parseStatements(0)
	}
	if p.peek().kind != tokenEnd {
		p.failUnexpected(wantCriterion, "end of text")
	}
}

// parseStatements reads lines of one level, whose parents name the given letters, and everything
// that is nested in them.
func (p *parser) parseStatements(inherited letterSet) {
	for p.peek().kind == tokenLetter {
		s := &statement{line: p.peek().line, named: inherited}
		p.parseCriterion(s)
		for p.accept("+") {
			p.parseCriterion(s)
		}
		switch {
		case p.peek().isKeyword(":"):
			s.policies = p.parsePolicies(p.peek(), "Only one policy of type %s allowed",
				"Must contain one of each policy type, missing type %s")
		case p.peek().kind != tokenNewline:
			p.failUnexpected("'+'", "':'", wantLineEnd)
		}
		p.expectNewline()
		p.out.statements = append(p.out.statements, s)

		if p.peek().kind == tokenIndent {
			p.advance()
			p.parseNested(s)
		}
		s.end = len(p.out.statements)
	}
}

// parseNested reads the lines nested in s, after their indentation.
func (p *parser) parseNested(s *statement) {
	if p.peek().kind != tokenLetter {
		p.failUnexpected(wantCriterion)
	}
	p.parseStatements(s.named)
	if p.peek().kind != tokenDedent {
		p.failUnexpected(wantCriterion)
	}
	p.advance()
}

// parseCriterion reads a letter and `all`, names, or names with a `!` each.
func (p *parser) parseCriterion(s *statement) {
	if p.peek().kind != tokenLetter {
		p.failUnexpected(wantCriterion)
		return
	}
	c := criterion{field: strings.Index(criteriaLetters, p.advance().text)}
	s.named |= 1 << c.field
	if p.accept("all") {
		return // counts as named, and always holds
	}
	c.not = p.peek().isKeyword("!")
	for p.peek().kind == tokenName || p.peek().isKeyword("!") {
		if p.peek().isKeyword("!") != c.not {
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

// parseFallback reads the line of policies that apply if no rule does.
func (p *parser) parseFallback() {
	at := p.peek()
	p.expect("fallback-policy")
	switch {
	case p.peek().isKeyword(":"):
		p.out.statements = append(p.out.statements, &statement{
			line:     at.line,
			fallback: true,
			end:      len(p.out.statements) + 1,
			policies: p.parsePolicies(at, "Only one fallback policy of type %s is allowed",
				"Must have a fallback policy of type %s"),
		})
	case p.peek().kind == tokenNewline:
		p.fail(p.peek(), "Policy missing")
	default:
		p.failUnexpected("':'")
	}
	p.expectNewline()
}

// parsePolicies reads a colon and one policy of each kind, in any order. It reports too many or too
// few at the given token with these messages; %s is the kind.
func (p *parser) parsePolicies(at token, repeated, missing string) []Reference {
	p.expect(":")
	if p.peek().kind == tokenNewline {
		p.fail(p.peek(), "Policy missing after ':'")
	}
	if p.peek().kind != tokenPolicyType {
		p.failUnexpected(wantPolicyType)
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
		p.failUnexpected(wantPolicyType, wantLineEnd)
	}
	for i, n := range count {
		kind := kindLetters[i : i+1]
		switch {
		case n > 1:
			p.fail(at, fmt.Sprintf(repeated, kind))
		case n == 0:
			p.fail(at, fmt.Sprintf(missing, kind))
		}
	}
	return refs
}
