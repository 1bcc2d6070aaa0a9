package checkout_test

import (
	"encoding/json"
	"errors"
	"testing"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestRefusalsThatNameATitleABarcodeOrAnIDCountAsOneCause(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(*world, *checkout.Request)
		want    string // the history's code
		answer  string // the errors without their parameters
	}{
		"no such item": {
			func(_ *world, r *checkout.Request) { r.ItemBarcode = "x" },
			"ITEM_BARCODE_NOT_FOUND", `[{"message":"No item with barcode x could be found"}]`,
		},
		"a lost item": {
			func(w *world, _ *checkout.Request) { w.Book.Status.Name = "Aged to lost" },
			"ITEM_STATUS", `[{"message":"Moby Dick (book) (Barcode: book) has the item status Aged to lost and cannot be checked out"}]`,
		},
		"requested by another": {
			func(w *world, _ *checkout.Request) {
				w.Queue = []schemas.QueuedRequest{librarytest.NewRequest("1", librarytest.CarlID, "Hold", "Item", open, 1)}
			},
			"ITEM_REQUESTED", `[{"message":"` + refused + `"}]`,
		},
		"no such policy": {
			func(w *world, r *checkout.Request) { w.NoPolicy, r.ForceLoanPolicyID = true, librarytest.OtherID },
			"LOAN_POLICY_NOT_FOUND", `[{"message":"Loan policy ` + librarytest.OtherID + ` could not be found"}]`,
		},
		"two of them: the first counts": {
			func(w *world, _ *checkout.Request) {
				w.Book.Status.Name, w.Queue = "Declared lost", []schemas.QueuedRequest{librarytest.NewRequest("1", librarytest.CarlID, "Hold", "Item", open, 1)}
			},
			"ITEM_STATUS", `[{"message":"Moby Dick (book) (Barcode: book) has the item status Declared lost and cannot be checked out"},{"message":"` + refused + `"}]`,
		},
		"a cause before a code counts": {
			func(w *world, _ *checkout.Request) { w.Book.Status.Name, w.onLoan = "Claimed returned", true },
			"ITEM_STATUS", `[{"message":"Moby Dick (book) (Barcode: book) has the item status Claimed returned and cannot be checked out"},` +
				`{"message":"Cannot check out item that already has an open loan","code":"ITEM_HAS_OPEN_LOAN"}]`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			r := checkout.Request{ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID}
			tt.prepare(w, &r)
			_, err := w.service().CheckOut(asStaff(t, mayLimit), r) // for the forced policies
			if e := w.endings[0]; e.Outcome != checkout.OutcomeRefused || e.Code != tt.want {
				t.Errorf("the history has %s %q, want refused %q", e.Outcome, e.Code, tt.want)
			}
			if got := withoutParameters(t, err); got != tt.answer {
				t.Errorf("answered %s\nwant     %s", got, tt.answer)
			}
		})
	}
}

// withoutParameters is the JSON of a refusal's errors but for their parameters.
func withoutParameters(t *testing.T, err error) string {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a refusal", err)
	}
	answered, err := json.Marshal(f.Details)
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Message string          `json:"message"`
		Code    json.RawMessage `json:"code,omitempty"`
		Cause   json.RawMessage `json:"cause,omitempty"` // whatever its case
	}
	if err := json.Unmarshal(answered, &list); err != nil {
		t.Fatal(err)
	}
	if answered, err = json.Marshal(list); err != nil {
		t.Fatal(err)
	}
	return string(answered)
}
