package policy_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"checkoutlock/circulation/internal/policy"
)

func TestCompile_SyntaxErrors(t *testing.T) {
	t.Parallel()
	const (
		all  = ": l a1 r a1 n a1 o a1 i a1"
		head = "priority: last-line\nfallback-policy" + all + "\n"
	)
	tests := map[string]struct {
		text         string
		line, column int
		want         string
	}{
		"a plus without a criterion": {
			text: head + "m x +" + all, line: 3, column: 5,
			want: "mismatched input ':' expecting a criterium letter (t, a, b, c, s, m, g)",
		},
		// Priority line.
		"priority missing": {
			text: "fallback-policy" + all, line: 1, column: 0, want: "mismatched input 'fallback-policy' expecting 'priority'",
		},
		"something before priority": {
			text: "! priority: last-line", line: 1, column: 0, want: "mismatched input '!' expecting 'priority'",
		},
		"only a comment": {
			text: "# nothing", line: 1, column: 9, want: "mismatched input end of text expecting 'priority'",
		},
		"priority indented": {
			text: " priority: last-line", line: 1, column: 1, want: "mismatched input indentation expecting 'priority'",
		},
		"no colon": {
			text: "priority last-line", line: 1, column: 9, want: "mismatched input 'last-line' expecting ':'",
		},
		"no priority named": {
			text: "priority:\n", line: 1, column: 9,
			want: "mismatched input end of line expecting 'criterium', 'number-of-criteria', 'first-line', 'last-line' or a " +
				"criterium letter (t, a, b, c, s, m, g)",
		},
		"no line priority": {
			text: "priority: number-of-criteria\n", line: 1, column: 28, want: "mismatched input end of line expecting ','",
		},
		"four priorities": {
			text: "priority: number-of-criteria, criterium(t,a,b,c,s,m,g), x", line: 1, column: 56,
			want: "mismatched input 'x' expecting 'first-line' or 'last-line'",
		},
		"line priority is not last": {
			text: "priority: last-line, number-of-criteria\n", line: 1, column: 19,
			want: "mismatched input ',' expecting end of line or 'fallback-policy'",
		},
		"unknown second priority": {
			text: "priority: number-of-criteria, 5", line: 1, column: 30,
			want: "mismatched input '5' expecting 'criterium', 'number-of-criteria', 'first-line' or 'last-line'",
		},
		"criterium without letters": {
			text: "priority: criterium, last-line", line: 1, column: 19, want: "mismatched input ',' expecting '('",
		},
		"criterium not closed": {
			text: "priority: criterium(t,a,b,c,s,m,g, last-line", line: 1, column: 35,
			want: "mismatched input 'last-line' expecting a criterium letter (t, a, b, c, s, m, g)",
		},
		"too few letters": {
			text: "priority: t g m a b c\nfallback-policy" + all, line: 1, column: 10, want: "7 letters expected, found only 6",
		},
		"too many letters": {
			text: "priority: t g m a b c s s\nfallback-policy" + all, line: 1, column: 10,
			want: "Only 7 letters expected, found 8",
		},
		"too few letters in criterium": {
			text: "priority: criterium(t), last-line", line: 1, column: 20, want: "7 letters expected, found only 1",
		},
		"letter twice": {
			text: "priority: t g m a b s s\nfallback-policy" + all, line: 1, column: 22, want: "Duplicate letter s",
		},
		"number twice": {
			text: "priority: number-of-criteria, number-of-criteria, last-line", line: 1, column: 30,
			want: "Duplicate priority type",
		},
		"criterium twice": {
			text: "priority: criterium(t,a,b,c,s,m,g), criterium(t,a,b,c,s,m,g), last-line", line: 1, column: 36,
			want: "Duplicate priority type",
		},

		// Fallback.
		"fallback missing": {
			text: "priority: last-line\nm book" + all, line: 2, column: 0,
			want: "mismatched input 'm' expecting 'fallback-policy'",
		},
		"fallback missing, no rules": {
			text: "priority: last-line\n", line: 2, column: 0, want: "mismatched input end of text expecting 'fallback-policy'",
		},
		"fallback missing, first-line": {
			text: "priority: first-line\nm book" + all, line: 2, column: 32,
			want: "mismatched input end of text expecting a criterium letter (t, a, b, c, s, m, g) or 'fallback-policy'",
		},
		"fallback before the rules": {
			text: "priority: first-line\nfallback-policy" + all + "\nm book" + all, line: 3, column: 0,
			want: "For 'priority: first-line' the fallback-policy must be after the last rule.",
		},
		"fallback after the rules": {
			text: "priority: last-line\nm book" + all + "\nfallback-policy" + all, line: 2, column: 0,
			want: "mismatched input 'm' expecting 'fallback-policy'",
		},
		"fallback twice": {
			text: head + "fallback-policy" + all, line: 3, column: 0,
			want: "mismatched input 'fallback-policy' expecting a criterium letter (t, a, b, c, s, m, g) or end of text",
		},
		"fallback nested": {
			text: head + "m book\n  fallback-policy" + all, line: 4, column: 2,
			want: "mismatched input 'fallback-policy' expecting a criterium letter (t, a, b, c, s, m, g)",
		},
		"fallback lacks a kind": {
			text: "priority: last-line\nfallback-policy: l a1 r a1 o a1 i a1", line: 2, column: 0,
			want: "Must have a fallback policy of type n",
		},
		"fallback has a kind twice": {
			text: "priority: last-line\nfallback-policy" + all + " r b2", line: 2, column: 0,
			want: "Only one fallback policy of type r is allowed",
		},
		"fallback without policies": {
			text: "priority: last-line\nfallback-policy\nm book" + all, line: 2, column: 15, want: "Policy missing",
		},
		"fallback with colon only": {
			text: "priority: last-line\nfallback-policy:\n", line: 2, column: 16, want: "Policy missing after ':'",
		},
		"fallback without colon": {
			text: "priority: last-line\nfallback-policy l a1", line: 2, column: 16, want: "mismatched input 'l' expecting ':'",
		},
		"fallback goes on in another line": {
			text: "priority: last-line\nfallback-policy: l a1 r a1\n  n a1 o a1 i a1", line: 2, column: 0,
			want: "Must have a fallback policy of type n",
		},

		// Policies of a rule.
		"kind missing": {
			text: head + "m book: l a1 n a1 o a1 i a1", line: 3, column: 6,
			want: "Must contain one of each policy type, missing type r",
		},
		"first kind missing": {
			text: head + "m book: r a1", line: 3, column: 6, want: "Must contain one of each policy type, missing type l",
		},
		"kind twice": {
			text: head + "m book" + all + " i b2", line: 3, column: 6, want: "Only one policy of type i allowed",
		},
		"policies missing":      {text: head + "m book:", line: 3, column: 7, want: "Policy missing after ':'"},
		"policies in a comment": {text: head + "m book:  # l a1", line: 3, column: 15, want: "Policy missing after ':'"},
		"policy without name":   {text: head + "m book: l r a1", line: 3, column: 10, want: "Name missing."},
		"last policy, no name": {
			text: head + "m book: l a1 r a1 n a1 o a1 i\n", line: 3, column: 29, want: "Name missing.",
		},
		"unknown kind": {
			text: head + "m book: x a1", line: 3, column: 8,
			want: "mismatched input 'x' expecting a policy type (l, r, n, o, i)",
		},
		"two names for a policy": {
			text: head + "m book: l a1 a2", line: 3, column: 13,
			want: "mismatched input 'a2' expecting a policy type (l, r, n, o, i) or end of line",
		},
		"reserved policy name": {text: head + "m book: l all", line: 3, column: 10, want: "Name missing."},

		// Criteria.
		"no name":                 {text: head + "m" + all, line: 3, column: 1, want: "Name missing."},
		"no name after not":       {text: head + "m !" + all, line: 3, column: 3, want: "Name missing."},
		"double not":              {text: head + "m !!book" + all, line: 3, column: 3, want: "Name missing."},
		"a single letter as name": {text: head + "m t" + all, line: 3, column: 2, want: "Name missing."},
		"not after a name": {
			text: head + "m book !dvd" + all, line: 3, column: 7, want: "A '!' must precede each name or no name.",
		},
		"name after not": {
			text: head + "m !book dvd" + all, line: 3, column: 8, want: "A '!' must precede each name or no name.",
		},
		"all and a name": {
			text: head + "m all book" + all, line: 3, column: 6,
			want: "mismatched input 'book' expecting '+', ':' or end of line",
		},
		"not all": {text: head + "m !all" + all, line: 3, column: 3, want: "Name missing."},
		"nothing after plus": {
			text: head + "m book +\n", line: 3, column: 8,
			want: "mismatched input end of line expecting a criterium letter (t, a, b, c, s, m, g)",
		},
		"unknown letter": {
			text: head + "x book" + all, line: 3, column: 0,
			want: "mismatched input 'x' expecting a criterium letter (t, a, b, c, s, m, g) or end of text",
		},
		"policy letter begins a line": {
			text: head + "l book" + all, line: 3, column: 0,
			want: "mismatched input 'l' expecting a criterium letter (t, a, b, c, s, m, g) or end of text",
		},
		"first rule indented": {
			text: head + "  m book" + all, line: 3, column: 2,
			want: "mismatched input indentation expecting a criterium letter (t, a, b, c, s, m, g) or end of text",
		},
		"rule between two levels": {
			text: head + "m a1\n    g a1" + all + "\n  g a2" + all, line: 5, column: 2,
			want: "mismatched input indentation expecting a criterium letter (t, a, b, c, s, m, g) or end of text",
		},
		"rule between two nested levels": {
			text: head + "m a1\n  t a1\n      g a1\n    g a2", line: 6, column: 4,
			want: "mismatched input indentation expecting a criterium letter (t, a, b, c, s, m, g)",
		},

		// Characters.
		"tabulator": {
			text: head + "  \tm book" + all, line: 3, column: 2, want: "Tabulator character is not allowed, use spaces instead.",
		},
		"tabulator in empty line": {
			text: head + "\t\nm book" + all, line: 3, column: 0, want: "Tabulator character is not allowed, use spaces instead.",
		},
		"tabulator within a line": {
			text: head + "m\tbook" + all, line: 3, column: 1, want: "Tabulator character is not allowed, use spaces instead.",
		},
		"underscore in a name": {
			text: head + "m bo_ok" + all, line: 3, column: 4, want: "token recognition error at: '_'",
		},
		"no-break space": {
			text: head + "m book\u00a0" + all, line: 3, column: 6, want: `token recognition error at: '\u00a0'`,
		},
		"columns count character": {text: head + "m é", line: 3, column: 2, want: "token recognition error at: 'é'"},
		"the first fault counts":  {text: head + "m" + all + "\nm\tbook", line: 3, column: 1, want: "Name missing."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := policy.Compile(tt.text)
			var got *policy.SyntaxError
			if r != nil || !errors.As(err, &got) {
				t.Fatalf("got %v, %v, want a SyntaxError", r, err)
			}
			if want := (policy.SyntaxError{Message: tt.want, Line: tt.line, Column: tt.column}); *got != want {
				t.Errorf("got  %v\nwant %v", got, &want)
			}
		})
	}
}

