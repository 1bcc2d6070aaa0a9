package policy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/policy"
)

// five names one policy of each kind, which differ by their letter.
func five(name string) string {
	return ": l " + name + "-l r " + name + "-r n " + name + "-n o " + name + "-o i " + name + "-i\n"
}

var (
	lastLine = "priority: last-line\nfallback-policy" + five("fallback")
	letters  = "priority: t, s, c, b, a, m, g\nfallback-policy" + five("fallback")
)

func compile(t testing.TB, text string) *policy.Rules {
	t.Helper()
	r, err := policy.Compile(text)
	if err != nil {
		t.Fatalf("Compile: %v\n%s", err, text)
	}
	return r
}

func TestMatch_Language(t *testing.T) {
	t.Parallel()
	book := policy.Criteria{
		MaterialType: "book", LoanType: "regular", PatronGroup: "student",
		Location: "shelf", Library: "main", Campus: "north", Institution: "uni",
	}
	tests := map[string]struct {
		rules string // after priority and fallback
		want  bool
	}{
		"m names a material type":              {"m book" + five("x"), true},
		"m names another material type":        {"m dvd" + five("x"), false},
		"t names a loan type":                  {"t regular" + five("x"), true},
		"g names a patron group":               {"g student" + five("x"), true},
		"s names a location":                   {"s shelf" + five("x"), true},
		"c names a library":                    {"c main" + five("x"), true},
		"b names a campus":                     {"b north" + five("x"), true},
		"a names an institution":               {"a uni" + five("x"), true},
		"a letter looks at its own value only": {"m regular student shelf main north uni" + five("x"), false},
		"names are case-sensitive":             {"m Book" + five("x"), false},
		"a name is not a prefix":               {"m boo" + five("x"), false},
		"several names: one of them":           {"m dvd book" + five("x"), true},
		"several names: none of them":          {"m dvd map" + five("x"), false},
		"all":                                  {"m all" + five("x"), true},
		"not another":                          {"m !dvd" + five("x"), true},
		"not this":                             {"m !book" + five("x"), false},
		"none of several":                      {"m !dvd !map" + five("x"), true},
		"one of several excluded":              {"m !dvd !book" + five("x"), false},
		"plus: both":                           {"m book + g student" + five("x"), true},
		"plus: only the first":                 {"m book + g staff" + five("x"), false},
		"plus: only the second":                {"m dvd + g student" + five("x"), false},
		"the same letter twice is and":         {"m book + m dvd" + five("x"), false},
		"plus with not":                        {"m book + g !staff + s all" + five("x"), true},
		"nested: both":                         {"m book\n    g student" + five("x"), true},
		"nested: the parent fails":             {"m dvd\n    g student" + five("x"), false},
		"nested: the child fails":              {"m book\n    g staff" + five("x"), false},
		"nested: not in the parent fails":      {"m !book\n    g student" + five("x"), false},
		"nested: not in the parent holds":      {"m !dvd\n    g student" + five("x"), true},
		"three levels":                         {"m book\n  g student\n    t regular" + five("x"), true},
		"three levels, the middle fails":       {"m book\n  g staff\n    t regular" + five("x"), false},
		"a sibling after a deeper level": {
			"m book\n  g staff\n    t regular" + five("y") + "  s shelf" + five("x"), true,
		},
		"a sibling does not inherit":         {"m dvd\n  t rare" + five("y") + "g student" + five("x"), true},
		"the outer level after two":          {"m dvd\n  g staff\n    t rare" + five("y") + "c main" + five("x"), true},
		"a line without policies is no rule": {"m book\n", false},
		"no spaces around signs":             {"m book+g student:l x-l r x-r n x-n o x-o i x-i\n", true},
		"many spaces around signs": {
			"m   book   +   g   !   staff   :   l  x-l r x-r n x-n o x-o i x-i   \n", true,
		},
		"policies in another order": {"m book: i x-i o x-o n x-n r x-r l x-l\n", true},
		"no line end at the end":    {"m book: l x-l r x-r n x-n o x-o i x-i", true},
		"comment lines, whatever they stand at": {
			"# a\n        / b\n\nm book\n# c\n      \n    /d\n    g student" + five("x"), true,
		},
		"comment behind a rule":                  {"m book /: l y\n  g student # x\n    t regular" + five("x"), true},
		"comment with tabulator and umlaut":      {"# \tä\nm book" + five("x"), true},
		"commented rule":                         {"#m book" + five("x"), false},
		"carriage return and line feed":          {"m book\r\n  g student: l x-l r x-r n x-n o x-o i x-i\r\n", true},
		"carriage returns":                       {"m book\r  g student: l x-l r x-r n x-n o x-o i x-i\r", true},
		"names with digits and minus":            {"m 1-b book -" + five("x"), true},
		"a reserved word in a longer name":       {"m all-books book priority1" + five("x"), true},
		"any depth of indentation within a line": {"m book\n            g student" + five("x"), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := compile(t, lastLine+tt.rules).Match(policy.KindLoan, book).PolicyID
			want := "fallback-l"
			if tt.want {
				want = "x-l"
			}
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// An item without, say, a campus is not in any campus.
func TestMatch_EmptyCriteria(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{"b north": "fallback-l", "b !north": "x-l", "b all": "x-l"} {
		if got := compile(t, lastLine+rule+five("x")).Match(policy.KindLoan, policy.Criteria{}).PolicyID; got != want {
			t.Errorf("%s: got %s, want %s", rule, got, want)
		}
	}
}

func TestMatch_EachKindHasItsPolicy(t *testing.T) {
	t.Parallel()
	r := compile(t, lastLine+"m book"+five("x"))
	for _, k := range []policy.Kind{
		policy.KindLoan, policy.KindRequest, policy.KindNotice, policy.KindOverdueFine, policy.KindLostItem,
	} {
		if got, want := r.Match(k, policy.Criteria{MaterialType: "book"}).PolicyID, "x-"+k.String(); got != want {
			t.Errorf("kind %s: got %s, want %s", k, got, want)
		}
		if got, want := r.Match(k, policy.Criteria{}).PolicyID, "fallback-"+k.String(); got != want {
			t.Errorf("kind %s: got %s, want %s", k, got, want)
		}
	}
}

func TestMatch_Conditions(t *testing.T) {
	t.Parallel()
	tests := map[string]policy.Conditions{
		"":                          {},
		"m book":                    {MaterialType: true},
		"m all":                     {MaterialType: true},
		"m !dvd":                    {MaterialType: true},
		"t regular":                 {LoanType: true},
		"g student":                 {PatronGroup: true},
		"s all + c all":             {},
		"b all + a all":             {},
		"m book + t all + g all":    {MaterialType: true, LoanType: true, PatronGroup: true},
		"g student\n  m book":       {MaterialType: true, PatronGroup: true},
		"t all\n  s all\n    s all": {LoanType: true},
	}
	for rule, want := range tests {
		text := lastLine
		if rule != "" {
			text += "m all + t all + g all\n" // a neighbour, not an ancestor
			text += rule + five("x")
		}
		c := policy.Criteria{MaterialType: "book", LoanType: "regular", PatronGroup: "student"}
		if got := compile(t, text).Match(policy.KindLoan, c).Conditions; got != want {
			t.Errorf("%q: got %+v, want %+v", rule, got, want)
		}
	}
}

func TestMatchAll_BestFirstWithLines(t *testing.T) {
	t.Parallel()
	r := compile(t, letters+
		"m book"+five("book")+ // line 3
		"# comment\n"+
		"m book + t rare"+five("rare-book")+ // line 5
		"g visitor\n"+
		"  t rare"+five("visitor")+ // line 7
		"m dvd"+five("dvd"))
	got := r.MatchAll(policy.KindRequest, policy.Criteria{MaterialType: "book", LoanType: "rare", PatronGroup: "visitor"})
	want := []policy.Match{
		{PolicyID: "visitor-r", Line: 7, Conditions: policy.Conditions{LoanType: true, PatronGroup: true}},
		{PolicyID: "rare-book-r", Line: 5, Conditions: policy.Conditions{MaterialType: true, LoanType: true}},
		{PolicyID: "book-r", Line: 3, Conditions: policy.Conditions{MaterialType: true}},
		{PolicyID: "fallback-r", Line: 2, Fallback: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestPolicyIDs(t *testing.T) {
	t.Parallel()
	r := compile(t, lastLine+"m book"+five("x")+"m dvd"+five("fallback")+"m map"+five("x")+"m cd"+five("y"))
	got := r.PolicyIDs(policy.KindRequest)
	want := []policy.Reference{
		{Kind: policy.KindRequest, ID: "fallback-r", Line: 2, Column: 32},
		{Kind: policy.KindRequest, ID: "x-r", Line: 3, Column: 16},
		{Kind: policy.KindRequest, ID: "y-r", Line: 6, Column: 14},
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	if got, want := got[1].NewNotFound().Error(), "line 3, column 16: The policy r does not exist"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got[0].ID = "changed"
	if again := r.PolicyIDs(policy.KindRequest)[0].ID; again != "fallback-r" {
		t.Errorf("the caller could change the rules: got %s", again)
	}
}

func TestCompile_Blank(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " ", "\n\n", " \t\r\n"} {
		r, err := policy.Compile(text)
		if r != nil || !errors.Is(err, policy.ErrBlank) {
			t.Errorf("Compile(%q): got %v, %v, want ErrBlank", text, r, err)
		}
		var fault *policy.SyntaxError
		if !errors.As(err, &fault) || fault.Message != "Cannot apply blank circulation rules" || fault.Line != 1 {
			t.Errorf("Compile(%q): got %#v, want a SyntaxError in line 1", text, err)
		}
	}
}

func TestRules_Line(t *testing.T) {
	t.Parallel()
	const nested = "m book" // names no policies itself
	for name, end := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
		text := strings.ReplaceAll("priority: last-line\nfallback-policy"+five("f")+"# a comment\n\n"+nested+"\n    g all"+
			five("x")+"  ", "\n", end)
		r := compile(t, text)
		m := r.Match(policy.KindLoan, policy.Criteria{MaterialType: "book"})
		if got, want := r.Line(m.Line), "g all"+strings.TrimSuffix(five("x"), "\n"); got != want || m.Fallback {
			t.Errorf("%s: got %q of %+v, want %q", name, got, m, want)
		}
		m = r.Match(policy.KindLoan, policy.Criteria{})
		if got, want := r.Line(m.Line), "fallback-policy"+strings.TrimSuffix(five("f"), "\n"); got != want || !m.Fallback {
			t.Errorf("%s: got %q of %+v, want %q", name, got, m, want)
		}
		for number, want := range map[int]string{-1: "", 0: "", 1: "priority: last-line", 4: "", 5: nested, 7: "", 8: ""} {
			if got := r.Line(number); got != want {
				t.Errorf("%s: line %d is %q, want %q", name, number, got, want)
			}
		}
	}
}

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
