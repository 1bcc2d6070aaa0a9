package integration_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// oddBarcodes returns new barcodes by name. They contain characters with a meaning in CQL,
// JSON, SQL or a URL, or have the largest length that can be stored.
func oddBarcodes() map[string]string {
	return map[string]string{
		"the replacement character": uuid.NewString() + "\ufffd",
		"replacement characters":    "\ufffd" + uuid.NewString() + "\ufffd\ufffd",
		"quotes and backslashes":    uuid.NewString() + `\"'\\"\`,
		"wildcards":                 uuid.NewString() + "*?^%_",
		"a parenthesis":             uuid.NewString() + `") or (cql.allRecords=1`,
		"a tab and a line break":    uuid.NewString() + "\t\n",
		"parts of a URL":            uuid.NewString() + "&=+#%00;/",
		"private characters":        uuid.NewString() + "\ue000\ufffd",
		"many long characters":      uuid.NewString() + strings.Repeat("𝟙", 563),
	}
}

func TestBarcodes_OfAllCharacters(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 5)
	for name, odd := range oddBarcodes() {
		t.Run("lend and return "+name, func(t *testing.T) {
			t.Parallel()
			p.addUser(t, record{"barcode": "u" + odd})
			p.addItem(t, record{"barcode": "i" + odd})
			readObject(t, p.lendBook(t, 0, "i"+odd, "u"+odd), http.StatusCreated)
			readObject(t, p.checkInItem(t, "i"+odd, p.ServicePointID), http.StatusOK)
		})
		t.Run("do not find "+name, func(t *testing.T) {
			t.Parallel()
			got := joinMessages(readRefusals(t, p.lendBook(t, 0, "x"+odd, "x"+odd), http.StatusUnprocessableEntity))
			want := "Could not find user with matching barcode [USER_BARCODE_NOT_FOUND]\nNo item with barcode x" + odd +
				" could be found [ITEM_BARCODE_NOT_FOUND]"
			if got != want {
				t.Errorf("got\n%q\nwant\n%q", got, want)
			}
		})
	}
}

func TestBarcodes_MatchLiterally(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 50)
	const patron = `o'brien "*" \?^`
	p.addUser(t, record{"barcode": patron})
	p.addUser(t, record{"barcode": `o'brien "xx" \y^`}) // the wildcards would match it
	for _, barcode := range []string{
		"a b  c", `say "hi"`, `back\slash`, "st*r", "w?at", "^anchor^", "ÄÖÜ/é", "1=1; --", "%41+&x=y#z",
	} {
		p.addItem(t, record{"barcode": barcode})
		loan := readObject(t, p.lendBook(t, 0, barcode, patron), http.StatusCreated)
		checkParts(t, barcode, loan, record{"item.barcode": barcode, "borrower.barcode": patron})
	}
	for _, pattern := range []string{"*", "st*", "w??t", "a b c"} {
		got := joinMessages(readRefusals(t, p.lendBook(t, 0, pattern, patron), http.StatusUnprocessableEntity))
		if want := "No item with barcode " + pattern + " could be found [ITEM_BARCODE_NOT_FOUND]"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
