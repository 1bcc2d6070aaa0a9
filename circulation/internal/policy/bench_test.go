package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/policy"
)

func BenchmarkMatch(b *testing.B) {
	id := func(n int) string { return fmt.Sprintf("43198de5-f56a-4a53-a0bd-%012d", n) }
	text := func(rules int) string {
		var s strings.Builder
		s.WriteString(letters)
		for i := range rules {
			fmt.Fprintf(&s, "m %s + g %s %s + s !%s%s", id(1), id(2), id(3), id(1000+i), five("x"))
		}
		return s.String()
	}
	c := policy.Criteria{MaterialType: id(1), LoanType: id(5), PatronGroup: id(3), Location: id(4)}
	for _, rules := range []int{1, 500} {
		b.Run(fmt.Sprintf("rules=%d", rules), func(b *testing.B) {
			r := compile(b, text(rules))
			b.ReportAllocs()
			for b.Loop() {
				if m := r.Match(policy.KindLoan, c); m.PolicyID != "x-l" {
					b.Fatalf("got %+v, want x-l", m)
				}
			}
		})
	}
}

// A check-out asks the rules while others do, so that one should leave no garbage.
func TestMatch_DoesNotAllocate(t *testing.T) {
	r := compile(t, lastLine+"m book"+five("x")+"m all\n  g student"+five("y"))
	c := policy.Criteria{MaterialType: "book", PatronGroup: "student"}
	if got := testing.AllocsPerRun(100, func() { r.Match(policy.KindLoan, c) }); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}
