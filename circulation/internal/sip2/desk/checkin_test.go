package desk_test

import (
	"strings"
	"testing"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

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
			if len(b.checkIns) != 1 || b.checkIns[0].CheckInDate != tt.want || !b.checkIns[0].FillNoRequest ||
				b.caller.UserID != terminalID || b.caller.Machine != "desk-1" {
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

// A repeat at another instance takes the item back after this one has judged it.
func TestCheckIn_ARepeatMeanwhileIsNoSecondCheckIn(t *testing.T) {
	t.Parallel()
	for _, code := range []fault.Code{fault.ItemChanged, fault.RequestChanged} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.checkErr = fault.New(code, "changed meanwhile")
			b.returning = func() {
				b.Book.LastCheckIn = map[string]any{"staffMemberId": terminalID, "dateTime": "2026-03-01T09:59:59.000Z"}
				b.Book.Version++
			}
			if got := b.send(t, returnBook); !strings.HasPrefix(got, "101Y") || len(b.checkIns) != 1 {
				t.Errorf("got %s after %d check-ins", got, len(b.checkIns))
			}
		})
	}
}
