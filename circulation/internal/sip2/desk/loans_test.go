package desk_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas/fault"
)

const renewBook = "29NN20260301    105959                  AOmain|AAann|ABbook|AC|"

// It is unknown then whether this terminal has just renewed the loan.
func TestRenew_NotWithoutTheLoan(t *testing.T) {
	t.Parallel()
	b := newBackend()
	b.openLoan, b.noLoan = annsLoan, fault.New(fault.Unavailable, "gone")
	if got := b.answer(t.Context(), t, b.desk(t), renewBook); got.Result != wire.Failed || len(b.renewed) != 0 {
		t.Errorf("got %+v, renewed %v, want a failure", got, b.renewed)
	}
}

func TestRenew(t *testing.T) {
	t.Parallel()
	const refused = "300NUN" + now + "AOmain|AAann|ABbook|AJMoby Dick|AH|AF"
	refuse := func(code, message string) error { return fault.Validation(fault.Refusal(code, message)) }
	for name, tt := range map[string]struct {
		err    error
		noLoan bool
		change func(*backend)
		want   string
	}{
		"renews": {want: "301YUY" + now + "AOmain|AAann|ABbook|AJMoby Dick|AH20260328    235959|CK001|"},
		"as often as allowed": {
			err:  refuse("LOAN_RENEWAL_LIMIT_REACHED", "loan at maximum renewal number"),
			want: refused + "This loan has no renewals left.|",
		},
		"a request waits": {
			err:  refuse("RENEWAL_BLOCKED_BY_HOLD_REQUEST", "hold"),
			want: refused + "Another person waits for this item, so it cannot be renewed.|",
		},
		"recalled": {
			err: refuse("RENEWAL_BLOCKED_BY_RECALL", "recall"), want: refused + "This item was recalled. Please return it.|",
		},
		"lent to another patron": {
			err: refuse("ITEM_CHECKED_OUT_TO_DIFFERENT_USER", "no"), want: refused + "This item is not on loan to you.|",
		},
		"not lent": {
			err: refuse(library.CodeNotOnLoan, "No open loan of the item with barcode book exists"), noLoan: true,
			want: refused + "This item is not on loan to you.|",
		},
		"the date would stay": {
			err:  refuse("RENEWAL_WOULD_NOT_CHANGE_DUE_DATE", "same"),
			want: refused + "The due date would not change, so the loan was not renewed.|",
		},
		"an unknown card": {
			err: refuse("ITEM_CHECKED_OUT_TO_DIFFERENT_USER", "no"), change: func(b *backend) { b.NoPatron = true },
			want: refused + "Card ann is not known here. Please ask at the desk.|",
		},
		"an inactive card": {
			err: refuse("USER_IS_INACTIVE_OR_EXPIRED", "no"), change: func(b *backend) { b.Patron.Active = new(false) },
			want: refused + "Your card is not active. Please ask at the desk.|",
		},
		"a block of renewals": {
			err: refuse("USER_IS_BLOCKED_MANUALLY", "no"), change: func(b *backend) {
				b.Manual = []library.ManualBlock{
					{PatronMessage: "Pay.", Borrowing: true}, {PatronMessage: "See us.", Renewals: true},
				}
			},
			want: refused + "See us.|",
		},
		"another reason": {
			err: refuse("LOAN_NOT_RENEWABLE", "no"), want: refused + "This loan cannot be renewed. Please ask at the desk.|",
		},
		"changed twice": {
			err:  fault.New(fault.LoanChanged, "no"),
			want: "300NUN" + now + "AOmain|AAann|ABbook|AJ|AH|AFPlease try again.|",
		},
		"just renewed here": {
			change: func(b *backend) { b.openLoan = renewedLoan(terminalID, "2026-03-01T09:59:30Z") },
			want:   "301YUY" + now + "AOmain|AAann|ABbook|AJMoby Dick|AH20260315    235959|CK001|",
		},
		"just renewed here, for another patron": {
			err: refuse("ITEM_CHECKED_OUT_TO_DIFFERENT_USER", "no"), change: func(b *backend) {
				b.openLoan = strings.Replace(renewedLoan(terminalID, "2026-03-01T09:59:30Z"), librarytest.AnnID,
					librarytest.CarlID, 1)
			},
			want: refused + "This item is not on loan to you.|",
		},
		"renewed here before": {
			change: func(b *backend) { b.openLoan = renewedLoan(terminalID, "2026-03-01T09:58:30Z") },
			want:   "301YUY" + now + "AOmain|AAann|ABbook|AJMoby Dick|AH20260328    235959|CK001|",
		},
		"just renewed elsewhere": {
			change: func(b *backend) { b.openLoan = renewedLoan(librarytest.OtherID, "2026-03-01T09:59:30Z") },
			want:   "301YUY" + now + "AOmain|AAann|ABbook|AJMoby Dick|AH20260328    235959|CK001|",
		},
		"at a machine that renews nothing": {
			change: func(b *backend) { b.terminal.Renewals = new(false) },
			want: "300NUN" + now + "AOmain|AAann|ABbook|AJ|AH|AF" +
				"This loan cannot be renewed. Please ask at the desk.|",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.renewErr = tt.err
			if !tt.noLoan {
				b.openLoan = annsLoan
			}
			if tt.change != nil {
				tt.change(b)
			}
			if got := b.send(t, renewBook); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if name == "just renewed here" && len(b.renewed) > 0 {
				t.Error("renewed twice")
			}
		})
	}
}

