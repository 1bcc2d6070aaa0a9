package library_test

import (
	"strings"
	"testing"

	"checkoutlock/circulation/internal/library"
)

func TestKeepBarcode(t *testing.T) {
	t.Parallel()
	for barcode, kept := range map[string]bool{
		"book": true, strings.Repeat("ü", 600): true, strings.Repeat("b", 601): false, "a\x00b": false,
	} {
		if got := library.KeepBarcode(barcode); (got == barcode) != kept {
			t.Errorf("%.20q: got %.20q, want it kept: %t", barcode, got, kept)
		}
	}
}
