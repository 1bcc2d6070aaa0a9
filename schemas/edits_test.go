package schemas_test

import (
	"testing"

	"checkoutlock/schemas"
)

func TestCountEdits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{a: "", b: "", want: 0},
		{a: "", b: "abc", want: 3},
		{a: "abc", b: "abc", want: 0},
		{a: "abc", b: "adc", want: 1},
		{a: "abc", b: "ac", want: 1},
		{a: "ac", b: "abc", want: 1},
		{a: "ab", b: "ba", want: 2},
		{a: "kitten", b: "sitting", want: 3},
		{a: "Zoë", b: "Zoe", want: 1},
	} {
		there, back := schemas.CountEdits([]rune(tt.a), []rune(tt.b)), schemas.CountEdits([]rune(tt.b), []rune(tt.a))
		if there != tt.want || back != tt.want {
			t.Errorf("%q and %q: got %d and %d, want %d", tt.a, tt.b, there, back, tt.want)
		}
	}
}
