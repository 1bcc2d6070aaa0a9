package desk_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const renewBook = "29NN20260301    105959                  AOmain|AAann|ABbook|AC|"

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

// loanOf returns an open loan of an item that is due on a day of March.
func loanOf(item, day, more string) string {
	return `{"id":"` + item + `","itemId":"` + item + `","userId":"` + librarytest.AnnID + `","dueDate":"2026-03-` + day +
		`T12:00:00Z","status":{"name":"Open"}` + more + `}`
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
	if got := b.send(t, all); got != want || strings.Join(b.renewed, " ") != "a b" {
		t.Errorf("got  %s\nwant %s, renewed %q", got, want, b.renewed)
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
}

const returnBook = "09N20260301    10595920260301    105959AP|AOmain|ABbook|AC|"

func TestCheckIn_Answers(t *testing.T) {
	t.Parallel()
	request := librarytest.NewRequest("r", librarytest.CarlID, "Hold", "Item", schemas.RequestAwaitingPickup, 1)
	branch := library.ServicePoint{ID: librarytest.OtherID, Name: "Branch desk", Code: "br"}
	carlWaits := library.Slip{Requester: library.User{
		ID: librarytest.CarlID, Barcode: "carl", Personal: library.Personal{LastName: "Carl"},
	}}
	copyWith := func(status string) library.Copy {
		return library.Copy{
			Item: library.Item{
				Status: library.Status{Name: status}, CallNumber: library.CallNumber{Prefix: "R", CallNumber: "K1 .M44"},
			},
			Instance: library.Instance{Title: "Moby Dick"}, Location: library.Location{Name: "Main shelf", Code: "ms"},
			Material: library.Named{Name: "Book"},
		}
	}
	const rest = now + "AOmain|ABbook|AQMain shelf|AJMoby Dick|"
	for name, tt := range map[string]struct {
		returned checkin.Returned
		change   func(*backend)
		want     string
	}{
		"at home": {
			returned: checkin.Returned{Copy: copyWith("Available")}, want: "101YUN" + rest + "CK001|CRms|CSR K1 .M44|",
		},
		"at home, and the terminal wants an alert": {
			returned: checkin.Returned{Copy: copyWith("Available")}, change: func(b *backend) { b.terminal.AlertAlways = true },
			want: "101YUN" + rest + "CK001|CRms|CSR K1 .M44|CV00|",
		},
		"for a patron here": {
			returned: checkin.Returned{Copy: copyWith("Awaiting pickup"), Request: &request, Slip: carlWaits},
			want:     "101YUY" + rest + "CK001|CRms|CSR K1 .M44|CV01|",
		},
		"for a patron here, and the terminal shows who waits": {
			returned: checkin.Returned{Copy: copyWith("Awaiting pickup"), Request: &request, Slip: carlWaits},
			change:   func(b *backend) { b.terminal.PersonalData = true },
			want:     "101YUY" + rest + "CK001|CRms|CSR K1 .M44|CV01|CYcarl|DACarl|",
		},
		"for a patron elsewhere": {
			returned: checkin.Returned{Copy: copyWith("In transit"), Request: &request, Destination: branch},
			want:     "101YUY" + rest + "CK001|CRms|CSR K1 .M44|CTBranch desk|CV02|",
		},
		"for a patron elsewhere, named by its code": {
			returned: checkin.Returned{Copy: copyWith("In transit"), Request: &request, Destination: branch},
			change:   func(b *backend) { b.terminal.DestinationForm = "code" },
			want:     "101YUY" + rest + "CK001|CRms|CSR K1 .M44|CTbr|CV02|",
		},
		"on its way home": {
			returned: checkin.Returned{Copy: copyWith("In transit"), Destination: branch},
			want:     "101YUY" + rest + "CK001|CRms|CSR K1 .M44|CTBranch desk|CV04|",
		},
		"to be brought": {
			returned: checkin.Returned{Copy: copyWith("Awaiting delivery"), Request: &request},
			want:     "101YUY" + rest + "CK001|CRms|CSR K1 .M44|CV99|",
		},
		"into the first bin that fits": {
			returned: checkin.Returned{Copy: copyWith("In transit"), Destination: branch},
			change: func(b *backend) {
				b.terminal.Bins = []library.BinRule{
					{Alert: "01", Bin: "1"}, {Destination: "BR", MaterialType: "book", Bin: "2"}, {Bin: "3"},
				}
			},
			want: "101YUY" + rest + "CL2|CK001|CRms|CSR K1 .M44|CTBranch desk|CV04|",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.returned = tt.returned
			if tt.change != nil {
				tt.change(b)
			}
			if got := b.send(t, returnBook); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			want := checkin.Request{
				ItemBarcode: "book", ServicePointID: librarytest.DeskID, CheckInDate: "2026-03-01T10:00:00.000Z",
			}
			if len(b.checkIns) != 1 || b.checkIns[0] != want {
				t.Errorf("checked in %+v, want %+v", b.checkIns, want)
			}
		})
	}
}

