package redact_test

import (
	"testing"

	"checkoutlock/schemas/redact"
)

func TestMask(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"77477611-ab44-4082-a0d8-42f7acdfde11": "****de11",
		"21234567890123":                       "****0123",
		"123456789012":                         "****9012",
		"12345678901":                          "****901",
		"P-1002":                               "****02",
		"12345":                                "****5",
		"1234":                                 "****",
		"":                                     "****",
		"Zoë Åström":                           "****röm",
	} {
		if got := redact.Mask(id); got != want {
			t.Errorf("%q: got %q, want %q", id, got, want)
		}
	}
}

func TestHide(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, id, want string }{
		"none":                        {"No item", "", "No item"},
		"a barcode":                   {"No item with barcode 21234567 could be found", "21234567", "No item with barcode … could be found"},
		"twice":                       {"21234567 and 21234567", "21234567", "… and …"},
		"alone":                       {"21234567", "21234567", "…"},
		"whatever its case":           {"(Barcode: AB1234)", "ab1234", "(Barcode: …)"},
		"with a blank":                {"No item with barcode reader 17 exists", "reader 17", "No item with barcode … exists"},
		"of odd characters":           {"(Barcode: *A.(1)", "*A.(1", "(Barcode: …)"},
		"not in a longer number":      {"No item with barcode 212345678 could be found", "21234567", "No item with barcode 212345678 could be found"},
		"nor at the end of one":       {"121234567 could be found", "21234567", "121234567 could be found"},
		"nor in a longer word":        {"checkouts-123456-b", "123456", "checkouts-123456-b"},
		"nor next to another script":  {"é123456", "123456", "é123456"},
		"a short one, as a barcode":   {"No item with barcode 15 could be found", "15", "No item with barcode … could be found"},
		"a short one in quotes":       {`There is no barcode "15"`, "15", `There is no barcode "…"`},
		"a short one in a title":      {"15 Ways (book) (Barcode: 15) has the item status Aged to lost", "15", "15 Ways (book) (Barcode: …) has the item status Aged to lost"},
		"the number of a limit":       {"Patron has reached maximum limit of 15 items for loan type", "15", "Patron has reached maximum limit of 15 items for loan type"},
		"a short one in a barcode":    {"No item with barcode 156 could be found", "15", "No item with barcode 156 could be found"},
		"a long word of the message":  {"Patron blocked from borrowing", "patron", "Patron blocked from borrowing"},
		"a word of the message":       {"No item with barcode Item could be found", "item", "No item with barcode … could be found"},
		"overlapping itself":          {"a1 a1 a1 a1", "a1 a1 a1", "… a1"},
		"at the end, as a short text": {"barcode: 7", "7", "barcode: …"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := redact.Hide(tt.text, tt.id, "…"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestMaskIn(t *testing.T) {
	t.Parallel()
	if got, want := redact.MaskIn("patron 1234567890 with barcode 98765", "1234567890", "", "98765"), "patron ****890 with barcode ****5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
