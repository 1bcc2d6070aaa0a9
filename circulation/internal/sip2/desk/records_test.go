package desk_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const (
	askStatus  = "2300120260301    105959AOmain|AAann|AC|AD|"
	noFlags    = "              "
	allDenied  = "YYYY          "
	annsStatus = "001" + now + "AOmain|AAann|AEAnn Reader|"
)

func TestPatronStatus(t *testing.T) {
	t.Parallel()
	yesterday := library.Instant{Time: time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC)}
	for name, tt := range map[string]struct {
		message string
		change  func(*backend)
		want    string
	}{
		"a patron": {want: "24" + noFlags + annsStatus + "BLY|"},
		"the last name first": {
			change: func(b *backend) { b.terminal.NameForm = "lastFirst" },
			want:   "24" + noFlags + "001" + now + "AOmain|AAann|AEReader, Ann|BLY|",
		},
		"a language that is no one": {
			message: strings.Replace(askStatus, "001", "x1 ", 1),
			want:    "24" + noFlags + "000" + now + "AOmain|AAann|AEAnn Reader|BLY|",
		},
		"a password of a patron": {
			message: strings.Replace(askStatus, "AD|", "AD1234|", 1),
			want:    "24" + noFlags + annsStatus + "BLY|CQN|AFThe PIN could not be checked.|",
		},
		"the right PIN": {
			message: strings.Replace(askStatus, "AD|", "AD1234|", 1),
			change:  func(b *backend) { b.setPIN(library.PINRight) }, want: "24" + noFlags + annsStatus + "BLY|CQY|",
		},
		"a wrong PIN": {
			message: strings.Replace(askStatus, "AD|", "AD1234|", 1),
			change:  func(b *backend) { b.setPIN(library.PINWrong) },
			want:    "24" + noFlags + annsStatus + "BLY|CQN|AFThe PIN is not right.|",
		},
		"a patron without a PIN": {
			message: strings.Replace(askStatus, "AD|", "AD1234|", 1),
			change:  func(b *backend) { b.setPIN(library.PINNotSet) },
			want:    "24" + noFlags + annsStatus + "BLY|CQN|AFThe PIN could not be checked.|",
		},
		"the PIN of an unknown card": {
			message: strings.Replace(askStatus, "AD|", "AD1234|", 1), change: func(b *backend) { b.NoPatron = true },
			want: "24" + allDenied + "001" + now + "AOmain|AAann|AE|BLN|CQN|" +
				"AFCard ann is not known here. Please ask at the desk.|",
		},
		"a password, not to compare": {
			message: strings.Replace(askStatus, "AD|", "AD1234|", 1),
			change:  func(b *backend) { b.terminal.PatronPasswords = "notChecked" },
			want:    "24" + noFlags + annsStatus + "BLY|CQY|",
		},
		"a block of borrowing": {
			change: func(b *backend) {
				b.Manual = []library.ManualBlock{{Desc: "a liar", PatronMessage: "See us.", Borrowing: true}}
			},
			want: "24Y             " + annsStatus + "BLY|AFSee us.|",
		},
		"a block of renewals without a message": {
			change: func(b *backend) { b.Manual = []library.ManualBlock{{Desc: "a liar", Renewals: true}} },
			want:   "24 Y            " + annsStatus + "BLY|AFPlease ask at the desk about your account.|",
		},
		"a block that has expired": {
			change: func(b *backend) { b.Manual = []library.ManualBlock{{Borrowing: true, ExpirationDate: yesterday}} },
			want:   "24" + noFlags + annsStatus + "BLY|",
		},
		"an automated block of requests": {
			change: func(b *backend) {
				b.Automated = []library.AutomatedBlock{{BlockRequests: true, Message: "Too many overdue."}}
			},
			want: "24  YY          " + annsStatus + "BLY|AFToo many overdue.|",
		},
		"an expired card": {
			change: func(b *backend) { b.Patron.ExpirationDate = yesterday },
			want:   "24" + allDenied + annsStatus + "BLN|AFYour card expired on 2026-02-28.|",
		},
		"an inactive card in Spanish": {
			message: strings.Replace(askStatus, "001", "008", 1), change: func(b *backend) { b.Patron.Active = new(false) },
			want: "24" + allDenied + "008" + now + "AOmain|AAann|AEAnn Reader|BLN|" +
				"AFSu carné no está activo. Pregunte en el mostrador.|",
		},
		"an unknown card": {
			change: func(b *backend) { b.NoPatron = true },
			want: "24" + allDenied + "001" + now + "AOmain|AAann|AE|BLN|" +
				"AFCard ann is not known here. Please ask at the desk.|",
		},
		"no card": {
			message: strings.Replace(askStatus, "AAann", "AA ", 1),
			want:    "24" + allDenied + "001" + now + "AOmain|AA|AE|BLN|AFPlease scan your card again.|",
		},
		"storage down": {
			change: func(b *backend) { b.broken = fault.New(fault.Unavailable, "gone") },
			want: "24" + allDenied + "001" + now + "AOmain|AAann|AE|" +
				"AFThe system is not available. Please try again later or ask at the desk.|",
		},
		"a card to be blocked": {
			message: "01N20260301    105959AOmain|ALleft behind|AAann|AC|",
			want:    "24" + noFlags + "000" + now + "AOmain|AAann|AEAnn Reader|BLY|AFNoted. Please ask at the desk.|",
		},
		"a card to be released": {
			message: "2520260301    105959AOmain|AAann|AC|",
			want:    "26" + noFlags + "000" + now + "AOmain|AAann|AEAnn Reader|BLY|AFCards are released at the desk.|",
		},
		"the institution of the request": {
			change: func(b *backend) { b.terminal.Institution = "" }, want: "24" + noFlags + annsStatus + "BLY|",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			if tt.change != nil {
				tt.change(b)
			}
			message := askStatus
			if tt.message != "" {
				message = tt.message
			}
			if got := b.send(t, message); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// setPIN decides how the PIN 1234 of Ann compares.
func (b *backend) setPIN(check library.PINCheck) {
	b.pins = map[string]library.PINCheck{librarytest.AnnID + " 1234": check}
}

// requestOf returns an open request with a status, of a day of February.
func requestOf(barcode, title, status, day string) string {
	return fmt.Sprintf(`{"id":%q,"status":%q,"requestDate":"2026-02-%sT10:00:00Z","item":{"barcode":%q},`+
		`"instance":{"title":%q}}`,
		barcode+title, status, day, barcode, title)
}

func TestPatronInformation(t *testing.T) {
	t.Parallel()
	const counts = "000100010003    00010002"
	for name, tt := range map[string]struct {
		summary string
		more    string
		list    string
	}{
		"counts only":                    {summary: "          "},
		"what is set aside":              {summary: "Y         ", list: "ASR1|"},
		"what is overdue":                {summary: " Y        ", list: "ATA|"},
		"all loans, the first due first": {summary: "  Y       ", list: "AUA|AUB|AUC|"},
		"a small y":                      {summary: "  y       ", list: "AUA|AUB|AUC|"},
		"fees, which are not kept":       {summary: "   Y      "},
		"what was recalled":              {summary: "    Y     ", list: "BUC|"},
		"other requests":                 {summary: "     Y    ", list: "CDr2|CDMoby Dick|"},
		"places without a meaning":       {summary: "        Y "},
		"the second entry":               {summary: "  Y       ", more: "BP2|BQ2|", list: "AUB|"},
		"from the second one":            {summary: "  Y       ", more: "BP 2|", list: "AUB|AUC|"},
		"after the last one":             {summary: "  Y       ", more: "BP9|"},
		"nonsense":                       {summary: "  Y       ", more: "BPx|BQ-1|", list: "AUA|AUB|AUC|"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.loans = []string{
				loanOf("c", "20", `,"dueDateChangedByRecall":true`), loanOf("b", "10", ""),
				strings.Replace(loanOf("a", "01", ""), "T12", "T09", 1),
			}
			b.requests = []string{
				requestOf("", "Moby Dick", schemas.RequestNotYetFilled, "03"),
				requestOf("R1", "Emma", schemas.RequestAwaitingPickup, "02"),
				requestOf("r2", "Emma", schemas.RequestInTransit, "01"),
			}
			got := b.send(t, "6300120260301    105959"+tt.summary+"AOmain|AAann|AC|"+tt.more)
			if want := "64" + noFlags + "001" + now + counts + "AOmain|AAann|AEAnn Reader|BLY|" + tt.list; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestPatronInformation_WithoutADueDateNothingIsOverdue(t *testing.T) {
	t.Parallel()
	b := newBackend()
	b.loans = []string{strings.Replace(loanOf("a", "01", ""), "dueDate", "noDate", 1)}
	got := b.send(t, "6300120260301    105959 Y        AOmain|AAann|AC|")
	if want := "000000000001    00000000AO"; !strings.Contains(got, now+want) || strings.Contains(got, "|AT") {
		t.Errorf("got %s, want %s and no list", got, want)
	}
}

// Requests of another system have no copies of their items.
func TestPatronInformation_NamesTheItemOfARequestWithoutItsCopy(t *testing.T) {
	t.Parallel()
	b := newBackend()
	b.requests = []string{`{"id":"r","status":"Open - Not yet filled","itemId":"LENT","requestDate":"2026-02-01"}`}
	if got := b.send(t, "6300120260301    105959     Y    AOmain|AAann|AC|"); !strings.HasSuffix(got, "BLY|CDLENT|") {
		t.Errorf("got %s, want the item's barcode", got)
	}
}

func TestPatronInformation_IsBounded(t *testing.T) {
	t.Parallel()
	b := newBackend()
	for i := range 250 {
		b.loans = append(b.loans, loanOf(fmt.Sprintf("i%03d", i), "20", ""))
	}
	got := b.send(t, "6300120260301    105959  Y       AOmain|AAann|AC|")
	if n := strings.Count(got, "|AU"); n != 200 || !strings.Contains(got, now+"000000000250    00000000") {
		t.Errorf("got %d entries in %.80s", n, got)
	}
	got = b.send(t, "6300120260301    105959  Y       AOmain|AAann|AC|BP2|BQ250|")
	if n := strings.Count(got, "|AU"); n != 200 || !strings.Contains(got, "|AUI001|") ||
		strings.Contains(got, "|AUI000|") {
		t.Errorf("got %d entries", n)
	}
}

func TestPatronInformation_OfAnUnknownCard(t *testing.T) {
	t.Parallel()
	b := newBackend()
	b.NoPatron = true
	want := "64" + allDenied + "001" + now + "000000000000    00000000AOmain|AAann|AE|BLN|" +
		"AFCard ann is not known here. Please ask at the desk.|"
	if got := b.send(t, "6300120260301    105959  Y       AOmain|AAann|AC|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEndSession(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"a known card": true, "an unknown card": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.NoPatron = !known
			got := b.send(t, "3520260301    105959AOmain|AAann|AC|AD|")
			if want := "36Y" + now + "AOmain|AAann|"; got != want || (len(b.ended) == 1) != known {
				t.Errorf("got  %s\nwant %s, ended %q", got, want, b.ended)
			}
			if known && b.ended[0] != "Check-out "+librarytest.AnnID {
				t.Errorf("ended %q", b.ended)
			}
		})
	}
}

func TestItemInformation(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]string{
		"Available": "03", "Checked out": "04", "Awaiting pickup": "08", "In transit": "10", "Awaiting delivery": "10",
		"On order": "02", "In process": "06", "In process (non-requestable)": "06", "Claimed returned": "11",
		"Declared lost": "12", "Aged to lost": "12", "Lost and paid": "12",
		"Missing": "13", "Long missing": "13", "Paged": "01",
		"Withdrawn": "01",
	} {
		b := newBackend()
		b.Book.Status.Name = status
		want += "0101" + now + "CF0|ABbook|AJMoby Dick|CK001|AQMain|APMain|"
		if got := b.send(t, "1720260301    105959AOmain|ABbook|AC|"); got != "18"+want {
			t.Errorf("%s: got  %s\nwant 18%s", status, got, want)
		}
	}
}

func TestItemInformation_OfTheQueue(t *testing.T) {
	t.Parallel()
	recall := librarytest.NewRequest("r", librarytest.CarlID, "Recall", "Item", schemas.RequestNotYetFilled, 1)
	recall.RequestDate = "2026-02-28T12:00:00Z"
	waits := librarytest.NewRequest("h", librarytest.CarlID, "Hold", "Item", schemas.RequestAwaitingPickup, 1)
	waits.HoldShelfExpirationDate = "2026-03-09T22:59:59Z"
	for name, tt := range map[string]struct {
		change func(*backend)
		want   string
	}{
		"lent": {
			change: func(b *backend) { b.Book.Status.Name, b.openLoan = "Checked out", annsLoan },
			want:   "18040101" + now + "CF0|AH20260315    235959|AB",
		},
		"recalled": {
			change: func(b *backend) {
				b.Book.Status.Name, b.openLoan, b.Queue = "Checked out", annsLoan, []schemas.QueuedRequest{recall}
			},
			want: "18070101" + now + "CF1|AH20260315    235959|CJ20260228    130000|AB",
		},
		"set aside": {
			change: func(b *backend) { b.Book.Status.Name, b.Queue = "Awaiting pickup", []schemas.QueuedRequest{waits} },
			want:   "18080101" + now + "CF1|CM20260309    235959|AB",
		},
		"unknown": {
			change: func(b *backend) { b.NoBook = true },
			want:   "18010101" + now + "ABbook|AJ|AFItem book is not known here. Please ask at the desk.|",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			tt.change(b)
			if got := b.send(t, "1720260301    105959AOmain|ABbook|AC|"); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// What cannot be read is not said to be unknown, as a repeat would be answered by it.
func TestMessages_FailIfTheRecordsCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		renewBook, "6520260301    105959AOmain|AAann|AC|", "1720260301    105959AOmain|ABbook|AC|",
		"2300120260301    105959AOmain|AAann|AC|", "6300120260301    105959          AOmain|AAann|AC|",
		"09N20260301    10595920260301    105959AP|AOmain|ABbook|AC|",
	} {
		for n := int64(1); ; n++ {
			b := newBackend()
			b.FailAt, b.openLoan = n, annsLoan
			answer := b.answer(t.Context(), t, b.desk(t), message)
			if b.Reads() < n {
				break
			}
			if answer.Result != wire.Failed || len(b.renewed)+len(b.checkIns) != 0 {
				t.Errorf("%s, read %d: got %+v, renewed %v, took back %v", message[:2], n, answer, b.renewed, b.checkIns)
			}
		}
	}
}

func TestMessages_ThatAreRefusedAlways(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"15+20260301    105959BS|BY2|AOmain|AAann|ABbook|AC|BON|": "160N" + now + "AOmain|AAann|ABbook|" +
			"AFPlease place requests in the catalogue.|",
		"3720260301    1059590100EURBV2.50|AOmain|AAann|AC|": "38N" + now + "AOmain|AAann|AFFees are paid at the desk.|",
		"1920260301    105959AOmain|ABbook|AC|CHtorn|":       "200" + now + "ABbook|AFPlease tell the desk.|",
	} {
		b := newBackend()
		answer := b.answer(t.Context(), t, b.desk(t), message)
		if got := string(answer.Encode(wire.Request{}, wire.UTF8)); got != want || answer.Result != wire.Refused {
			t.Errorf("got  %s, %s\nwant %s", got, answer.Result, want)
		}
	}
}