func TestRenew_NeedsAnItem(t *testing.T) {
	t.Parallel()
	b := newBackend()
	got := b.send(t, strings.Replace(renewBook, "ABbook", "AJMoby Dick", 1))
	if !strings.HasPrefix(got, "300NUN") || !strings.HasSuffix(got, "AFPlease scan the item again.|") ||
		len(b.renewed) > 0 {
		t.Errorf("got %s", got)
	}
}

// renewedLoan is Ann's, renewed by a user at a time.
func renewedLoan(by, at string) string {
	return strings.TrimSuffix(annsLoan, "}") + `,"action":"renewed","metadata":{"updatedDate":"` + at +
		`","updatedByUserId":"` + by + `"}}`
}

// loanOf returns an open loan of an item that is due on a day of March. It names the item in capitals.
func loanOf(item, day, more string) string {
	return `{"id":"` + item + `","itemId":"` + strings.ToUpper(item) + `","userId":"` + librarytest.AnnID +
		`","dueDate":"2026-03-` + day + `T12:00:00Z","status":{"name":"Open"}` + more + `}`
}

func TestRenewAll(t *testing.T) {
	t.Parallel()
	const all = "6520260301    105959AOmain|AAann|AC|BON|"
	justNow := `,"action":"renewed","metadata":{"updatedDate":"2026-03-01T09:59:30Z","updatedByUserId":"` +
		terminalID + `"}`
	b := newBackend()
	b.loans = []string{loanOf("kept", "03", ""), loanOf("b", "02", ""), loanOf("a", "02", "")}
	b.loans = append(b.loans, loanOf("done", "04", justNow))
	want := "66100030001" + now + "AOmain|BMA|BMB|BMDONE|BNKEPT|AFKEPT: This loan has no renewals left.|"
	if got := b.send(t, all); got != want || strings.Join(b.renewed, " ") != "A B" {
		t.Errorf("got  %s\nwant %s, renewed %q", got, want, b.renewed)
	}

	b = newBackend()
	b.loans = []string{loanOf("kept-gone", "03", "")} // of a deleted item
	want = "66100000001" + now + "AOmain|AFThis loan has no renewals left.|"
	if got := b.send(t, all); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	late, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // less than a renewal may take
	defer cancel()
	b = newBackend()
	b.loans = []string{loanOf("a", "02", "")}
	got := string(b.answer(late, t, b.desk(t), all).Encode(wire.Request{}, wire.UTF8))
	if want := "66100000001" + now + "AOmain|BNA|AFA: not tried|"; got != want || len(b.renewed) > 0 {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	b.NoPatron = true
	want = "66000000000" + now + "AOmain|AFCard ann is not known here. Please ask at the desk.|"
	if got := b.send(t, all); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRenewAll_IsBounded(t *testing.T) {
	t.Parallel()
	b := newBackend()
	for i := range 201 {
		b.loans = append(b.loans, loanOf(fmt.Sprintf("i%03d", i), "02", ""))
	}
	got := b.send(t, "6520260301    105959AOmain|AAann|AC|BON|")
	if !strings.HasPrefix(got, "66102000001") || !strings.HasSuffix(got, "|BNI200|AFI200: not tried|") ||
		len(b.renewed) != 200 {
		t.Errorf("renewed %d, and answered %s", len(b.renewed), got)
	}
	for i := range 300 {
		b.loans = append(b.loans, loanOf(fmt.Sprintf("j%03d", i), "03", ""))
	}
	got = b.send(t, "6520260301    105959AOmain|AAann|AC|BON|")
	if !strings.HasPrefix(got, "66102000301") || strings.Count(got, "|BN") != 200 || strings.Count(got, "|AF") != 200 {
		t.Errorf("answered %s", got)
	}
}

const returnBook = "09N20260301    10595920260301    105959AP|AOmain|ABbook|AC|"

// Another instance renews for a repeat of the same message meanwhile.
func TestRenew_ARepeatMeanwhileIsNoSecondRenewal(t *testing.T) {
	t.Parallel()
	b := newBackend()
	b.openLoan = annsLoan
	b.renewing = func() error {
		b.openLoan = strings.Replace(annsLoan, `"status"`, `"action":"renewed","renewalCount":1,"metadata":{"updatedDate":"`+
			librarytest.Today.Format(time.RFC3339)+`","updatedByUserId":"`+terminalID+`"},"status"`, 1)
		return fault.New(fault.LoanChanged, "renewed meanwhile")
	}
	got := b.send(t, "29NN"+now+"                  AO|AAann|ABbook|")
	if !strings.HasPrefix(got, "301YUY") || len(b.seen) != 1 || b.seen[0] == nil || *b.seen[0] != 0 ||
		len(b.renewed) != 0 {
		t.Errorf("got %s after %d renewals, seen %v", got, len(b.renewed), b.seen)
	}
}

func TestMessages_CompareThePIN(t *testing.T) {
	t.Parallel()
	for code, message := range map[string]string{
		"121": checkOutBook, "301": "29NN" + now + "                  AO|AAann|ABbook|", "661": "65" + now + "AO|AAann|",
	} {
		for _, c := range []struct {
			name      string
			pins      map[string]library.PINCheck
			passwords string
			right     bool
			compared  bool
		}{
			{
				name: "right", pins: map[string]library.PINCheck{librarytest.AnnID + " 1234": library.PINRight},
				right: true, compared: true,
			},
			{
				name: "wrong", pins: map[string]library.PINCheck{librarytest.AnnID + " 1234": library.PINWrong},
				compared: true,
			},
			{name: "not set", pins: map[string]library.PINCheck{librarytest.AnnID + " 1234": library.PINNotSet}, right: true},
			{name: "not to be compared", passwords: "notChecked", right: true, pins: map[string]library.PINCheck{
				librarytest.AnnID + " 1234": library.PINWrong,
			}},
			{name: "storage is away", right: true},
		} {
			b := newBackend()
			b.pins, b.terminal.PatronPasswords = c.pins, c.passwords
			if code != "121" {
				b.openLoan = annsLoan
			}
			answer := b.answer(t.Context(), t, b.desk(t), message+"AD1234|")
			if pin := answer.RightPIN; (pin != nil) != c.compared || pin != nil && *pin != c.right {
				t.Errorf("%s, %s: the PIN is right: %v", message[:2], c.name, pin)
			}
			got := string(answer.Encode(wire.Request{}, wire.UTF8))
			if strings.HasPrefix(got, code) != c.right || c.right == strings.Contains(got, "AFThe PIN is not right") {
				t.Errorf("%s, %s: got %s", message[:2], c.name, got)
			}
		}
	}
}
