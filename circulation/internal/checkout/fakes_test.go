package checkout_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const (
	deskID     = "3a40852d-49fd-4df2-a1f9-6e2641a6e91f"
	annID      = "77477611-ab44-4082-a0d8-42f7acdfde11"
	adultsID   = "503a81cd-6c26-400f-b620-14c08943697c"
	bookItemID = "7212ba6a-8dcf-45a1-be9a-ffaa847c4423"
	bookTypeID = "1a54b431-2e4f-452d-9cae-9cee66c9a892"
	canLendID  = "2b94c631-fca9-4892-a730-03ee529ffe27"
	mainID     = "fcd64ce1-6995-48f0-840e-89ffa2288371"
	threeID    = "43198de5-f56a-4a53-a0bd-5a324418967a"
	carlID     = "0bab56e5-1ab6-4ac2-afdf-8b2df0434378"
	otherID    = "d9cd0bed-1b49-4b5e-a7bd-064b8d177231"
)

const rulesText = "priority: last-line\n" +
	"fallback-policy: l " + otherID + " r r1 n n1 o o1 i i1\n" +
	"m " + bookTypeID + ": l " + threeID + " r r1 n n1 o o1 i i1\n"

var today = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// world is a library with one patron, one book and one storage, all in memory;
// tests change what they are about.
type world struct {
	checkout.Library // methods that no check-out needs

	user     checkout.User
	item     checkout.Item
	onLoan   bool
	noUser   bool
	noItem   bool
	people   map[string]checkout.User // others than Ann, by barcode
	proxies  []checkout.ProxyRelation
	manual   []checkout.ManualBlock
	auto     []checkout.AutomatedBlock
	titles   bool                    // title-level requests are on
	queue    []schemas.QueuedRequest // of the item, or with them of the title
	schedule string                  // JSON of the fixed due date schedule; "" for none
	policy   string                  // JSON of the policy that the rules name for books
	noPolicy bool
	rules    string

	overloaded error    // of every check-out that wants a place
	entered    []string // the patrons who got one
	left       int      // places given back

	mu       sync.Mutex
	open     []int // answers of OpenLoans, the last one for ever
	counted  []string
	shown    []string // the locks that the counts named
	count    []error  // answers of OpenLoans; afterwards it succeeds
	held     int      // so many tries find the lock held
	acquire  []error  // answers of Acquire before that
	requests []checkout.LockRequest
	released []string
	durable  []string // those of released that survive a crash
	returned []string // request ids whose lock was given back
	lockGone error
	commits  []schemas.CheckOut
	commit   []error // answers of CheckOut; afterwards it succeeds
	stored   map[string]json.RawMessage
	loanErr  error
	steps    []checkout.Step
	endings  []checkout.Ending
	waiting  []int
	again    []string
	set      settings.Settings
	fresh    *settings.Settings
	onStep   func(checkout.Step)
}

func newWorld() *world {
	active := true
	return &world{
		user: checkout.User{
			ID: annID, Barcode: "ann", Active: &active, PatronGroup: adultsID,
			Personal: checkout.Personal{FirstName: "Ann", LastName: "Reader"},
		},
		item: checkout.Item{
			ID: bookItemID, Version: 4, Barcode: "book", Status: checkout.Status{Name: "Available"}, HoldingsRecordID: "h",
			MaterialTypeID: bookTypeID, PermanentLoanTypeID: canLendID, EffectiveLocationID: mainID,
		},
		policy: `{"id":"` + threeID + `","name":"Three","loanable":true,"renewable":true,"loansPolicy":{"profileId":"Rolling","itemLimit":3,"period":{"duration":2,"intervalId":"Weeks"}}}`,
		rules:  rulesText,
		stored: map[string]json.RawMessage{},
		set:    settings.Settings{Enabled: true, TTL: 3 * time.Second, Waits: []time.Duration{500 * time.Millisecond, 500 * time.Millisecond, time.Second}},
	}
}

func (w *world) service() *checkout.Service {
	return &checkout.Service{
		Admission: w, Library: w, Locker: w, Committer: w, Settings: w, Observer: w,
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return today },
	}
}

// checkOut lends the book to Ann.
func (w *world) checkOut(t *testing.T) (checkout.Lent, error) {
	t.Helper()
	return w.service().CheckOut(t.Context(), checkout.Request{ItemBarcode: "book", UserBarcode: "ann", ServicePointID: deskID})
}

func (w *world) Enter(_ context.Context, userBarcode string) (func(), error) {
	if w.overloaded != nil {
		return nil, w.overloaded
	}
	w.entered = append(w.entered, userBarcode)
	return func() { w.left++ }, nil
}

var errNone = fault.New(fault.NotFound, "Not found")

func (w *world) UserByBarcode(_ context.Context, barcode string) (checkout.User, error) {
	if other, exists := w.people[barcode]; exists {
		return other, nil
	}
	if w.noUser || barcode != w.user.Barcode {
		return checkout.User{}, errNone
	}
	return w.user, nil
}

func (w *world) ItemByBarcode(_ context.Context, barcode string) (checkout.Item, error) {
	if w.noItem || barcode != w.item.Barcode {
		return checkout.Item{}, errNone
	}
	return w.item, nil
}

func (w *world) Item(context.Context, string) (checkout.Item, error) { return w.item, nil }

func (w *world) Holdings(context.Context, string) (checkout.Holdings, error) {
	return checkout.Holdings{ID: "h", InstanceID: "i"}, nil
}

func (w *world) Instance(context.Context, string) (checkout.Instance, error) {
	return checkout.Instance{ID: "i", Title: "Moby Dick"}, nil
}

