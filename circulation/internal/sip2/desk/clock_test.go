package desk_test

import (
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/schemas/fault"
)

// The dates of loans and items are the database's. So the clock of this instance does not decide whether a
// message is a repeat.
func TestMessages_AreRepeatsByTheClockOfTheDatabase(t *testing.T) {
	t.Parallel()
	const ago30s, ago90s = "2026-03-01T09:59:30Z", "2026-03-01T09:58:30Z"
	had := refuse(fault.Refusal(library.CodeItemHadByPatron, "Item is already checked out"))
	renews := func(b *backend) int { return len(b.renewed) }
	for name, tt := range map[string]struct {
		message string
		happen  func(b *backend, at string)
		count   func(b *backend) int
		at      string
		again   int
	}{
		"a renewal": {
			message: renewBook, count: renews, at: ago30s,
			happen: func(b *backend, at string) { b.openLoan = renewedLoan(terminalID, at) },
		},
		"a renewal long ago": {
			message: renewBook, count: renews, at: ago90s, again: 1,
			happen: func(b *backend, at string) { b.openLoan = renewedLoan(terminalID, at) },
		},
		"a renewal of all": {
			message: "65" + now + "AO|AAann|", count: renews, at: ago30s,
			happen: func(b *backend, at string) { b.loans = []string{renewedLoan(terminalID, at)} },
		},
		"a renewal of all long ago": {
			message: "65" + now + "AO|AAann|", count: renews, at: ago90s, again: 1,
			happen: func(b *backend, at string) { b.loans = []string{renewedLoan(terminalID, at)} },
		},
		"a check-in": {
			message: returnBook, count: func(b *backend) int { return len(b.checkIns) }, at: ago30s, happen: returnHere,
		},
		"a check-in long ago": {
			message: returnBook, count: func(b *backend) int { return len(b.checkIns) }, at: ago90s, again: 1,
			happen: returnHere,
		},
		"a check-out of what the patron has, renewed meanwhile": {
			message: strings.Replace(checkOutBook, "11N", "11Y", 1), count: renews, at: "2026-03-01T10:00:00Z",
			happen: func(b *backend, at string) { b.lend, b.openLoan = had, renewedLoan(terminalID, at) },
		},
		"a check-out of what the patron has, renewed before": {
			message: strings.Replace(checkOutBook, "11N", "11Y", 1), count: renews, at: ago30s, again: 1,
			happen: func(b *backend, at string) { b.lend, b.openLoan = had, renewedLoan(terminalID, at) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, wrong := range []time.Duration{-time.Hour, -time.Second, 0, time.Second, time.Hour} {
				b := newBackend()
				b.readAt, b.today = librarytest.Today, librarytest.Today.Add(wrong)
				tt.happen(b, tt.at)
				if got := b.send(t, tt.message); tt.count(b) != tt.again {
					t.Errorf("a clock that is wrong by %s: did it %d times more, want %d: %s", wrong, tt.count(b), tt.again, got)
				}
			}
		})
	}
}

func returnHere(b *backend, at string) {
	b.Book.LastCheckIn = map[string]any{"staffMemberId": terminalID, "dateTime": at}
}
