package desk_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas/fault"
)

func TestCheckOut_Repeats(t *testing.T) {
	t.Parallel()
	limit := refuse(fault.Refusal("ITEM_LIMIT_LOAN_TYPE", "limit", fault.Param("itemLimit", "3")))
	const refused = refusedBook + "AFYou have reached the limit of 3 items of this kind.|"
	for name, tt := range map[string]struct {
		lend    func(context.Context, checkout.Request) error
		between func(*backend)
		want    string
		judged  int
	}{
		"get the loan": {want: lentBook, judged: 1},
		"get the loan an hour later": {
			between: func(b *backend) { b.today = b.today.Add(time.Hour) }, judged: 1,
		},
		"are new once the loan is closed": {between: func(b *backend) { clear(b.stored) }, want: lentBook, judged: 2},
		"get the refusal": {
			lend: limit, between: func(b *backend) { b.lend = nil }, want: refused, judged: 1,
		},
		"are judged again after the minute": {
			lend: limit, between: func(b *backend) { b.lend, b.today = nil, b.today.Add(time.Minute) }, judged: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.lend = tt.lend
			first := b.send(t, checkOutBook)
			if tt.between != nil {
				tt.between(b)
			}
			answer := b.answer(t.Context(), t, b.desk(t), checkOutBook)
			if answer.Repeated != (tt.judged == 1) {
				t.Errorf("judged %d times, and the answer is one to a repeat: %v", tt.judged, answer.Repeated)
			}
			got := string(answer.Encode(wire.Request{}, wire.UTF8))
			if tt.want != "" && got != tt.want || got[2] != '1' && tt.lend == nil || len(b.lent) != tt.judged {
				t.Errorf("first %s\nthen  %s, judged %d times, want %d", first, got, len(b.lent), tt.judged)
			}
		})
	}
}

// The first message freezes, and its repeat takes the key over and lends. Then the first wakes.
func TestCheckOut_AnswersLikeTheRepeatThatTookOver(t *testing.T) {
	t.Parallel()
	mayRenew := strings.Replace(checkOutBook, "11N", "11Y", 1)
	for name, tt := range map[string]struct {
		message  string
		sameItem string
		unseen   bool // it read before the repeat lent
	}{
		"and does not renew its loan":       {message: mayRenew},
		"and does not refuse its loan":      {message: checkOutBook},
		"and does not confirm its loan":     {message: checkOutBook, sameItem: "confirm"},
		"also if it refuses without a loan": {message: mayRenew, unseen: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.terminal.SameItem = tt.sameItem
			b.lend = func(context.Context, checkout.Request) error {
				loan := b.takeOver(t, tt.message)
				if !tt.unseen {
					b.openLoan = loan
				}
				return fault.Validation(fault.Refusal(library.CodeItemHadByPatron, "Item is already checked out"))
			}
			answer := b.answer(t.Context(), t, b.desk(t), tt.message)
			got := string(answer.Encode(wire.Request{}, wire.UTF8))
			if got != lentBook || len(b.seen) != 0 || len(b.lent) != 2 {
				t.Errorf("got %s, renewed %d times, judged %d times", got, len(b.seen), len(b.lent))
			}
			if !answer.Repeated {
				t.Error("one loan counts as two check-outs of the machine")
			}
		})
	}
}

// The instance of the first message lends, and ends before it keeps the outcome. Then staff take the item back.
func TestCheckOut_RepeatOfALostAnswerWhoseLoanIsClosed(t *testing.T) {
	t.Parallel()
	b := newBackend()
	b.send(t, checkOutBook)
	for _, key := range b.keys {
		key.holder, key.answer = "", nil
		b.stored[key.loan] = strings.Replace(b.stored[key.loan], "Open", "Closed", 1)
	}
	limit := fault.Refusal("ITEM_LIMIT_LOAN_TYPE", "limit", fault.Param("itemLimit", "3"))
	b.lend = refuse(limit)
	const want = refusedBook + "AFYou have reached the limit of 3 items of this kind.|"
	for range 2 {
		if got := b.send(t, checkOutBook); got != want || len(b.lent) != 2 {
			t.Errorf("got %s, judged %d times, want %s and twice", got, len(b.lent), want)
		}
	}
}

