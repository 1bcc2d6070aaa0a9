package policy_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"checkoutlock/circulation/internal/policy"
)

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
