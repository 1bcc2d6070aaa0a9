package convert_test

import (
	"slices"
	"strconv"
	"testing"

	"checkoutlock/schemas/convert"
)

func TestAll_KeepsTheOrder(t *testing.T) {
	t.Parallel()
	if got := convert.All([]int{3, 1, 2}, strconv.Itoa); !slices.Equal(got, []string{"3", "1", "2"}) {
		t.Errorf("got %q", got)
	}
}

func TestAll_MakesAnEmptyListOfNone(t *testing.T) {
	t.Parallel()
	if got := convert.All(nil, strconv.Itoa); got == nil || len(got) != 0 { // null would be another JSON
		t.Errorf("got %#v, want an empty list", got)
	}
}
