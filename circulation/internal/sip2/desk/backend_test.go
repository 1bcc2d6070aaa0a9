package desk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/renewal"
	"checkoutlock/circulation/internal/sip2/desk"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web/texts"
)

const (
	terminalID = "c4c90014-c8c9-4ade-8f24-b5e313319f4b"
	loanID     = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"
	annsLoan   = `{"id":"` + loanID + `","userId":"` + librarytest.AnnID + `","itemId":"` + librarytest.BookItemID +
		`","loanDate":"2026-02-20T10:00:00Z","dueDate":"2026-03-15T22:59:59Z","status":{"name":"Open"}}`
	otherLoan = `{"id":"` + loanID + `","userId":"` + librarytest.CarlID + `","dueDate":"2026-03-15T22:59:59Z"}`
	now       = "20260301    110000" // of the library in Berlin
)

// backend is a library with one patron, one book and the flows in memory.
type backend struct {
	*librarytest.Records
	terminal library.Terminal
	setting  string // the library's own texts
	noTexts  error
	broken   error  // of Snapshot
	noLoan   error  // of Loan and OpenLoan
	unknown  error  // of Committed
	openLoan string // JSON, of the book
	loans    []string
	requests []string
	users    map[string][]library.User   // by index and value
	pins     map[string]library.PINCheck // by user and PIN
	today    time.Time
	readAt   time.Time // by the database's clock

	mu       sync.Mutex
	lend     func(ctx context.Context, req checkout.Request) error // nil lends
	lent     []checkout.Request
	granted  [][]string // the permissions of each check-out
	stored   map[string]string
	renewErr error
	seen     []*int // how often the loan was renewed, by each renewal
	renewing func() error
	renewed  []string
	checkIns []checkin.Request
	returned checkin.Returned
	checkErr error
	// returning happens during a check-in; nil for nothing.
	returning func()
	caller    okapi.Call // of the check-in
	ended     []string   // patrons whose session ended
	panics    int
	log       bytes.Buffer

	keys map[string]*lease
}

type lease struct {
	holder, loan string
	taken        bool
	answer       *keyed.Answer
}

func newBackend() *backend {
	b := &backend{
		Records: librarytest.New(), today: librarytest.Today, keys: map[string]*lease{},
		stored: map[string]string{}, users: map[string][]library.User{},
	}
	b.terminal.ID, b.terminal.Login, b.terminal.ServicePointID = terminalID, "desk-1", librarytest.DeskID
	b.terminal.Institution, b.terminal.TimeZone = "main", "Europe/Berlin"
	return b
}

func (b *backend) desk(t *testing.T) *desk.Desk {
	t.Helper()
	log := slog.New(slog.NewTextHandler(&lockedWriter{b: b}, nil))
	return &desk.Desk{
		Library: b, Committed: b.Committed, Texts: texts.Delivered(), Log: log,
		Keyed:    &keyed.Requests{Storage: b, CheckOuts: b, Ended: func(keyed.Outcome) {}, Log: log},
		Renewals: b, Now: func() time.Time { return b.today },
		Panicked: func(context.Context, error) { b.panics++ },
		CheckIn: func(ctx context.Context, req checkin.Request) (checkin.Returned, error) {
			if req.Seen == nil || *req.Seen != b.Book.Version {
				t.Errorf("the check-in judged %v, want version %d of the item", req.Seen, b.Book.Version)
			}
			req.Seen = nil
			b.caller, b.checkIns = okapi.FromContext(ctx), append(b.checkIns, req)
			if b.returning != nil {
				b.returning()
			}
			return b.returned, b.checkErr
		},
		EndSessions: func(_ context.Context, req checkin.EndSessionsRequest) error {
			for _, e := range req.EndSessions {
				b.ended = append(b.ended, e.ActionType+" "+e.PatronID)
			}
			return nil
		},
	}
}

type lockedWriter struct{ b *backend }

func (w *lockedWriter) Write(line []byte) (int, error) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	return w.b.log.Write(line)
}

// send answers a message as the machine reads it.
func (b *backend) send(t *testing.T, message string) string {
	t.Helper()
	answer := b.answer(t.Context(), t, b.desk(t), message)
	return string(answer.Encode(wire.Request{}, wire.UTF8))
}

func (b *backend) answer(ctx context.Context, t *testing.T, d *desk.Desk, message string) wire.Answer {
	t.Helper()
	r, err := wire.Parse([]byte(message), wire.UTF8, wire.DetectErrors)
	if err != nil {
		t.Fatalf("%s: %v", message, err)
	}
	tenant, err := okapi.ParseTenant("diku")
	if err != nil {
		t.Fatal(err)
	}
	ctx = okapi.NewContext(ctx, okapi.Call{Tenant: tenant})
	return d.Handlers()[r.Code](ctx, b.terminal, r)
}

// Snapshot implements library.Records.
func (b *backend) Snapshot(ctx context.Context, subjects schemas.CheckOutSubjects) (library.Facts, error) {
	if b.broken != nil {
		return library.Facts{}, b.broken
	}
	seen, err := b.Records.Snapshot(ctx, subjects)
	seen.OnLoan = new(b.openLoan != "" && seen.Item.ID != "")
	seen.Slip, seen.ReadAt.Time = b.returnedSlip(), b.readAt
	return seen, err
}

func (b *backend) returnedSlip() library.Slip {
	return library.Slip{ServicePoints: []library.ServicePoint{
		{ID: librarytest.DeskID, Name: "Desk"}, {ID: librarytest.OtherID, Name: "Branch desk", Code: "br"},
	}}
}

func (b *backend) Loan(_ context.Context, id string) (json.RawMessage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.noLoan != nil {
		return nil, b.noLoan
	}
	if b.stored[id] == "" {
		return nil, librarytest.ErrNone
	}
	return json.RawMessage(b.stored[id]), nil
}

