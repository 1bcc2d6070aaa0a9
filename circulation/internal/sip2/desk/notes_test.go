package desk_test

import (
	"context"
	"testing"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/sip2/desk"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestMessages_LeaveNotesForStaff(t *testing.T) {
	t.Parallel()
	refuse := func(context.Context, checkout.Request) error {
		return fault.Validation(fault.Refusal("ITEM_NOT_LOANABLE", "not loanable"))
	}
	const offLine = "11NY" + now + "                  AO|AAann|ABbook|"
	for _, tt := range []struct {
		name, message, noBlock string
		lend                   func(context.Context, checkout.Request) error
		kind, code, item       string
	}{
		{name: "a check-out that lends", message: checkOutBook},
		{name: "a check-out that is refused", message: checkOutBook, lend: refuse},
		{name: "an item that was taken off-line, and is lent", message: offLine},
		{
			name: "an item that was taken off-line", message: offLine, lend: refuse,
			kind: schemas.NoteOffLine, code: "ITEM_NOT_LOANABLE", item: "book",
		},
		{
			name: "an item that was taken off-line, refused always", message: offLine, noBlock: desk.NoBlockRefuse,
			kind: schemas.NoteOffLine, code: "machine.offline", item: "book",
		},
		{
			name: "a check-out that is taken back", message: checkOutBook + "BIY|",
			kind: schemas.NoteCancelled, code: "machine.bringToDesk", item: "book",
		},
		{name: "a card to be blocked", message: "01N" + now + "AO|ALlost|AAann|", kind: schemas.NoteBlockCard},
		{
			name: "a check-out that may have lent", message: checkOutBook,
			lend: func(context.Context, checkout.Request) error { return fault.New(fault.OutcomeUnknown, "lost") },
			kind: schemas.NoteUnknownOutcome, code: string(fault.OutcomeUnknown), item: "book",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.lend, b.terminal.NoBlock = tt.lend, tt.noBlock
			note := b.answer(t.Context(), t, b.desk(t), tt.message).Note
			if tt.kind == "" {
				if note != nil {
					t.Errorf("got %+v, want none", note)
				}
				return
			}
			if note == nil || note.Kind != tt.kind || note.Code != tt.code || note.UserBarcode != "ann" ||
				note.ItemBarcode != tt.item || (note.LoanID != "") != (tt.kind == schemas.NoteUnknownOutcome) {
				t.Errorf("got %+v", note)
			}
		})
	}
}
