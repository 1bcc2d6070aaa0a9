package checkout_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const (
	mayPatron   = "circulation.override-patron-block.post"
	mayLimit    = "circulation.override-item-limit-block.post"
	mayLoanable = "circulation.override-item-not-loanable-block.post"
)

// asStaff returns the context of a call with these permissions.
func asStaff(t *testing.T, permissions ...string) context.Context {
	t.Helper()
	return okapi.NewContext(t.Context(), okapi.Call{Permissions: permissions})
}

// newOverride returns the request to lend Ann the book with overrideBlocks as written.
func newOverride(t *testing.T, blocks string) checkout.Request {
	t.Helper()
	r := checkout.Request{ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID}
	if err := json.Unmarshal([]byte(`{"overrideBlocks":`+blocks+`}`), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// blockAll gives Ann every block that staff may lift.
func (w *backend) blockAll() {
	w.Manual = []library.ManualBlock{{Desc: "owes books", Borrowing: true}}
	w.Automated = []library.AutomatedBlock{{BlockBorrowing: true, Message: "too many"}}
	w.open = []int{3}
	w.Policy = strings.Replace(w.Policy, `"loanable":true`, `"loanable":false`, 1)
}

// describeDetails returns each message, with the block and the missing permissions if it has one.
func describeDetails(err error) []string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return nil
	}
	var all []string
	for _, d := range f.Details {
		s := d.Message
		if b := d.OverridableBlock; b != nil {
			s += " [" + b.Name + " " + strings.Join(b.MissingPermissions, ",") + "]"
		}
		all = append(all, s)
	}
	return all
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	const (
		patron   = `{"patronBlock":{},"comment":"c"}`
		limit    = `{"itemLimitBlock":{},"comment":"c"}`
		loanable = `{"itemNotLoanableBlock":{"dueDate":"2026-03-02T10:00:00Z"},"comment":"c"}`
		all      = `{"patronBlock":{},"itemLimitBlock":{},"itemNotLoanableBlock":{"dueDate":"2026-03-02T10:00:00Z"},` +
			`"comment":"c"}`
		manually  = "Patron blocked from borrowing"
		reached   = "Patron has reached maximum limit of 3 items for material type"
		noComment = "Override should be performed with the comment specified"
		tooEarly  = "Due date should be later than loan date"
		denied    = "Insufficient override permissions"
	)
	everything := []string{mayPatron, mayLimit, mayLoanable}
	tests := map[string]struct {
		blocks  string
		granted []string
		want    []string // nothing means that the book is lent
	}{
		"none asked for": {blocks: `{}`, granted: everything, want: []string{
			manually + " [patronBlock ]", "too many [patronBlock ]", reached +
				" [itemLimitBlock ]", "Item is not loanable [itemNotLoanableBlock ]",
		}},
		"none is null, without a permission": {blocks: `null`, want: []string{
			manually + " [patronBlock " + mayPatron + "]", "too many [patronBlock " + mayPatron + "]",
			reached + " [itemLimitBlock " + mayLimit + "]", "Item is not loanable [itemNotLoanableBlock " + mayLoanable + "]",
		}},
		"a comment alone lifts nothing": {
			blocks: `{"comment":"c"}`, granted: []string{mayPatron, mayLimit, mayLoanable},
			want: []string{
				manually + " [patronBlock ]", "too many [patronBlock ]", reached +
					" [itemLimitBlock ]", "Item is not loanable [itemNotLoanableBlock ]",
			},
		},
		"all": {blocks: all, granted: everything},
		"the patron's only": {
			blocks: patron, granted: everything,
			want: []string{reached + " [itemLimitBlock ]", "Item is not loanable [itemNotLoanableBlock ]"},
		},
		"the limit only": {blocks: limit, granted: everything, want: []string{
			manually + " [patronBlock ]", "too many [patronBlock ]", "Item is not loanable [itemNotLoanableBlock ]",
		}},
		"not loanable only": {
			blocks: loanable, granted: everything,
			want: []string{manually + " [patronBlock ]", "too many [patronBlock ]", reached + " [itemLimitBlock ]"},
		},
		"no permission": {blocks: all, want: []string{
			denied + " [patronBlock " + mayPatron + "]", denied + " [itemLimitBlock " + mayLimit + "]", denied +
				" [itemNotLoanableBlock " + mayLoanable + "]",
		}},
		"the wrong permissions": {blocks: all, granted: []string{
			"circulation.override-renewal-block.post", mayLimit,
		}, want: []string{
			denied + " [patronBlock " + mayPatron + "]", denied + " [itemNotLoanableBlock " + mayLoanable + "]",
		}},
		"without permission no word of the comment": {blocks: `{"patronBlock":{}}`, want: []string{
			denied + " [patronBlock " + mayPatron + "]", reached + " [itemLimitBlock " + mayLimit +
				"]", "Item is not loanable [itemNotLoanableBlock " + mayLoanable + "]",
		}},
		"no comment": {
			blocks: strings.Replace(all, `"c"`, `" "`, 1), granted: everything, want: []string{noComment},
		},
		"comment is null": {
			blocks: strings.Replace(all, `"c"`, `null`, 1), granted: everything, want: []string{noComment},
		},
		"no due date": {
			blocks: strings.Replace(all, `{"dueDate":"2026-03-02T10:00:00Z"}`, `{}`, 1), granted: everything,
			want: []string{"Override should be performed with due date specified"},
		},
		"due before the loan": {
			blocks: strings.Replace(all, "03-02T10", "03-01T09", 1), granted: everything, want: []string{tooEarly},
		},
		"due with the loan": {
			blocks: strings.Replace(all, "03-02T10", "03-01T10", 1), granted: everything, want: []string{tooEarly},
		},
		"due at once, no words": {
			blocks:  `{"patronBlock":{},"itemLimitBlock":{},"itemNotLoanableBlock":{"dueDate":"2026-03-01T10:00:00Z"}}`,
			granted: everything, want: []string{tooEarly, noComment},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			w.blockAll()
			_, err := w.service().CheckOut(asStaff(t, tt.granted...), newOverride(t, tt.blocks))
			if got := describeDetails(err); !slices.Equal(got, tt.want) || (err == nil) != (len(w.commits) == 1) {
				t.Errorf("got  %q (%v)\nwant %q", got, err, tt.want)
			}
		})
	}
}