// takeOver lets the lease of the only key lapse and lends for a repeat at another instance. It
// returns the loan.
func (b *backend) takeOver(t *testing.T, message string) string {
	t.Helper()
	b.mu.Lock()
	b.lend = nil
	var key *lease
	for _, key = range b.keys {
		key.holder = ""
	}
	b.mu.Unlock()
	if got := b.answer(t.Context(), t, b.desk(t), message); got.Result != wire.OK {
		t.Errorf("the repeat got %+v", got)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stored[key.loan]
}

// The patron has the item already, and a repeat at another instance renews the loan.
func TestCheckOut_ARepeatMeanwhileIsNoSecondRenewal(t *testing.T) {
	t.Parallel()
	renewed := renewedLoan(terminalID, librarytest.Today.Format(time.RFC3339))
	for name, tt := range map[string]struct {
		loan  string // as it is read first
		tries int
	}{
		"before the loan is read": {loan: renewed},
		"after the loan is read":  {loan: annsLoan, tries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.lend, b.openLoan = refuse(fault.Refusal(library.CodeItemHadByPatron, "Item is already checked out")), tt.loan
			b.renewing = func() error {
				b.openLoan = renewed
				return fault.New(fault.LoanChanged, "renewed meanwhile")
			}
			got := b.send(t, strings.Replace(checkOutBook, "11N", "11Y", 1))
			if !strings.HasPrefix(got, "121YUY") || len(b.seen) != tt.tries || len(b.renewed) != 0 {
				t.Errorf("got %s after %d tries and %d renewals, want %d tries", got, len(b.seen), len(b.renewed), tt.tries)
			}
			if len(b.seen) > 0 && (b.seen[0] == nil || *b.seen[0] != 0) {
				t.Error("the renewal does not say which state of the loan it judged")
			}
		})
	}
}

// The instance of the first message has renewed the loan, and ends before it keeps the outcome.
func TestCheckOut_RepeatOfALostRenewalIsNoSecondOne(t *testing.T) {
	t.Parallel()
	b := newBackend()
	b.openLoan, b.noLoan = annsLoan, fault.New(fault.Unavailable, "gone")
	b.lend = refuse(fault.Refusal(library.CodeItemHadByPatron, "Item is already checked out"))
	mayRenew := strings.Replace(checkOutBook, "11N", "11Y", 1)
	if got := b.answer(t.Context(), t, b.desk(t), mayRenew); got.Result != wire.Failed {
		t.Fatalf("got %+v, want a failure", got)
	}
	b.openLoan, b.noLoan = renewedLoan(terminalID, "2026-03-01T09:59:30Z"), nil
	if got := b.send(t, mayRenew); !strings.HasPrefix(got, "121YUY") || len(b.seen) != 0 {
		t.Errorf("got %s after %d renewals", got, len(b.seen))
	}
}

// The loan of the first message exists. A patron who reads that it does not walks off with the item,
// or leaves it with the loan on the account.
func TestCheckOut_RepeatWhoseLoanCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		unknown error // of the second look
		result  wire.Result
	}{
		"is found at the second look": {result: wire.OK},
		"is unknown":                  {unknown: fault.New(fault.Unavailable, "gone"), result: wire.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			b.send(t, checkOutBook)
			b.noLoan, b.unknown = context.DeadlineExceeded, tt.unknown
			got := b.answer(t.Context(), t, b.desk(t), checkOutBook)
			if got.Result != tt.result || (got.Note != nil) != (tt.result == wire.Unknown) || len(b.lent) != 1 {
				t.Errorf("got %+v, lent %d times, want %s and one", got, len(b.lent), tt.result)
			}
			if got.Note != nil && b.stored[got.Note.LoanID] == "" {
				t.Errorf("the note names the loan %q", got.Note.LoanID)
			}
		})
	}
}

func TestCheckOut_PanicIsCountedAndItsOutcomeUnknown(t *testing.T) {
	t.Parallel()
	b := newBackend()
	b.lend = func(context.Context, checkout.Request) error { panic("a bug") }
	got := b.answer(t.Context(), t, b.desk(t), checkOutBook)
	if got.Result != wire.Unknown || got.Note == nil || b.panics != 1 {
		t.Errorf("got %+v, %d panics, want an unknown outcome and one", got, b.panics)
	}
}

