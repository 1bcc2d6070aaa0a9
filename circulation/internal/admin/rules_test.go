package admin_test

import (
	"slices"
	"testing"

	"checkoutlock/circulation/internal/policy"
)

func TestService_ReviewsTheRules(t *testing.T) {
	t.Parallel()
	const rest = " r r1 n n1 o o1 i i1\n"
	limited := []policy.LoanPolicy{{ID: "three", Name: "Three", ItemLimit: 3}}
	for name, tt := range map[string]struct {
		text      string
		uncounted int // the line
		fault     int // its line
		broken    string
	}{
		"blank":               {text: " \n"},
		"a limit that counts": {text: "priority: last-line\nfallback-policy: l free" + rest + "m book: l three" + rest},
		"one that does not": {
			text: "priority: last-line\nfallback-policy: l free" + rest + "g adults: l three" + rest, uncounted: 3,
		},
		"a line without policies": {
			text:   "priority: last-line\nfallback-policy: l free" + rest + "g x\n    m y\n",
			broken: "line 4, column 4: Policy missing",
		},
		"a missing loan policy": {
			text:   "priority: last-line\nfallback-policy: l missing" + rest,
			broken: "line 2, column 19: The policy l does not exist",
		},
		"a missing notice policy": {
			text:   "priority: last-line\nfallback-policy: l free r r1 n missing o o1 i i1\n",
			broken: "line 2, column 31: The policy n does not exist",
		},
		"a missing lost item policy": {
			text:   "priority: last-line\nfallback-policy: l free r r1 n n1 o o1 i missing\n",
			broken: "line 2, column 41: The policy i does not exist",
		},
		"policies in capitals": {text: "priority: last-line\nfallback-policy: l FREE r R1 n N1 o O1 i I1\n"},
		"rules with a fault":   {text: "priority: last-line\nfallback-policy: l free" + rest + "g\n", fault: 3},
	} {
		b := &backend{}
		s := b.service()
		b.rules, b.policies = tt.text, limited
		got, err := s.Rules(t.Context())
		if err != nil || got.Text != tt.text || (got.Fault != nil) != (tt.fault > 0) ||
			len(got.Uncounted) != min(tt.uncounted, 1) {
			t.Errorf("%s: got %+v, %v", name, got, err)
			continue
		}
		broken := ""
		if got.Broken != nil {
			broken = got.Broken.Error()
		}
		if broken != tt.broken {
			t.Errorf("%s: got %q, want %q", name, broken, tt.broken)
		}
		if got.Fault != nil && got.Fault.Line != tt.fault || tt.uncounted > 0 && got.Uncounted[0].Line != tt.uncounted {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	b := &backend{}
	s := b.service()
	b.rules, b.policies = "priority: last-line\nfallback-policy: l three"+rest+"m book: l free"+rest, limited
	if _, err := s.Rules(t.Context()); err != nil || !slices.Contains(b.asked, "policies [three free]") {
		t.Errorf("got %v, asked %q, want both policies read", err, b.asked)
	}
}

func readError[T any](_ T, err error) error { return err }
