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
		"none": {text: "No item with barcode ", id: "", want: "No item with barcode "},
		"a barcode": {
			text: "No item with barcode 21234567 could be found", id: "21234567", want: "No item with barcode … could be found",
		},
		"twice":             {text: "21234567 and 21234567", id: "21234567", want: "… and …"},
		"not another":       {text: "21234568 and 21234567", id: "21234567", want: "21234568 and …"},
		"of six characters": {text: "2 of A-1234", id: "A-1234", want: "2 of …"},
		"alone":             {text: "21234567", id: "21234567", want: "…"},
		"a short one alone": {text: "12345", id: "12345", want: "…"},
		"a word alone":      {text: "AnnLee", id: "annlee", want: "…"},
		"a short one twice": {text: "12345 12345", id: "12345", want: "12345 12345"},
		"whatever its case": {text: "(Barcode: AB1234)", id: "ab1234", want: "(Barcode: …)"},
		"with a blank": {
			text: "No item with barcode reader 17 exists", id: "reader 17", want: "No item with barcode … exists",
		},
		"of odd characters": {text: "(Barcode: *A.(1)", id: "*A.(1", want: "(Barcode: …)"},
		"not in a longer number": {
			text: "No item with barcode 212345678 could be found", id: "21234567",
			want: "No item with barcode 212345678 could be found",
		},
		"nor at the end of one":      {text: "121234567 could be found", id: "21234567", want: "121234567 could be found"},
		"nor in a longer word":       {text: "123456_checkouts-123456-b", id: "123456", want: "123456_checkouts-123456-b"},
		"nor next to another script": {text: "é123456", id: "123456", want: "é123456"},
		"a short one, as a barcode": {
			text: "No item with barcode 15 could be found", id: "15", want: "No item with barcode … could be found",
		},
		"a short one in quotes": {text: `There is no barcode "15"`, id: "15", want: `There is no barcode "…"`},
		"a short one in a title": {
			text: "15 Ways (book) (Barcode: 15) has the item status Aged to lost", id: "15",
			want: "15 Ways (book) (Barcode: …) has the item status Aged to lost",
		},
		"the number of a limit": {
			text: "Patron has reached maximum limit of 15 items for loan type", id: "15",
			want: "Patron has reached maximum limit of 15 items for loan type",
		},
		"a short one in a barcode": {
			text: "No item with barcode 156 could be found", id: "15", want: "No item with barcode 156 could be found",
		},
		"a long word of the message": {
			text: "Patron blocked from borrowing", id: "patron", want: "Patron blocked from borrowing",
		},
		"a word of the message": {
			text: "No item with barcode Item could be found", id: "item", want: "No item with barcode … could be found",
		},
		"overlapping itself":          {text: "a1 a1 a1 a1", id: "a1 a1 a1", want: "… a1"},
		"at the end, as a short text": {text: "barcode: 7", id: "7", want: "barcode: …"},
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
	if got, want := redact.MaskIn("patron 1234567890 with barcode 98765", "1234567890", "",
		"98765"), "patron ****890 with barcode ****5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text   string
		most   int
		head   string
		length int
	}{
		{text: "", most: 0},
		{text: "abc", most: 3, head: "abc"},
		{text: "abcde", most: 3, head: "abc", length: 5},
		{text: "äöü", most: 3, head: "äöü"},
		{text: "äöü", most: 2, head: "äö", length: 3},
		{text: "ä", most: 0, length: 1},
	} {
		if head, length := redact.Cut(tt.text, tt.most); head != tt.head || length != tt.length {
			t.Errorf("%d of %q: got %q, %d, want %q, %d", tt.most, tt.text, head, length, tt.head, tt.length)
		}
	}
}

// A barcode that a text names is hidden wholly, and nothing else changes.
func FuzzHide(f *testing.F) {
	f.Add("No item with barcode 21234567 could be found", "21234567")
	f.Add("barcode: \"15\" 15", "15")
	f.Add("\xff 212345 \xff", "212345")
	f.Fuzz(func(t *testing.T, text, id string) {
		hidden := redact.Hide(text, id, "")
		if len(hidden) > len(text) || len(id) > 0 && (len(text)-len(hidden))%len(id) != 0 {
			t.Errorf("%q without %q is %q", text, id, hidden)
		}
		if sentence := "No item with barcode " + id + " exists"; id != "" && redact.Hide(sentence, id, "") == sentence {
			t.Errorf("%q is not hidden in %q", id, sentence)
		}
	})
}