// A refusal is not kept while it is unknown whether the item is the patron's own.
func TestCheckOut_RefusalIsJudgedAgainWhenTheLoanCanBeRead(t *testing.T) {
	t.Parallel()
	b := newBackend()
	b.openLoan, b.terminal.SameItem = annsLoan, "confirm"
	b.lend = refuse(fault.Refusal(library.CodeItemCheckedOut, "on loan"))
	b.noLoan = fault.New(fault.Unavailable, "gone")
	if got := b.answer(t.Context(), t, b.desk(t), checkOutBook); got.Result != wire.Failed {
		t.Errorf("got %+v, want a failure", got)
	}
	b.noLoan = nil
	if got := b.answer(t.Context(), t, b.desk(t), checkOutBook); got.Result != wire.OK {
		t.Errorf("the repeat got %+v, want it confirmed", got)
	}
}

func TestCheckOut_KeysDiffer(t *testing.T) {
	t.Parallel()
	b := newBackend()
	for _, message := range []string{
		checkOutBook, strings.Replace(checkOutBook, "105959", "110000", 1), strings.Replace(checkOutBook, "11N", "11Y", 1),
		strings.Replace(checkOutBook, "AAann", "AAcarl", 1), strings.Replace(checkOutBook, "ABbook", "ABfilm", 1),
	} {
		b.send(t, message)
	}
	b.terminal.Login = "desk-2"
	b.send(t, checkOutBook)
	if len(b.keys) != 6 || len(b.lent) != 6 {
		t.Errorf("got %d keys and %d check-outs, want 6", len(b.keys), len(b.lent))
	}
	for key := range b.keys {
		if strings.Contains(key, "ann") || strings.Contains(key, "book") {
			t.Errorf("the key %s shows a barcode", key)
		}
	}
}

func TestCheckOut_AnswersBeforeTheMachineGivesUp(t *testing.T) {
	t.Parallel()
	for name, commits := range map[string]bool{"the loan exists by then": true, "it is not known": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { answerInTime(t, commits) })
		})
	}
}

// answerInTime lets a commit take longer than the machine's patience.
func answerInTime(t *testing.T, commits bool) {
	b := newBackend()
	release := make(chan struct{})
	b.lend = func(context.Context, checkout.Request) error { // a commit, which regards no deadline
		if commits {
			b.store(strings.Replace(loanID, "0bab56e5", "00000000", 1))
		}
		<-release
		return nil
	}
	d := b.desk(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	start := time.Now()
	got := b.answer(ctx, t, d, checkOutBook)
	if took := time.Since(start); took > 1450*time.Millisecond {
		t.Errorf("answered after %v", took)
	}
	if commits != (got.Result == wire.OK) || !commits && (got.Result != wire.Unknown ||
		!strings.Contains(b.logged(), "loan_id=00000000-")) {
		t.Errorf("got %+v, logged %s", got, b.logged())
	}
	stopped, stop := context.WithCancel(t.Context())
	longer, cancel := d.Outlive(stopped)
	defer cancel()
	stop()
	synctest.Wait()
	if longer.Err() != nil {
		t.Error("the check-out is not waited for")
	}
	close(release)
	<-longer.Done()
	if got := b.send(t, checkOutBook); got != lentBook {
		t.Errorf("the repeat got %s", got)
	}
	if len(b.lent) != 1 {
		t.Errorf("lent %d times", len(b.lent))
	}
}

func (b *backend) logged() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

func TestCheckOut_WaitsForTheFirst(t *testing.T) {
	t.Parallel()
	b := newBackend()
	entered, release := make(chan struct{}), make(chan struct{})
	b.lend = func(context.Context, checkout.Request) error {
		close(entered)
		<-release
		return nil
	}
	d := b.desk(t)
	answers := make(chan wire.Answer, 2)
	go func() { answers <- b.answer(t.Context(), t, d, checkOutBook) }()
	<-entered
	other := b.desk(t) // another instance
	go func() { answers <- b.answer(t.Context(), t, other, checkOutBook) }()
	close(release)
	for range 2 {
		if got := string((<-answers).Encode(wire.Request{}, wire.UTF8)); got != lentBook {
			t.Errorf("got %s", got)
		}
	}
	if len(b.lent) != 1 {
		t.Errorf("lent %d times", len(b.lent))
	}
}

func TestCheckOut_MasksCardsInTheLog(t *testing.T) {
	t.Parallel()
	b := newBackend()
	b.send(t, strings.Replace(checkOutBook, "AAann", "AA1234567890", 1)+"BIY|")
	if log := b.logged(); strings.Contains(log, "1234567890") || !strings.Contains(log, "****890") {
		t.Errorf("logged %s", log)
	}
	if !slices.Contains(strings.Fields(b.logged()), "terminal=desk-1") {
		t.Errorf("the log names no terminal: %s", b.logged())
	}
}
