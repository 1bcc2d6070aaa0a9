package policy

import (
	"cmp"
	"math/bits"
	"strings"
)

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
