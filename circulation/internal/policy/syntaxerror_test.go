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
		// Priority line.
		"priority missing":             {"fallback-policy" + all, 1, 0, "mismatched input 'fallback-policy' expecting 'priority'"},
		"something before priority":    {"! priority: last-line", 1, 0, "mismatched input '!' expecting 'priority'"},
		"only a comment":               {"# nothing", 1, 9, "mismatched input end of text expecting 'priority'"},
		"priority indented":            {" priority: last-line", 1, 1, "mismatched input indentation expecting 'priority'"},
		"no colon":                     {"priority last-line", 1, 9, "mismatched input 'last-line' expecting ':'"},
		"no priority named":            {"priority:\n", 1, 9, "mismatched input end of line expecting 'criterium', 'number-of-criteria', 'first-line', 'last-line' or a criterium letter (t, a, b, c, s, m, g)"},
		"no line priority":             {"priority: number-of-criteria\n", 1, 28, "mismatched input end of line expecting ','"},
		"four priorities":              {"priority: number-of-criteria, criterium(t,a,b,c,s,m,g), x", 1, 56, "mismatched input 'x' expecting 'first-line' or 'last-line'"},
		"line priority is not last":    {"priority: last-line, number-of-criteria\n", 1, 19, "mismatched input ',' expecting end of line or 'fallback-policy'"},
		"unknown second priority":      {"priority: number-of-criteria, 5", 1, 30, "mismatched input '5' expecting 'criterium', 'number-of-criteria', 'first-line' or 'last-line'"},
		"criterium without letters":    {"priority: criterium, last-line", 1, 19, "mismatched input ',' expecting '('"},
		"criterium not closed":         {"priority: criterium(t,a,b,c,s,m,g, last-line", 1, 35, "mismatched input 'last-line' expecting a criterium letter (t, a, b, c, s, m, g)"},
		"too few letters":              {"priority: t g m a b c\nfallback-policy" + all, 1, 10, "7 letters expected, found only 6"},
		"too many letters":             {"priority: t g m a b c s s\nfallback-policy" + all, 1, 10, "Only 7 letters expected, found 8"},
		"too few letters in criterium": {"priority: criterium(t), last-line", 1, 20, "7 letters expected, found only 1"},
		"letter twice":                 {"priority: t g m a b s s\nfallback-policy" + all, 1, 22, "Duplicate letter s"},
		"number twice":                 {"priority: number-of-criteria, number-of-criteria, last-line", 1, 30, "Duplicate priority type"},
		"criterium twice":              {"priority: criterium(t,a,b,c,s,m,g), criterium(t,a,b,c,s,m,g), last-line", 1, 36, "Duplicate priority type"},

		// Fallback.
		"fallback missing":                 {"priority: last-line\nm book" + all, 2, 0, "mismatched input 'm' expecting 'fallback-policy'"},
		"fallback missing, no rules":       {"priority: last-line\n", 2, 0, "mismatched input end of text expecting 'fallback-policy'"},
		"fallback missing, first-line":     {"priority: first-line\nm book" + all, 2, 32, "mismatched input end of text expecting a criterium letter (t, a, b, c, s, m, g) or 'fallback-policy'"},
		"fallback before the rules":        {"priority: first-line\nfallback-policy" + all + "\nm book" + all, 3, 0, "For 'priority: first-line' the fallback-policy must be after the last rule."},
		"fallback after the rules":         {"priority: last-line\nm book" + all + "\nfallback-policy" + all, 2, 0, "mismatched input 'm' expecting 'fallback-policy'"},
		"fallback twice":                   {head + "fallback-policy" + all, 3, 0, "mismatched input 'fallback-policy' expecting a criterium letter (t, a, b, c, s, m, g) or end of text"},
		"fallback nested":                  {head + "m book\n  fallback-policy" + all, 4, 2, "mismatched input 'fallback-policy' expecting a criterium letter (t, a, b, c, s, m, g)"},
		"fallback lacks a kind":            {"priority: last-line\nfallback-policy: l a1 r a1 o a1 i a1", 2, 0, "Must have a fallback policy of type n"},
		"fallback has a kind twice":        {"priority: last-line\nfallback-policy" + all + " r b2", 2, 0, "Only one fallback policy of type r is allowed"},
		"fallback without policies":        {"priority: last-line\nfallback-policy\nm book" + all, 2, 15, "Policy missing"},
		"fallback with colon only":         {"priority: last-line\nfallback-policy:\n", 2, 16, "Policy missing after ':'"},
		"fallback without colon":           {"priority: last-line\nfallback-policy l a1", 2, 16, "mismatched input 'l' expecting ':'"},
		"fallback goes on in another line": {"priority: last-line\nfallback-policy: l a1 r a1\n  n a1 o a1 i a1", 2, 0, "Must have a fallback policy of type n"},

		// Policies of a rule.
		"kind missing":           {head + "m book: l a1 n a1 o a1 i a1", 3, 6, "Must contain one of each policy type, missing type r"},
		"first kind missing":     {head + "m book: r a1", 3, 6, "Must contain one of each policy type, missing type l"},
		"kind twice":             {head + "m book" + all + " i b2", 3, 6, "Only one policy of type i allowed"},
		"policies missing":       {head + "m book:", 3, 7, "Policy missing after ':'"},
		"policies in a comment":  {head + "m book:  # l a1", 3, 15, "Policy missing after ':'"},
		"policy without name":    {head + "m book: l r a1", 3, 10, "Name missing."},
		"last policy, no name":   {head + "m book: l a1 r a1 n a1 o a1 i\n", 3, 29, "Name missing."},
		"unknown kind":           {head + "m book: x a1", 3, 8, "mismatched input 'x' expecting a policy type (l, r, n, o, i)"},
		"two names for a policy": {head + "m book: l a1 a2", 3, 13, "mismatched input 'a2' expecting a policy type (l, r, n, o, i) or end of line"},
		"reserved policy name":   {head + "m book: l all", 3, 10, "Name missing."},

		// Criteria.
		"no name":                        {head + "m" + all, 3, 1, "Name missing."},
		"no name after not":              {head + "m !" + all, 3, 3, "Name missing."},
		"double not":                     {head + "m !!book" + all, 3, 3, "Name missing."},
		"a single letter as name":        {head + "m t" + all, 3, 2, "Name missing."},
		"not after a name":               {head + "m book !dvd" + all, 3, 7, "A '!' must precede each name or no name."},
		"name after not":                 {head + "m !book dvd" + all, 3, 8, "A '!' must precede each name or no name."},
		"all and a name":                 {head + "m all book" + all, 3, 6, "mismatched input 'book' expecting '+', ':' or end of line"},
		"not all":                        {head + "m !all" + all, 3, 3, "Name missing."},
		"nothing after plus":             {head + "m book +\n", 3, 8, "mismatched input end of line expecting a criterium letter (t, a, b, c, s, m, g)"},
		"unknown letter":                 {head + "x book" + all, 3, 0, "mismatched input 'x' expecting a criterium letter (t, a, b, c, s, m, g) or end of text"},
		"policy letter begins a line":    {head + "l book" + all, 3, 0, "mismatched input 'l' expecting a criterium letter (t, a, b, c, s, m, g) or end of text"},
		"first rule indented":            {head + "  m book" + all, 3, 2, "mismatched input indentation expecting a criterium letter (t, a, b, c, s, m, g) or end of text"},
		"rule between two levels":        {head + "m a1\n    g a1" + all + "\n  g a2" + all, 5, 2, "mismatched input indentation expecting a criterium letter (t, a, b, c, s, m, g) or end of text"},
		"rule between two nested levels": {head + "m a1\n  t a1\n      g a1\n    g a2", 6, 4, "mismatched input indentation expecting a criterium letter (t, a, b, c, s, m, g)"},

		// Characters.
		"tabulator":               {head + "  \tm book" + all, 3, 2, "Tabulator character is not allowed, use spaces instead."},
		"tabulator in empty line": {head + "\t\nm book" + all, 3, 0, "Tabulator character is not allowed, use spaces instead."},
		"tabulator within a line": {head + "m\tbook" + all, 3, 1, "Tabulator character is not allowed, use spaces instead."},
		"underscore in a name":    {head + "m bo_ok" + all, 3, 4, "token recognition error at: '_'"},
		"no-break space":          {head + "m book\u00a0" + all, 3, 6, `token recognition error at: '\u00a0'`},
		"columns count character": {head + "m é", 3, 2, "token recognition error at: 'é'"},
		"the first fault counts":  {head + "m" + all + "\nm\tbook", 3, 1, "Name missing."},
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
