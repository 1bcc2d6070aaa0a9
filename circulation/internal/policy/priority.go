package policy

import (
	"cmp"
	"math/bits"
	"strconv"
	"strings"
)

// measure is what a priority line compares rules by, before it compares their lines. It is written
// as in the text.
type measure string

// The measures. A criterion counts by the place of its letter in criterium(…).
const (
	measureNothing   measure = ""
	measureCriterion measure = "criterium"
	measureNumber    measure = "number-of-criteria"
)

// priority is the priority line: how to order the rules that apply.
type priority struct {
	first, second measure
	firstLine     bool
	// weights holds 7 for the first letter of criterium(…) down to 1 for the last, by place in
	// criteriaLetters.
	weights [len(criteriaLetters)]int
}

// parsePriority reads what follows `priority:`, except `first-line` alone.
func (p *parser) parsePriority() {
	out := &p.out.priority
	switch {
	case p.accept("last-line"):
		return
	case p.peek().kind == tokenLetter:
		out.first, out.second = measureCriterion, measureNumber
		p.parseLetters()
		return
	}
	out.second = p.parseMeasure("'first-line'", "'last-line'", wantCriterion)
	p.expect(",")
	if p.acceptLinePriority() {
		return
	}
	if p.peek().isKeyword(string(out.second)) {
		p.fail(p.peek(), "Duplicate priority type")
	}
	out.first = out.second
	out.second = p.parseMeasure("'first-line'", "'last-line'")
	p.expect(",")
	if !p.acceptLinePriority() {
		p.failUnexpected("'first-line'", "'last-line'")
	}
}

// acceptLinePriority reports whether first-line or last-line came next.
func (p *parser) acceptLinePriority() bool {
	p.out.priority.firstLine = p.accept("first-line")
	return p.out.priority.firstLine || p.accept("last-line")
}

// parseMeasure reads criterium(…) or number-of-criteria. The message of a fault also names the
// caller's alternatives.
func (p *parser) parseMeasure(alternatives ...string) measure {
	switch {
	case p.accept(string(measureNumber)):
		return measureNumber
	case p.accept(string(measureCriterion)):
		p.expect("(")
		p.parseLetters()
		p.expect(")")
		return measureCriterion
	default:
		p.failUnexpected(append([]string{"'criterium'", "'number-of-criteria'"}, alternatives...)...)
		return measureNothing
	}
}

// parseLetters reads each criterion letter once, with or without commas, and gives them the weights
// 7 to 1.
func (p *parser) parseLetters() {
	first := p.peek()
	var letters []token
	for {
		if p.peek().kind != tokenLetter {
			p.failUnexpected(wantCriterion)
			return
		}
		letters = append(letters, p.advance())
		if !p.accept(",") && p.peek().kind != tokenLetter {
			break
		}
	}
	weights, n := &p.out.priority.weights, len(letters)
	switch {
	case n < len(weights):
		p.fail(first, "7 letters expected, found only "+strconv.Itoa(n))
		return
	case n > len(weights):
		p.fail(first, "Only 7 letters expected, found "+strconv.Itoa(n))
		return
	}
	for i, t := range letters {
		field := strings.Index(criteriaLetters, t.text)
		if weights[field] != 0 {
			p.fail(t, "Duplicate letter "+t.text)
			return
		}
		weights[field] = len(weights) - i
	}
}

// letterSet is a set of criterion letters: bit i is the i-th of criteriaLetters.
type letterSet uint8

func newLetterSet(letters string) letterSet {
	var s letterSet
	for i := range letters {
		s |= 1 << strings.IndexByte(criteriaLetters, letters[i])
	}
	return s
}

func (s letterSet) hasAny(letters string) bool { return s&newLetterSet(letters) != 0 }

// count returns the number of letters. Those of the location hierarchy count as one together.
func (s letterSet) count() int {
	const locations = "abcs"
	n := bits.OnesCount8(uint8(s &^ newLetterSet(locations)))
	if s.hasAny(locations) {
		n++
	}
	return n
}

// rank orders rules: first, second and line are compared in turn, higher wins.
//
// Source: FOLIO adds line + second*10^7 + first*10^8, with negative lines for first-line. That is
// the same order for fewer than ten million lines. It puts the fallback last in every valid text:
// the fallback has no criteria, and where only the line counts the grammar puts it at the end that
// loses.
type rank struct{ first, second, line int }

func (r rank) compare(other rank) int {
	return cmp.Or(
		cmp.Compare(r.first, other.first),
		cmp.Compare(r.second, other.second),
		cmp.Compare(r.line, other.line),
	)
}

// rankLine returns the rank of the rule in the given line that names these letters,
// inherited ones included.
func (p priority) rankLine(named letterSet, line int) rank {
	if p.firstLine {
		line = -line
	}
	return rank{first: p.weigh(p.first, named), second: p.weigh(p.second, named), line: line}
}

func (p priority) weigh(m measure, named letterSet) int {
	switch m {
	case measureCriterion:
		highest := 0
		for field, weight := range p.weights {
			if named&(1<<field) != 0 {
				highest = max(highest, weight)
			}
		}
		return highest
	case measureNumber:
		return named.count()
	default:
		return 0
	}
}