func (w *world) Location(context.Context, string) (checkout.Location, error) {
	return checkout.Location{ID: mainID, Name: "Main"}, nil
}

func (w *world) MaterialType(context.Context, string) (checkout.Named, error) {
	return checkout.Named{ID: bookTypeID, Name: "book"}, nil
}

func (w *world) Group(context.Context, string) (checkout.Group, error) {
	return checkout.Group{ID: adultsID, Group: "adults"}, nil
}

func (w *world) ManualBlocks(context.Context, string) ([]checkout.ManualBlock, error) {
	return w.manual, nil
}

func (w *world) AutomatedBlocks(context.Context, string) ([]checkout.AutomatedBlock, error) {
	return w.auto, nil
}

func (w *world) ProxyRelations(_ context.Context, proxyID, sponsorID string) ([]checkout.ProxyRelation, error) {
	if proxyID != carlID || sponsorID != annID {
		return nil, nil
	}
	return w.proxies, nil
}

func (w *world) TitleLevelRequests(context.Context) (bool, error) { return w.titles, nil }

func (w *world) ItemRequests(_ context.Context, itemID string) ([]schemas.QueuedRequest, error) {
	if w.titles || itemID != bookItemID {
		return nil, errNone
	}
	return w.queue, nil
}

func (w *world) TitleRequests(_ context.Context, instanceID string) ([]schemas.QueuedRequest, error) {
	if !w.titles || instanceID != "i" {
		return nil, errNone
	}
	return w.queue, nil
}

func (w *world) FixedSchedule(context.Context, string) (policy.FixedSchedule, error) {
	if w.schedule == "" {
		return policy.FixedSchedule{}, errNone
	}
	return policy.ParseFixedSchedule([]byte(w.schedule))
}

func (w *world) LoanPolicy(context.Context, string) (policy.LoanPolicy, error) {
	if w.noPolicy {
		return policy.LoanPolicy{}, errNone
	}
	return policy.ParseLoanPolicy([]byte(w.policy))
}

func (w *world) Rules(context.Context) (*policy.Rules, error) { return policy.Compile(w.rules) }

func (w *world) HasOpenLoan(context.Context, string) (bool, error) { return w.onLoan, nil }

func (w *world) OpenLoans(_ context.Context, c checkout.LoanCount) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counted = append(w.counted, c.UserID+"|"+c.MaterialTypeID+"|"+c.LoanTypeID)
	w.shown = append(w.shown, c.LockID)
	if len(w.count) > 0 {
		err := w.count[0]
		w.count = w.count[1:]
		if err != nil {
			return 0, err
		}
	}
	if len(w.open) == 0 {
		return 0, nil
	}
	n := w.open[0]
	if len(w.open) > 1 {
		w.open = w.open[1:]
	}
	return n, nil
}

func (w *world) Acquire(ctx context.Context, req checkout.LockRequest) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, req)
	if len(w.acquire) > 0 {
		err := w.acquire[0]
		w.acquire = w.acquire[1:]
		if err != nil {
			return "", err
		}
	}
	if len(w.requests) <= w.held {
		select { // storage waits as long as it was asked to
		case <-time.After(req.Wait):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		return "", fault.New(fault.LockHeld, "Unable to acquire lock")
	}
	return "lock-" + req.RequestID, nil
}

func (w *world) Release(ctx context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	w.released = append(w.released, id)
	return w.lockGone
}

func (w *world) ReleaseDurably(ctx context.Context, id string) error {
	w.mu.Lock()
	w.durable = append(w.durable, id)
	w.mu.Unlock()
	return w.Release(ctx, id)
}

func (w *world) ReleaseRequest(ctx context.Context, userID, requestID string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	w.returned = append(w.returned, userID+"|"+requestID)
	return w.lockGone
}

func (w *world) CheckOut(ctx context.Context, c schemas.CheckOut) (schemas.CheckOutResult, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits = append(w.commits, c)
	if err := ctx.Err(); err != nil {
		return schemas.CheckOutResult{}, err
	}
	if len(w.commit) > 0 {
		err := w.commit[0]
		w.commit = w.commit[1:]
		if err != nil {
			return schemas.CheckOutResult{}, err
		}
	}
	return schemas.CheckOutResult{Loan: c.Loan, Item: json.RawMessage(`{"status":{"name":"Checked out"}}`)}, nil
}

func (w *world) CommittedLoan(_ context.Context, id string) (json.RawMessage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loanErr != nil {
		return nil, w.loanErr
	}
	var loan struct{ ID string }
	for _, c := range w.commits {
		if err := json.Unmarshal(c.Loan, &loan); err == nil && loan.ID == id {
			return c.Loan, nil
		}
	}
	return nil, errNone
}

func (w *world) Current(context.Context) settings.Settings { return w.set }

func (w *world) Refresh(context.Context) settings.Settings {
	if w.fresh != nil {
		return *w.fresh
	}
	return w.set
}

func (w *world) Reached(_ context.Context, step checkout.Step, _ time.Duration) {
	w.mu.Lock()
	w.steps = append(w.steps, step)
	w.mu.Unlock()
	if w.onStep != nil {
		w.onStep(step)
	}
}

func (w *world) Waited(time.Duration, bool) {}

func (w *world) Waiting(_ context.Context, delta int) { w.waiting = append(w.waiting, delta) }

func (w *world) Ended(_ context.Context, e checkout.Ending) { w.endings = append(w.endings, e) }

func (w *world) Again(reason string) { w.again = append(w.again, reason) }