func (b *backend) OpenLoan(context.Context, string) (json.RawMessage, error) {
	if b.noLoan != nil {
		return nil, b.noLoan
	}
	if b.openLoan == "" {
		return nil, librarytest.ErrNone
	}
	return json.RawMessage(b.openLoan), nil
}

func toRaw(all []string) []json.RawMessage {
	var raw []json.RawMessage
	for _, one := range all {
		raw = append(raw, json.RawMessage(one))
	}
	return raw
}

func (b *backend) PatronLoans(context.Context, string, int) ([]json.RawMessage, int, error) {
	return toRaw(b.loans), len(b.loans), nil
}

func (b *backend) PatronRequests(context.Context, string, int) ([]json.RawMessage, int, error) {
	return toRaw(b.requests), len(b.requests), nil
}

// Items makes the barcode of the id.
func (b *backend) Items(_ context.Context, ids []string) ([]library.Item, error) {
	var items []library.Item
	for _, id := range ids {
		if !strings.EqualFold(id, "kept-gone") {
			items = append(items, library.Item{ID: strings.ToLower(id), Barcode: strings.ToUpper(id)})
		}
	}
	return items, nil
}

func (b *backend) UsersBy(_ context.Context, index, value string) ([]library.User, error) {
	return b.users[index+" "+value], nil
}

func (b *backend) VerifyPIN(_ context.Context, userID, pin string) (library.PINCheck, error) {
	if check, known := b.pins[userID+" "+pin]; known {
		return check, nil
	}
	return 0, fault.New(fault.Unavailable, "storage is gone")
}

func (b *backend) Texts(context.Context) (*texts.Catalogue, error) {
	if b.noTexts != nil {
		return nil, b.noTexts
	}
	if b.setting == "" {
		return texts.Delivered(), nil
	}
	return texts.Replace(json.RawMessage(b.setting))
}

func (b *backend) Renew(_ context.Context, req renewal.Request) (json.RawMessage, error) {
	b.seen = append(b.seen, req.Seen)
	if b.renewing != nil {
		if err := b.renewing(); err != nil {
			return nil, err
		}
	}
	b.renewed = append(b.renewed, "by barcode")
	return json.RawMessage(strings.Replace(annsLoan, "2026-03-15", "2026-03-28", 1)), b.renewErr
}

func (b *backend) RenewByID(_ context.Context, req renewal.ByIDRequest) (json.RawMessage, error) {
	if strings.HasPrefix(req.ItemID, "KEPT") {
		return nil, fault.Validation(fault.Refusal("LOAN_RENEWAL_LIMIT_REACHED", "loan at maximum renewal number"))
	}
	b.renewed = append(b.renewed, req.ItemID)
	return json.RawMessage(annsLoan), nil
}

// Admit implements keyed.CheckOuts.
func (b *backend) Admit(context.Context, checkout.Request) (func(), error) { return func() {}, nil }

// Fail implements keyed.CheckOuts.
func (b *backend) Fail(context.Context, checkout.Request, checkout.KeyLease, time.Time, error) {}

// Lend implements keyed.CheckOuts.
func (b *backend) Lend(ctx context.Context, req checkout.Request, l checkout.KeyLease) (checkout.Lent, error) {
	b.mu.Lock()
	b.lent = append(b.lent, req)
	b.granted = append(b.granted, okapi.FromContext(ctx).Permissions)
	lend := b.lend
	b.mu.Unlock()
	if lend != nil {
		if err := lend(ctx, req); err != nil {
			return checkout.Lent{}, err
		}
	}
	b.store(l.LoanID)
	return b.newLent(l.LoanID), nil
}

func (b *backend) store(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stored[id] = strings.Replace(annsLoan, loanID, id, 1)
}

func (b *backend) newLent(id string) checkout.Lent {
	return checkout.Lent{
		LoanID: id,
		Loan:   json.RawMessage(strings.Replace(annsLoan, loanID, id, 1)),
		Copy:   library.Copy{Instance: library.Instance{Title: "Moby Dick"}},
	}
}

// Committed implements keyed.CheckOuts.
func (b *backend) Committed(_ context.Context, _ checkout.Request, id string) (checkout.Lent, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lent := b.newLent(id)
	lent.Loan = json.RawMessage(b.stored[id])
	return lent, b.stored[id] != "", b.unknown
}

// LeaseKey implements keyed.Storage.
func (b *backend) LeaseKey(_ context.Context, r schemas.KeyLeaseRequest) (checkout.KeyLease, *keyed.Answer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.keys[r.Key]
	if l == nil {
		l = &lease{loan: strings.Replace(loanID, "0bab56e5", "0000000"+string(rune('0'+len(b.keys))), 1)}
		b.keys[r.Key] = l
	}
	leased := checkout.KeyLease{ID: r.LeaseID, LoanID: l.loan, Taken: l.taken}
	switch {
	case l.answer != nil:
		return leased, l.answer, nil
	case l.holder != "":
		return checkout.KeyLease{}, nil, fault.New(fault.RequestRunning, "running")
	}
	l.holder, l.taken = r.LeaseID, true
	return leased, nil, nil
}

// RenewLease implements keyed.Storage.
func (b *backend) RenewLease(_ context.Context, id string, d time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.keys {
		if l.holder == id && d == 0 {
			l.holder = ""
		}
	}
	return nil
}

// AnswerLease implements keyed.Storage.
func (b *backend) AnswerLease(_ context.Context, id string, a keyed.Answer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.keys {
		if l.holder == id {
			l.answer = &a
			return nil
		}
	}
	return fault.New(fault.KeyLeaseLost, "lost")
}
