package library_test

import (
	"testing"

	"checkoutlock/circulation/internal/library"
)

func TestSent_NamesAMisspeltProperty(t *testing.T) {
	t.Parallel()
	const key, said = "itemBarcode", "itemBarcode is required: a barcode as text"
	for name, tt := range map[string]struct{ body, sentAs string }{
		"another case":                   {body: `{"itembarcode":"1"}`, sentAs: "itembarcode"},
		"underscores":                    {body: `{"item_barcode":"1"}`, sentAs: "item_barcode"},
		"capitals and hyphens":           {body: `{"ITEM-BARCODE":"1"}`, sentAs: "ITEM-BARCODE"},
		"two characters in wrong order":  {body: `{"itemBracode":"1"}`, sentAs: "itemBracode"},
		"the most similar of several":    {body: `{"itemBarcodes":"1","item_barcode":"1"}`, sentAs: "item_barcode"},
		"the first of several":           {body: `{"itembarcode":"1","item_barcode":"1"}`, sentAs: "item_barcode"},
		"an empty one of the right name": {body: `{"itemBarcode":""}`},
		"other properties of a request":  {body: `{"userBarcode":"1","itemId":"1","servicePointId":"1"}`},
		"a longer name":                  {body: `{"itemBarcodeWithThePrefixOfTheLibraryAndOfTheBranchToo":"1"}`},
		"no object":                      {body: `[]`},
		"no body":                        {body: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := library.Sent(tt.body).NewBarcodeMissing(key)
			message, parameters := said, 1
			if tt.sentAs != "" {
				message += ". It was sent as " + tt.sentAs + ", but names of properties are compared exactly"
				parameters = 2
			}
			if got.Message != message || got.Code != library.CodeMissing || len(got.Parameters) != parameters ||
				got.Parameters[0].Key != key || got.Parameters[0].Value != nil {
				t.Errorf("got %+v, want %q", got, message)
			}
			if tt.sentAs != "" && (got.Parameters[1].Key != "sentAs" || *got.Parameters[1].Value != tt.sentAs) {
				t.Errorf("got the parameter %+v, want sentAs %s", got.Parameters[1], tt.sentAs)
			}
		})
	}
}