func TestCheckIn_Refuses(t *testing.T) {
	t.Parallel()
	refuse := func(code string) error { return fault.Validation(fault.Refusal(code, "no")) }
	for name, tt := range map[string]struct {
		message string
		err     error
		says    string
	}{
		"no item": {message: strings.Replace(returnBook, "ABbook", "AB", 1), says: "Please scan the item again."},
		"an unknown item": {
			err: refuse("ITEM_BARCODE_NOT_FOUND"), says: "Item book is not known here. Please ask at the desk.",
		},
		"claimed returned": {err: refuse("ITEM_CLAIMED_RETURNED"), says: "Please give this item to the desk."},
		"an intellectual item": {
			err: refuse("ITEM_STATUS"), says: "This item cannot be returned here. Please give it to the desk.",
		},
		"a request, after a cancellation": {err: refuse("ITEM_REQUESTED"), says: "Please bring the item to the desk."},
		"a changed item":                  {err: fault.New(fault.ItemChanged, "no"), says: "Please try again."},
		"storage down": {
			err:  fault.New(fault.Unavailable, "no"),
			says: "The system is not available. Please try again later or ask at the desk.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.checkErr = tt.err
			message := returnBook
			if tt.message != "" {
				message = tt.message
			}
			got := b.send(t, message)
			if !strings.HasPrefix(got, "100NUY"+now+"AOmain|AB") || !strings.HasSuffix(got, "|AQ|CV99|AF"+tt.says+"|") {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestCheckIn_ChoosesItsDate(t *testing.T) {
	t.Parallel()
	const today = "2026-03-01T10:00:00.000Z"
	for name, tt := range map[string]struct {
		noBlock, date, want string
	}{
		"now":                                 {noBlock: "N", date: "20260225    120000", want: today},
		"that of the machine, if it happened": {noBlock: "Y", date: "20260225    120000", want: "2026-02-25T11:00:00.000Z"},
		"now for the future":                  {noBlock: "Y", date: "20260302    120000", want: today},
		"now for a date before the loan":      {noBlock: "Y", date: "20260219    120000", want: today},
		"now for no date":                     {noBlock: "Y", date: "2026-03-01T12:00Z ", want: today},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.openLoan = annsLoan
			b.send(t, "09"+tt.noBlock+"20260301    105959"+tt.date+"AP|AOmain|ABbook|AC|BIY|")
			if len(b.checkIns) != 1 || b.checkIns[0].CheckInDate != tt.want || !b.checkIns[0].FillNoRequest {
				t.Errorf("checked in %+v, want %s", b.checkIns, tt.want)
			}
		})
	}
}

func TestCheckIn_Repeats(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		by, at  string
		onLoan  bool
		repeats bool
	}{
		"returned here just now":            {by: terminalID, at: "2026-03-01T09:59:30.000Z", repeats: true},
		"returned here before":              {by: terminalID, at: "2026-03-01T09:58:30.000Z"},
		"returned elsewhere":                {by: librarytest.AnnID, at: "2026-03-01T09:59:30.000Z"},
		"returned here just now, and lent":  {by: terminalID, at: "2026-03-01T09:59:30.000Z", onLoan: true},
		"returned at a time that is no one": {by: terminalID, at: "now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.Book.LastCheckIn = map[string]any{"staffMemberId": tt.by, "dateTime": tt.at}
			b.Book.Status.Name, b.Book.InTransitDestinationServicePointID = "In transit", librarytest.OtherID
			if tt.onLoan {
				b.openLoan = annsLoan
			}
			got := b.send(t, returnBook)
			if (len(b.checkIns) == 0) != tt.repeats || tt.repeats && !strings.Contains(got, "|CTBranch desk|CV04|") {
				t.Errorf("got %s after %d check-ins", got, len(b.checkIns))
			}
		})
	}
}

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
		}{
			{name: "right", pins: map[string]library.PINCheck{librarytest.AnnID + " 1234": library.PINRight}, right: true},
			{name: "wrong", pins: map[string]library.PINCheck{librarytest.AnnID + " 1234": library.PINWrong}},
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
			got := b.send(t, message+"AD1234|")
			if strings.HasPrefix(got, code) != c.right || c.right == strings.Contains(got, "AFThe PIN is not right") {
				t.Errorf("%s, %s: got %s", message[:2], c.name, got)
			}
		}
	}
}
