package policy_test

import (
	"strings"
	"testing"

	"checkoutlock/circulation/internal/policy"
)

// Each text is the rules alone, all of which apply; the winner is named.
func TestMatch_Priority(t *testing.T) {
	t.Parallel()
	const (
		criterium = "criterium(t, s, c, b, a, m, g)"
		number    = "number-of-criteria"
	)
	twoGroups := []string{"g all:one", "g all:two"}
	tests := map[string]struct {
		priority string
		rules    []string // criteria:policy
		want     string
	}{
		"last-line":                        {"last-line", twoGroups, "two"},
		"first-line":                       {"first-line", twoGroups, "one"},
		"last-line knows no letters":       {"last-line", []string{"t all + s all + g all:strong", "g all:weak"}, "weak"},
		"first-line knows no letters":      {"first-line", []string{"g all:weak", "t all + s all + g all:strong"}, "weak"},
		"seven letters: letter first":      {"t, s, c, b, a, m, g", []string{"t all:loan", "m all + g all + s all:three"}, "loan"},
		"seven letters: then the number":   {"t, s, c, b, a, m, g", []string{"t all + g all:two", "t all:one"}, "two"},
		"seven letters: then the last":     {"t, s, c, b, a, m, g", []string{"t all + g all:one", "t all + m all:two"}, "two"},
		"seven letters without commas":     {"g m a b c s t", []string{"g all:group", "t all:loan"}, "group"},
		"seven letters, some commas":       {"g m, a b c, s t", []string{"g all:group", "t all:loan"}, "group"},
		"criterium, last-line":             {criterium + ", last-line", []string{"t all:loan", "g all + m all:group"}, "loan"},
		"criterium, last-line: tie":        {criterium + ", last-line", []string{"t all + g all:one", "t all:two"}, "two"},
		"criterium, first-line: tie":       {criterium + ", first-line", []string{"t all:one", "t all + g all:two"}, "one"},
		"number, last-line":                {number + ", last-line", []string{"g all + m all:two", "t all:one"}, "two"},
		"number, last-line: tie":           {number + ", last-line", []string{"t all:one", "g all:two"}, "two"},
		"number, first-line: tie":          {number + ", first-line", []string{"g all:one", "t all:two"}, "one"},
		"criterium, number, last-line":     {criterium + ", " + number + ", last-line", []string{"t all + g all:one", "t all + m all:two", "t all:three"}, "two"},
		"criterium, number, first-line":    {criterium + ", " + number + ", first-line", []string{"t all:zero", "t all + g all:one", "t all + m all:two"}, "one"},
		"number, criterium, last-line":     {number + ", " + criterium + ", last-line", []string{"m all + g all:two", "t all:one"}, "two"},
		"number, criterium: tie of number": {number + ", " + criterium + ", first-line", []string{"m all + g all:weak", "t all + g all:strong"}, "strong"},
		"highest letter counts, not sum":   {criterium + ", last-line", []string{"s all:location", "c all + b all + a all + m all + g all:five"}, "location"},
		"order of the letters":             {"criterium(g, m, a, b, c, s, t), last-line", []string{"g all:group", "t all:loan"}, "group"},
		"locations count once":             {number + ", last-line", []string{"g all + m all:two", "s all + c all + b all + a all:one"}, "two"},
		"location and group are two":       {number + ", last-line", []string{"s all + c all + g all:two", "m all:one"}, "two"},
		"a letter twice counts once":       {number + ", last-line", []string{"g all + m all:two", "g all + g all + g all:one"}, "two"},
		"not counts as much as a name":     {number + ", last-line", []string{"g !x + m !y:two", "t all:one"}, "two"},
		"letters are inherited":            {criterium + ", last-line", []string{"t all:parent", ">g all:child", "m all:other"}, "child"},
		"the number is inherited":          {number + ", last-line", []string{"g all:one", ">m all:two", "t all:three"}, "two"},
		"inherited and repeated":           {number + ", last-line", []string{"g all:one", ">g all:same", ">>m all:two", "t all:three"}, "two"},
		"a sibling inherits nothing":       {number + ", last-line", []string{"g all:one", ">m all:two", "t all:three", ">s all:four"}, "four"},
		"a rule beats the fallback":        {number + ", first-line", []string{"g all:one"}, "one"},
		"only the fallback":                {criterium + ", last-line", nil, "fallback"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := compile(t, rulesText(tt.priority, tt.rules))
			got := r.Match(policy.KindLoan, policy.Criteria{}).PolicyID
			if want := tt.want + "-l"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if all := r.MatchAll(policy.KindLoan, policy.Criteria{}); all[0].PolicyID != got || all[len(all)-1].PolicyID != "fallback-l" {
				t.Errorf("got all %+v, want %s first and the fallback last", all, got)
			}
		})
	}
}

// rulesText writes rules of the form criteria:policy, with a > per level of
// nesting, and puts the fallback where the priority wants it.
func rulesText(priority string, rules []string) string {
	fallback := "fallback-policy" + five("fallback")
	var b strings.Builder
	b.WriteString("priority: " + priority + "\n")
	if priority != "first-line" {
		b.WriteString(fallback)
	}
	for _, rule := range rules {
		criteria, name, _ := strings.Cut(strings.TrimLeft(rule, ">"), ":")
		b.WriteString(strings.Repeat("  ", strings.Count(rule, ">")) + criteria + five(name))
	}
	if priority == "first-line" {
		b.WriteString(fallback)
	}
	return b.String()
}

// FOLIO's grammar asks for no line end between the priority and what follows.
func TestCompile_PriorityAndNextInOneLine(t *testing.T) {
	t.Parallel()
	r := compile(t, "priority: last-line fallback-policy"+five("fallback")+"m book"+five("x"))
	if got := r.Match(policy.KindLoan, policy.Criteria{MaterialType: "book"}); got.PolicyID != "x-l" || got.Line != 2 {
		t.Errorf("got %+v, want x-l of line 2", got)
	}
	r = compile(t, "\n # c\npriority: first-line m book"+five("x")+"fallback-policy"+five("fallback"))
	if got := r.Match(policy.KindLoan, policy.Criteria{MaterialType: "book"}); got.PolicyID != "x-l" || got.Line != 3 {
		t.Errorf("got %+v, want x-l of line 3", got)
	}
}
