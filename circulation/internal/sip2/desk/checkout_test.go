package desk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas/fault"
)

const (
	checkOutBook = "11NN20260301    105959                  AOmain|AAann|ABbook|AC|"
	refusedBook  = "120NUN" + now + "AOmain|AAann|ABbook|AJMoby Dick|AH|"
	lentBook     = "121NUY" + now + "AOmain|AAann|ABbook|AJMoby Dick|AH20260315    235959|"
)

func refuse(details ...fault.Detail) func(context.Context, checkout.Request) error {
	return func(context.Context, checkout.Request) error { return fault.Validation(details...) }
}

func failWith(err error) func(context.Context, checkout.Request) error {
	return func(context.Context, checkout.Request) error { return err }
}

func TestCheckOut_Lends(t *testing.T) {
	t.Parallel()
	b := newBackend()
	if got := b.send(t, checkOutBook); got != lentBook {
		t.Errorf("got  %s\nwant %s", got, lentBook)
	}
	want := checkout.Request{ItemBarcode: "book", UserBarcode: "ann", ServicePointID: b.terminal.ServicePointID}
	if len(b.lent) != 1 || b.lent[0] != want {
		t.Errorf("lent %+v, want %+v", b.lent, want)
	}
}

func TestCheckOut_SaysWhyItRefuses(t *testing.T) {
	t.Parallel()
	yesterday := library.Instant{Time: time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC)}
	limit := fault.Refusal("ITEM_LIMIT_MATERIAL_TYPE", "Patron has reached maximum limit of 3 items for material type",
		fault.Param("itemLimit", "3"))
	inactive := fault.Refusal("USER_IS_INACTIVE_OR_EXPIRED", "Cannot check out to inactive user")
	manual := fault.Refusal("USER_IS_BLOCKED_MANUALLY", "Patron blocked from borrowing", fault.Param("reason", "a liar"))
	out := []fault.Detail{
		fault.Refusal("ITEM_ALREADY_CHECKED_OUT", "Item is already checked out"),
		fault.Refusal("ITEM_HAS_OPEN_LOAN", "Cannot check out item that already has an open loan"),
	}
	for name, tt := range map[string]struct {
		details []fault.Detail
		change  func(*backend)
		says    []string
	}{
		"the item limit": {
			details: []fault.Detail{limit}, says: []string{"You have reached the limit of 3 items of this kind."},
		},
		"an unknown card": {
			details: []fault.Detail{fault.Refusal("USER_BARCODE_NOT_FOUND", "Could not find user")},
			says:    []string{"Card ann is not known here. Please ask at the desk."},
		},
		"an unknown item": {
			details: []fault.Detail{fault.Refusal("ITEM_BARCODE_NOT_FOUND", "No item")},
			says:    []string{"Item book is not known here. Please ask at the desk."},
		},
		"an expired card": {
			details: []fault.Detail{inactive}, change: func(b *backend) { b.Patron.ExpirationDate = yesterday },
			says: []string{"Your card expired on 2026-02-28."},
		},
		"a card that was switched off": {
			details: []fault.Detail{inactive}, change: func(b *backend) { b.Patron.Active = new(false) },
			says: []string{"Your card is not active. Please ask at the desk."},
		},
		"a card without a state": {
			details: []fault.Detail{fault.Refusal("USER_STATUS_CANNOT_BE_DETERMINED", "Cannot determine")},
			change:  func(b *backend) { b.Patron.Active = nil },
			says:    []string{"Your card is not active. Please ask at the desk."},
		},
		"a manual block with a message": {
			details: []fault.Detail{manual},
			change: func(b *backend) {
				b.Manual = []library.ManualBlock{
					{Desc: "a liar", PatronMessage: "Please see us.", Borrowing: true},
					{PatronMessage: "No renewals.", Renewals: true},
					{PatronMessage: "Long ago.", Borrowing: true, ExpirationDate: yesterday},
				}
			},
			says: []string{"Please see us."},
		},
		"a manual block without one": {
			details: []fault.Detail{manual},
			change:  func(b *backend) { b.Manual = []library.ManualBlock{{Desc: "a liar", Borrowing: true}} },
			says:    []string{"Please ask at the desk about your account."},
		},
		"an automated block": {
			details: []fault.Detail{fault.Refusal("USER_IS_BLOCKED_AUTOMATICALLY", "Too many overdue.")},
			says:    []string{"Too many overdue."},
		},
		"another patron's loan": {
			details: out, change: func(b *backend) { b.openLoan = otherLoan },
			says: []string{"This item is on loan. Please give it to the desk."},
		},
		"a request": {
			details: []fault.Detail{fault.Refusal("ITEM_REQUESTED", "requested by Carl")},
			says:    []string{"This item is reserved for another person."},
		},
		"an item that is not lent": {
			details: []fault.Detail{fault.Refusal("ITEM_NOT_LOANABLE", "Item is not loanable")},
			says:    []string{"This item cannot be borrowed."},
		},
		"an item with another status": {
			details: []fault.Detail{fault.Refusal("ITEM_STATUS", "Declared lost")},
			says:    []string{"This item cannot be borrowed now. Please give it to the desk."},
		},
		"no due date": {
			details: []fault.Detail{fault.Refusal("NO_DUE_DATE", "no range")},
			says:    []string{"This item cannot be borrowed here. Please ask at the desk."},
		},
		"no service point": {
			details: []fault.Detail{fault.Refusal("", "Check out must be performed at a service point")},
			says:    []string{"This item cannot be borrowed here. Please ask at the desk."},
		},
		"the first three of four, by their use": {
			details: []fault.Detail{fault.Refusal("ITEM_NOT_LOANABLE", "no"), manual, inactive, limit},
			says: []string{
				"You have reached the limit of 3 items of this kind.", "Your card is not active. Please ask at the desk.",
				"Please ask at the desk about your account.",
			},
		},
		"in German": {
			details: []fault.Detail{limit}, change: func(b *backend) { b.terminal.Language = "de" },
			says: []string{"Sie haben die Grenze von 3 Medien dieser Art erreicht."},
		},
		"in the library's words": {
			details: []fault.Detail{limit},
			change:  func(b *backend) { b.setting = `{"en":{"machine.limit":"{limit} is enough."}}` },
			says:    []string{"3 is enough."},
		},
		"in the terminal's words": {
			details: []fault.Detail{limit},
			change:  func(b *backend) { b.terminal.Texts = map[string]string{"machine.limit": "Only {limit} in this room."} },
			says:    []string{"Only 3 in this room."},
		},
		"in the delivered words, while the library's cannot be read": {
			details: []fault.Detail{limit}, change: func(b *backend) { b.noTexts = errors.New("gone") },
			says: []string{"You have reached the limit of 3 items of this kind."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.lend = refuse(tt.details...)
			if tt.change != nil {
				tt.change(b)
			}
			want := refusedBook + "AF" + strings.Join(tt.says, "|AF") + "|"
			if got := b.send(t, checkOutBook); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestCheckOut_SaysWhatFailed(t *testing.T) {
	t.Parallel()
	const again, gone = "Please try again.", "The system is not available. Please try again later or ask at the desk."
	const here = "This item cannot be borrowed here. Please ask at the desk."
	for name, tt := range map[string]struct {
		err    error
		says   string
		result wire.Result
	}{
		"a held lock": {
			err: fault.New(fault.LockNotAcquired, "unable to acquire lock"), result: wire.Busy,
			says: "Your account is busy. Please wait a moment and try again.",
		},
		"an overload": {
			err: fault.New(fault.Overloaded, "full"), result: wire.Busy,
			says: "Your account is busy. Please wait a moment and try again.",
		},
		"a lock that is held until the deadline": {
			err: fmt.Errorf("waiting: %w", context.DeadlineExceeded), result: wire.Busy,
			says: "Your account is busy. Please wait a moment and try again.",
		},
		"the first message, still under way at the deadline": {
			err: fault.New(fault.RequestRunning, "no"), says: again, result: wire.Busy,
		},
		"a key of another message": {err: fault.New(fault.KeyReused, "no"), says: gone, result: wire.Failed},
		"a changed item":           {err: fault.New(fault.ItemChanged, "no"), says: again, result: wire.Busy},
		"a changed queue":          {err: fault.New(fault.RequestChanged, "no"), says: again, result: wire.Busy},
		"changed settings":         {err: fault.New(fault.SettingsChanged, "no"), says: again, result: wire.Busy},
		"storage down":             {err: fault.New(fault.Unavailable, "no"), says: gone, result: wire.Failed},
		"a bug of storage": {
			err: fault.Wrap(errors.New("storage answered 500"), fault.Internal, "no"), says: gone, result: wire.Failed,
		},
		"no loan policy": {
			err: fault.New(fault.Internal, "Loan policy x could not be found"), says: here, result: wire.Failed,
		},
		"rules in disorder": {err: fault.Wrap(&policy.SyntaxError{}, fault.Internal, "no"), says: here, result: wire.Failed},
		"an unknown outcome": {
			err: fault.New(fault.OutcomeUnknown, "lost"), result: wire.Unknown,
			says: "We could not confirm this loan. Please do not take the item; ask at the desk.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.lend = failWith(tt.err)
			got := b.answer(t.Context(), t, b.desk(t), checkOutBook)
			want := "120NUN" + now + "AOmain|AAann|ABbook|AJ|AH|AF" + tt.says + "|"
			if line := string(got.Encode(wire.Request{}, wire.UTF8)); line != want || got.Result != tt.result {
				t.Errorf("got  %s, %s\nwant %s, %s", line, got.Result, want, tt.result)
			}
			b.lend = nil // a failure is not kept
			if got := b.send(t, checkOutBook); got != lentBook {
				t.Errorf("the repeat got %s", got)
			}
		})
	}
}

// Staff find in the log that the settings do not let an item be lent.
func TestCheckOut_LogsWhatTheSettingsRefuse(t *testing.T) {
	t.Parallel()
	for code, logged := range map[string]bool{"NO_DUE_DATE": true, "ITEM_NOT_LOANABLE": false} {
		b := newBackend()
		b.lend = refuse(fault.Refusal(code, "no range for ann"))
		b.send(t, checkOutBook)
		got := b.logged()
		if strings.Contains(got, "level=ERROR") != logged || strings.Contains(got, "for ann") {
			t.Errorf("%s: logged %q", code, got)
		}
	}
}

func TestCheckOut_OfWhatThePatronHas(t *testing.T) {
	t.Parallel()
	mayRenew := strings.Replace(checkOutBook, "11N", "11Y", 1)
	const until = "AFYou have this item already, until 2026-03-15.|"
	for name, tt := range map[string]struct {
		message  string
		sameItem string
		messages []string // that the terminal may send
		renewErr error
		want     string
	}{
		"is refused": {message: checkOutBook, want: "120YUN" + now + "AOmain|AAann|ABbook|AJMoby Dick|AH|" + until},
		"is renewed": {
			message: mayRenew, want: "121YUY" + now + "AOmain|AAann|ABbook|AJMoby Dick|AH20260328    235959|CK001|",
		},
		"is not renewed again": {
			message: mayRenew, renewErr: fault.Validation(fault.Refusal("LOAN_RENEWAL_LIMIT_REACHED", "no")),
			want: "120YUN" + now + "AOmain|AAann|ABbook|AJMoby Dick|AH|AFThis loan has no renewals left.|",
		},
		"is confirmed": {
			message: checkOutBook, sameItem: "confirm",
			want: "121YUY" + now + "AOmain|AAann|ABbook|AJMoby Dick|AH20260315    235959|CK001|",
		},
		"is refused by a terminal that may not send 29": {
			message: mayRenew, messages: []string{"11"}, want: "120YUN" + now + "AOmain|AAann|ABbook|AJMoby Dick|AH|" + until,
		},
		"is refused by the setting": {
			message: mayRenew, sameItem: "refuse", want: "120YUN" + now + "AOmain|AAann|ABbook|AJMoby Dick|AH|" + until,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.lend = refuse(fault.Refusal("ITEM_LIMIT_LOAN_TYPE", "limit"), fault.Refusal("ITEM_HAS_OPEN_LOAN", "lent"))
			b.openLoan, b.stored[loanID], b.renewErr = annsLoan, annsLoan, tt.renewErr
			b.terminal.SameItem, b.terminal.Messages = tt.sameItem, tt.messages
			for range 2 { // a repeat is answered like the first
				if got := b.send(t, tt.message); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			}
			if len(b.renewed) > 1 || len(b.lent) != 1 {
				t.Errorf("renewed %q, judged %d times", b.renewed, len(b.lent))
			}
		})
	}
}

func TestCheckOut_RefusesWithoutLending(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		message string
		change  func(*backend)
		says    string
	}{
		"no card":        {message: strings.Replace(checkOutBook, "AAann", "AA  ", 1), says: "Please scan your card again."},
		"no item":        {message: strings.Replace(checkOutBook, "ABbook|", "", 1), says: "Please scan the item again."},
		"a cancellation": {message: checkOutBook + "BIY|", says: "Please bring the item to the desk."},
		"taken off-line": {
			message: strings.Replace(checkOutBook, "11NN", "11NY", 1),
			change:  func(b *backend) { b.terminal.NoBlock = "refuse" },
			says:    "Loans taken off-line are not accepted. Please bring the item to the desk.",
		},
		"a card of no kind": {
			message: checkOutBook, change: func(b *backend) { b.terminal.PatronIdentifiers = []string{"username"} },
			says: "Card ann is not known here. Please ask at the desk.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			if tt.change != nil {
				tt.change(b)
			}
			got := b.send(t, tt.message)
			if !strings.HasPrefix(got, "120NUN") || !strings.HasSuffix(got, "|AF"+tt.says+"|") || len(b.lent) > 0 {
				t.Errorf("got %s, lent %v", got, b.lent)
			}
		})
	}
}

