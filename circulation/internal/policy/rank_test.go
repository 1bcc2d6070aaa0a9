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
		"last-line":  {priority: "last-line", rules: twoGroups, want: "two"},
		"first-line": {priority: "first-line", rules: twoGroups, want: "one"},
		"last-line knows no letters": {
			priority: "last-line", rules: []string{"t all + s all + g all:strong", "g all:weak"}, want: "weak",
		},
		"first-line knows no letters": {
			priority: "first-line", rules: []string{"g all:weak", "t all + s all + g all:strong"}, want: "weak",
		},
		"seven letters: letter first": {
			priority: "t, s, c, b, a, m, g", rules: []string{"t all:loan", "m all + g all + s all:three"}, want: "loan",
		},
		"seven letters: then the number": {
			priority: "t, s, c, b, a, m, g", rules: []string{"t all + g all:two", "t all:one"}, want: "two",
		},
		"seven letters: then the last": {
			priority: "t, s, c, b, a, m, g", rules: []string{"t all + g all:one", "t all + m all:two"}, want: "two",
		},
		"seven letters without commas": {
			priority: "g m a b c s t", rules: []string{"g all:group", "t all:loan"}, want: "group",
		},
		"seven letters, some commas": {
			priority: "g m, a b c, s t", rules: []string{"g all:group", "t all:loan"}, want: "group",
		},
		"criterium, last-line": {
			priority: criterium + ", last-line", rules: []string{"t all:loan", "g all + m all:group"}, want: "loan",
		},
		"criterium, last-line: tie": {
			priority: criterium + ", last-line", rules: []string{"t all + g all:one", "t all:two"}, want: "two",
		},
		"criterium, first-line: tie": {
			priority: criterium + ", first-line", rules: []string{"t all:one", "t all + g all:two"}, want: "one",
		},
		"number, last-line": {
			priority: number + ", last-line", rules: []string{"g all + m all:two", "t all:one"}, want: "two",
		},
		"number, last-line: tie": {
			priority: number + ", last-line", rules: []string{"t all:one", "g all:two"}, want: "two",
		},
		"number, first-line: tie": {
			priority: number + ", first-line", rules: []string{"g all:one", "t all:two"}, want: "one",
		},
		"criterium, number, last-line": {
			priority: criterium + ", " + number + ", last-line",
			rules:    []string{"t all + g all:one", "t all + m all:two", "t all:three"}, want: "two",
		},
		"criterium, number, first-line": {
			priority: criterium + ", " + number + ", first-line",
			rules:    []string{"t all:zero", "t all + g all:one", "t all + m all:two"}, want: "one",
		},
		"number, criterium, last-line": {
			priority: number + ", " + criterium + ", last-line", rules: []string{"m all + g all:two", "t all:one"}, want: "two",
		},
		"number, criterium: tie of number": {
			priority: number + ", " + criterium + ", first-line", rules: []string{"m all + g all:weak", "t all + g all:strong"},
			want: "strong",
		},
		"highest letter counts, not sum": {
			priority: criterium + ", last-line", rules: []string{"s all:location", "c all + b all + a all + m all + g all:five"},
			want: "location",
		},
		"order of the letters": {
			priority: "criterium(g, m, a, b, c, s, t), last-line", rules: []string{"g all:group", "t all:loan"}, want: "group",
		},
		"locations count once": {
			priority: number + ", last-line", rules: []string{"g all + m all:two", "s all + c all + b all + a all:one"},
			want: "two",
		},
		"location and group are two": {
			priority: number + ", last-line", rules: []string{"s all + c all + g all:two", "m all:one"}, want: "two",
		},
		"a letter twice counts once": {
			priority: number + ", last-line", rules: []string{"g all + m all:two", "g all + g all + g all:one"}, want: "two",
		},
		"not counts as much as a name": {
			priority: number + ", last-line", rules: []string{"g !x + m !y:two", "t all:one"}, want: "two",
		},
		"letters are inherited": {
			priority: criterium + ", last-line", rules: []string{"t all:parent", ">g all:child", "m all:other"}, want: "child",
		},
		"the number is inherited": {
			priority: number + ", last-line", rules: []string{"g all:one", ">m all:two", "t all:three"}, want: "two",
		},
		"inherited and repeated": {
			priority: number + ", last-line", rules: []string{"g all:one", ">g all:same", ">>m all:two", "t all:three"},
			want: "two",
		},
		"a sibling inherits nothing": {
			priority: number + ", last-line", rules: []string{"g all:one", ">m all:two", "t all:three", ">s all:four"},
			want: "four",
		},
		"a rule beats the fallback": {priority: number + ", first-line", rules: []string{"g all:one"}, want: "one"},
		"only the fallback":         {priority: criterium + ", last-line", want: "fallback"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := compile(t, rulesText(tt.priority, tt.rules))
			got := r.Match(policy.KindLoan, policy.Criteria{}).PolicyID
			if want := tt.want + "-l"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if all := r.MatchAll(policy.KindLoan, policy.Criteria{}); all[0].PolicyID != got ||
				all[len(all)-1].PolicyID != "fallback-l" {
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