// An override that was not needed counts as one.
func TestOverrides_OfALoan(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ blocks, action, comment, due string }{
		"plain": {blocks: `{"comment":"unused"}`, action: "checkedout", due: "2026-03-15T10:00:00.000Z"},
		"patron block": {
			blocks: `{"patronBlock":{},"comment":"known"}`, action: "checkedOutThroughOverride", comment: "known",
			due: "2026-03-15T10:00:00.000Z",
		},
		"item limit": {
			blocks: `{"itemLimitBlock":{},"comment":"known"}`, action: "checkedOutThroughOverride", comment: "known",
			due: "2026-03-15T10:00:00.000Z",
		},
		"not loanable": {
			blocks: `{"itemNotLoanableBlock":{"dueDate":"2026-03-02"},"comment":"known"}`, action: "checkedOutThroughOverride",
			comment: "known", due: "2026-03-02T00:00:00.000Z",
		},
		"renewal's block": {
			blocks: `{"renewalBlock":{},"comment":"unused"}`, action: "checkedout", due: "2026-03-15T10:00:00.000Z",
		},
		"a later expiration": {
			blocks: `{"itemNotLoanableBlock":{"dueDate":"2026-05-02"},"comment":"known"}`, action: "checkedOutThroughOverride",
			comment: "known", due: "2026-05-02T00:00:00.000Z",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			w.Patron.ExpirationDate.Time = librarytest.Today.AddDate(0, 1, 0)
			if _, err := w.service().CheckOut(asStaff(t, mayPatron, mayLimit, mayLoanable),
				newOverride(t, tt.blocks)); err != nil {
				t.Fatal(err)
			}
			var loan library.Loan
			if err := json.Unmarshal(w.commits[0].Loan, &loan); err != nil {
				t.Fatal(err)
			}
			due, err := loan.DueDate.MarshalJSON()
			if err != nil || loan.Action != tt.action || loan.ActionComment != tt.comment || string(due) != `"`+tt.due+`"` {
				t.Errorf("lent %s", w.commits[0].Loan)
			}
		})
	}
}

func TestOverrides_OfTheLimitHoldUnderTheLock(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.open = []int{3}
	w.commit = []error{errChanged} // the item is judged once more
	if _, err := w.service().CheckOut(asStaff(t, mayLimit),
		newOverride(t, `{"itemLimitBlock":{},"comment":"c"}`)); err != nil {
		t.Fatal(err)
	}
	if len(w.requests) != 1 || len(w.commits) != 2 || len(w.commits[0].Limits) > 0 || len(w.commits[1].Limits) > 0 {
		t.Errorf("asked for %d locks, committed %+v, want two commits without a limit", len(w.requests), w.commits)
	}
}

func TestOverrides_LiftNothingElse(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.Book.Status.Name = "Checked out"
	_, err := w.service().CheckOut(t.Context(), newOverride(t, `{"patronBlock":{},"comment":"c"}`))
	want := []string{"Insufficient override permissions [patronBlock " + mayPatron + "]", "Item is already checked out"}
	if got := describeDetails(err); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