func TestCheckOut_FindsCardsOfOtherKinds(t *testing.T) {
	t.Parallel()
	b := newBackend()
	b.terminal.PatronIdentifiers = []string{"externalSystemId", "username"}
	b.users["externalSystemId ann"] = []library.User{{Barcode: "1"}, {Barcode: "2"}} // of two patrons, so of none
	b.users["username ann"] = []library.User{{Barcode: "3"}}
	if got := b.send(t, checkOutBook); got != lentBook || b.lent[0].UserBarcode != "3" {
		t.Errorf("got %s, lent %v", got, b.lent)
	}
}

func TestCheckOut_OfWhatWasTakenOffline(t *testing.T) {
	t.Parallel()
	taken := time.Date(2026, 2, 28, 9, 59, 59, 0, time.UTC)
	for name, tt := range map[string]struct {
		noBlock string
		date    string
		loan    time.Time
		lifts   bool
	}{
		"is judged":                            {noBlock: "judge", date: "20260228    105959"},
		"is lent with the date of the machine": {noBlock: "lend", date: "20260228    105959", loan: taken, lifts: true},
		"is lent now, if that is too old":      {noBlock: "lend", date: "20260201    105959", lifts: true},
		"is lent now, if that is to come":      {noBlock: "lend", date: "20260302    105959", lifts: true},
		"is lent now, if that is none":         {noBlock: "lend", date: strings.Repeat(" ", 18), lifts: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.terminal.NoBlock = tt.noBlock
			got := b.send(t, "11NY"+tt.date+strings.Repeat(" ", 18)+"AOmain|AAann|ABbook|AC|")
			if got != lentBook || len(b.lent) != 1 || !b.lent[0].LoanDate.Equal(tt.loan) {
				t.Fatalf("got %s, lent %+v", got, b.lent)
			}
			o := b.lent[0].OverrideBlocks
			if lifts := o.PatronBlock != nil && o.ItemLimitBlock != nil && o.Comment != ""; lifts != tt.lifts ||
				o.ItemNotLoanableBlock != nil || (len(b.granted[0]) > 0) != tt.lifts {
				t.Errorf("overrides %+v with %v", o, b.granted)
			}
		})
	}
	b := newBackend()
	b.lend = refuse(fault.Refusal("ITEM_LIMIT_LOAN_TYPE", "limit", fault.Param("itemLimit", "3")))
	got := b.send(t, strings.Replace(checkOutBook, "11NN", "11NY", 1))
	if !strings.HasPrefix(got, "120NUN") || !strings.Contains(b.log.String(), "taken off-line was not lent") {
		t.Errorf("got %s and the log %s", got, b.log.String())
	}
}
