package policy_test

import (
	"testing"

	"checkoutlock/circulation/internal/policy"
)

func TestFindMentions(t *testing.T) {
	t.Parallel()
	const book, adults = "1a54b431-2e4f-452d-9cae-9cee66c9a892", "3684A786-6671-4268-8ED0-9DB82EBCA60B"
	line := "m !" + book + " all + g x " + adults + ": l " + book
	found := policy.FindMentions(line)
	if len(found) != 3 {
		t.Fatalf("got %+v, want three", found)
	}
	for i, want := range []policy.Mention{{Kind: "m", ID: book}, {Kind: "x", ID: adults}, {Kind: "l", ID: book}} {
		m := found[i]
		if m.Kind != want.Kind || m.ID != want.ID || line[m.Start:m.End] != want.ID {
			t.Errorf("got %+v, want %+v", m, want)
		}
	}
	if found := policy.FindMentions("fallback-policy: l three-day r x1"); found != nil {
		t.Errorf("got %+v, want none", found)
	}
}