func TestRules_CheckPolicies(t *testing.T) {
	t.Parallel()
	const (
		all  = ": l a1 r a1 n a1 o a1 i a1"
		head = "priority: last-line\nfallback-policy" + all + "\n"
	)
	for text, want := range map[string]string{
		"":                                     "",
		"m book" + all:                         "",
		"g x\n  m y" + all:                     "",
		"g x" + all + "\n  m y" + all:          "",
		"g x\n  m y\n    t z" + all:            "",
		"g x\n  m y":                           "line 4, column 2: Policy missing",
		"g x" + all + "\n  m y  # : l a1":      "line 4, column 2: Policy missing",
		"g x\n  m y" + all + "\n  m z":         "line 5, column 2: Policy missing",
		"m book":                               "line 3, column 0: Policy missing",
		"m book\n# a comment\ng x" + all:       "line 3, column 0: Policy missing",
		"g x\n  m y\n    t z\n  m z\n" + "s 1": "line 5, column 4: Policy missing",
	} {
		got := ""
		if err := compile(t, head+text).CheckPolicies(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Whatever the text: either a SyntaxError that points into it, or rules that
// answer for everything.
func FuzzCompile(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(newRandomText(seed).text.String())
	}
	for _, text := range []string{
		"", "\t", "priority: t, s, c, b, a, m, g", letters + "m !a + g all\n  s b c" + five("x"),
		"priority: first-line\r\n# ä\rm a1" + five("x") + "fallback-policy" + five("y"),
		lastLine + "m a1\n    g a1\n  g a2" + five("x"), "priority: criterium(t", "priority: \xff",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := policy.Compile(text)
		if err != nil {
			var fault *policy.SyntaxError
			if !errors.As(err, &fault) || fault.Message == "" {
				t.Fatalf("got %#v, want a SyntaxError with a message", err)
			}
			lines := 1 + strings.Count(text, "\n") + strings.Count(text, "\r")
			if fault.Line < 1 || fault.Line > lines || fault.Column < 0 || fault.Column > utf8.RuneCountInString(text) {
				t.Fatalf("%v is outside the text", fault)
			}
			return
		}
		for _, c := range []policy.Criteria{{}, {MaterialType: "a1", PatronGroup: "v1", LoanType: "v2", Location: "x"}} {
			best := r.Match(policy.KindLoan, c)
			all := r.MatchAll(policy.KindLoan, c)
			if best.PolicyID == "" || best.Line < 1 || all[0] != best {
				t.Fatalf("got %+v of %+v", best, all)
			}
			if last := all[len(all)-1]; last.Conditions != (policy.Conditions{}) {
				t.Fatalf("got %+v last, want the fallback", last)
			}
		}
		if len(r.PolicyIDs(policy.KindLostItem)) == 0 {
			t.Fatal("got no policies, want the fallback's at least")
		}
	})
}
