package policy_test

import (
	"fmt"
	"slices"
	"testing"

	"checkoutlock/circulation/internal/policy"
)

func TestRules_FindUncountedLimits(t *testing.T) {
	t.Parallel()
	const rest = " r r1 n n1 o o1 i i1\n"
	rules, err := policy.Compile("priority: last-line\n" +
		"fallback-policy: l three" + rest +
		"m book: l three" + rest +
		"g adults: l THREE" + rest +
		"    t week: l three" + rest +
		"    s main: l three" + rest +
		"s annex: l free" + rest +
		"t all: l three" + rest +
		"g staff\n" +
		"    c lib: l five" + rest)
	if err != nil {
		t.Fatal(err)
	}
	found := rules.FindUncountedLimits([]policy.LoanPolicy{
		{ID: "Three", ItemLimit: 3}, {ID: "five", ItemLimit: 5}, {ID: "free"},
	})
	var got []string
	for _, u := range found {
		got = append(got, fmt.Sprintf("%d %s %t", u.Line, u.Policy.ID, u.Fallback))
	}
	if want := []string{"2 Three true", "4 Three false", "6 Three false", "10 five false"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i, want := range map[int]string{
		0: "line 2: the item limit 3 of the loan policy three counts nothing, because the fallback names neither a " +
			"material type nor a loan type",
		3: "line 10: the item limit 5 of the loan policy five counts nothing, because the rule names neither a material " +
			"type nor a loan type",
	} {
		if got := found[i].String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
