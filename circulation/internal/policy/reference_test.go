package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/policy"
)

// randomRule is a rule as the reference knows it: all it needs to hold, with
// what it inherits.
type randomRule struct {
	line  int
	needs []need
}

type need struct {
	letter byte
	names  []string // empty for all
	not    bool
}

// randomText writes a random valid text and what it means.
type randomText struct {
	rnd      *rand.Rand
	text     strings.Builder
	lines    int
	rules    []randomRule
	order    string // letters of criterium(…), strongest first
	first    string // what counts first, second: "", "criterium" or "number-of-criteria"
	second   string
	lastLine bool
}

func newRandomText(seed uint64) *randomText {
	r := &randomText{rnd: rand.New(rand.NewPCG(seed, 1))}
	order := []byte("tabcsmg")
	r.rnd.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	r.order = string(order)
	line := []string{"first-line", "last-line"}[r.rnd.IntN(2)]
	r.lastLine = line == "last-line"
	measures := []string{"criterium", "number-of-criteria"}
	r.rnd.Shuffle(2, func(i, j int) { measures[i], measures[j] = measures[j], measures[i] })
	written := line
	switch r.rnd.IntN(4) {
	case 1:
		r.second = measures[0]
		written = r.written(r.second) + ", " + line
	case 2:
		r.first, r.second = measures[0], measures[1]
		written = r.written(r.first) + ", " + r.written(r.second) + ", " + line
	case 3:
		r.first, r.second, r.lastLine = "criterium", "number-of-criteria", true
		written = strings.Join(strings.Split(r.order, ""), ", ")
	}
	r.write("priority: " + written)
	fallbackLast := written == "first-line"
	if !fallbackLast {
		r.fallback()
	}
	for range r.rnd.IntN(6) {
		r.statement(0, nil)
	}
	if fallbackLast {
		r.fallback()
	}
	return r
}

func (r *randomText) written(measure string) string {
	if measure == "criterium" {
		return "criterium(" + strings.Join(strings.Split(r.order, ""), ",") + ")"
	}
	return measure
}

func (r *randomText) write(line string) {
	for r.rnd.IntN(4) == 0 {
		r.lines++
		r.text.WriteString("      # comment\n")
	}
	r.lines++
	r.text.WriteString(line + "\n")
}

func (r *randomText) fallback() {
	r.write("fallback-policy: l fallback r x n x o x i x")
	r.rules = append(r.rules, randomRule{line: r.lines})
}

func (r *randomText) statement(indent int, inherited []need) {
	needs := slices.Clone(inherited)
	var parts []string
	for range 1 + r.rnd.IntN(2) {
		n := need{letter: r.order[r.rnd.IntN(7)]}
		part := string(n.letter)
		if r.rnd.IntN(4) == 0 {
			part += " all"
		} else {
			n.not = r.rnd.IntN(3) == 0
			for range 1 + r.rnd.IntN(2) {
				name := fmt.Sprintf("v%d", r.rnd.IntN(3))
				n.names = append(n.names, name)
				part += " " + map[bool]string{true: "!"}[n.not] + name
			}
		}
		needs, parts = append(needs, n), append(parts, part)
	}
	line := strings.Repeat(" ", indent) + strings.Join(parts, " + ")
	isRule := r.rnd.IntN(4) > 0
	if isRule {
		line += ": l rule r x n x o x i x"
	}
	r.write(line)
	if isRule {
		r.rules = append(r.rules, randomRule{line: r.lines, needs: needs})
	}
	if indent < 9 && r.rnd.IntN(3) == 0 {
		deeper := indent + 1 + r.rnd.IntN(3)
		for range 1 + r.rnd.IntN(3) {
			r.statement(deeper, needs)
		}
	}
}

// salience is FOLIO's number for a rule, as its Text2Drools adds it up.
func (r *randomText) salience(rule randomRule) int {
	value := func(measure string) int {
		highest, seen := 0, map[byte]bool{}
		for _, n := range rule.needs {
			highest = max(highest, 7-strings.IndexByte(r.order, n.letter))
			if strings.IndexByte("abcs", n.letter) >= 0 {
				seen['a'] = true
			} else {
				seen[n.letter] = true
			}
		}
		return map[string]int{"criterium": highest, "number-of-criteria": len(seen)}[measure]
	}
	line := rule.line
	if !r.lastLine {
		line = 10_000_000 - line
	}
	return line + 10_000_000*value(r.second) + 100_000_000*value(r.first)
}

func (rule randomRule) applies(have map[byte]string) bool {
	for _, n := range rule.needs {
		if len(n.names) > 0 && slices.Contains(n.names, have[n.letter]) == n.not {
			return false
		}
	}
	return true
}

// Whatever the text, the rules that apply and their order are those of a
// reference that knows neither parser nor ranks.
func TestMatchAll_EqualsReference(t *testing.T) {
	t.Parallel()
	nested, longest := 0, 0
	for seed := range uint64(3000) {
		want := newRandomText(seed)
		rules := compile(t, want.text.String())
		for range 10 {
			have := map[byte]string{}
			for _, letter := range []byte("tabcsmg") {
				have[letter] = fmt.Sprintf("v%d", want.rnd.IntN(3))
			}
			expected := slices.DeleteFunc(slices.Clone(want.rules), func(rule randomRule) bool { return !rule.applies(have) })
			slices.SortFunc(expected, func(a, b randomRule) int { return want.salience(b) - want.salience(a) })
			wantLines := make([]int, len(expected))
			for i, rule := range expected {
				wantLines[i] = rule.line
			}

			c := policy.Criteria{
				MaterialType: have['m'], LoanType: have['t'], PatronGroup: have['g'],
				Location: have['s'], Library: have['c'], Campus: have['b'], Institution: have['a'],
			}
			var gotLines []int
			for _, m := range rules.MatchAll(policy.KindLoan, c) {
				gotLines = append(gotLines, m.Line)
			}
			if !slices.Equal(gotLines, wantLines) {
				t.Fatalf("seed %d, %v: got lines %v, want %v\n%s", seed, have, gotLines, wantLines, want.text.String())
			}
			if got := rules.Match(policy.KindLoan, c); got.Line != wantLines[0] {
				t.Fatalf("seed %d, %v: Match got line %d, want %d\n%s", seed, have, got.Line, wantLines[0], want.text.String())
			}
			longest = max(longest, len(gotLines))
		}
		if strings.Contains(want.text.String(), "\n   ") {
			nested++
		}
	}
	if nested < 500 || longest < 5 {
		t.Errorf("the texts are too plain to show anything: %d nested, at most %d rules apply", nested, longest)
	}
}
