package checkout_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// backend is a library with one patron, one book and one storage in memory. Tests change the fields
// that they are about.
type backend struct {
	*librarytest.Records
	onLoan  bool
	toUser  bool // the loan is the patron's
	proxies []library.ProxyRelation

	blockLimits []schemas.BlockLimit // of Ann's group

	overloaded error    // of every check-out that wants a place
	entered    []string // the patrons with a place
	left       int      // places given back

	mu       sync.Mutex
	open     []int   // counts of snapshots and commits in turn; the last one repeats
	held     int     // this many tries find the lock held
	acquire  []error // answers of Acquire before that
	requests []checkout.LockRequest
	released []string
	durable  []string // those of released that survive a crash
	returned []string // acquisition ids whose lock was given back
	lockGone error
	commits  []schemas.CheckOut
	commit   []error // answers of CheckOut; afterwards it succeeds
	releases bool    // commits release the lock
	repeated bool    // the loan of a commit is there already
	stored   map[string]json.RawMessage
	loanErr  error
	settled  []string // loan ids
	older    bool     // storage cannot settle
	waitMs   float64  // what commits waited for the lock that they took
	takes    bool     // commits take free locks themselves; else storage is of a build before that
	steps    []checkout.Step
	endings  []checkout.Ending
	waiting  []int
	waits    []checkout.Wait // that began
	again    []string
	set      settings.Settings
	fresh    *settings.Settings
	onStep   func(checkout.Step)
}

func newBackend() *backend {
	return &backend{
		Records: librarytest.New(),
		stored:  map[string]json.RawMessage{},
		set: settings.Settings{
			Enabled: true, TTL: 3 * time.Second,
			Waits: []time.Duration{500 * time.Millisecond, 500 * time.Millisecond, time.Second},
		},
	}
}

func (w *backend) service() *checkout.Service {
	return &checkout.Service{
		Admission: w, Library: w, Locker: w, Committer: w, Settings: w, Observer: w,
		Log: slog.New(slog.NewTextHandler(maskedLog{}, nil)), Now: func() time.Time { return librarytest.Today },
	}
}

// maskedLog stops a test that logs the patron's id.
type maskedLog struct{}

func (maskedLog) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(librarytest.AnnID)) {
		panic("logged the patron's id: " + string(line))
	}
	return len(line), nil
}

// newLimitReached is storage's refusal of a commit because of the limits at these places.
func newLimitReached(places ...int) error {
	f := fault.New(fault.LimitReached, "the patron has 3 open loans")
	for _, i := range places {
		f.Details = append(f.Details, fault.StorageDetail("the patron has 3 open loans", fault.Param("openLoans", "3"),
			fault.Param("limit", strconv.Itoa(i))))
	}
	return f
}

// checkOut lends the book to Ann.
func (w *backend) checkOut(t *testing.T) (checkout.Lent, error) {
	t.Helper()
	return w.service().CheckOut(t.Context(), checkout.Request{
		ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
	})
}

func (w *backend) Enter(_ context.Context, userBarcode string) (func(), error) {
	if w.overloaded != nil {
		return nil, w.overloaded
	}
	w.entered = append(w.entered, userBarcode)
	return func() { w.left++ }, nil
}

// Snapshot adds what check-outs alone judge. The next answer of open is its count.
func (w *backend) Snapshot(ctx context.Context, subjects schemas.CheckOutSubjects) (library.Facts, error) {
	seen, err := w.Records.Snapshot(ctx, subjects)
	seen.OnLoan, seen.OnLoanToUser = &w.onLoan, w.toUser
	if seen.User.ID != "" {
		seen.BlockLimits = w.blockLimits
		seen.OpenLoans = []schemas.OpenLoans{
			{MaterialTypeID: w.Book.MaterialTypeID, LoanTypeID: w.Book.LoanTypeID(), Count: w.nextOpen()},
		}
	}
	if seen.User.ID == librarytest.AnnID && seen.Proxy.ID == librarytest.CarlID {
		seen.ProxyRelations = w.proxies
	}
	return seen, err
}

// nextOpen returns the next answer of open, the last one for ever.
func (w *backend) nextOpen() int {
	if len(w.open) == 0 {
		return 0
	}
	n := w.open[0]
	if len(w.open) > 1 {
		w.open = w.open[1:]
	}
	return n
}

func (w *backend) LoanPolicy(context.Context, string) (policy.LoanPolicy, error) {
	if w.NoPolicy {
		return policy.LoanPolicy{}, librarytest.ErrNone
	}
	p, err := policy.ParseLoanPolicy([]byte(w.Policy))
	return p, cmp.Or(err, w.Unread())
}

func (w *backend) Acquire(ctx context.Context, req checkout.LockRequest) (string, error) {
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
	return "lock-" + req.AcquisitionID, nil
}

// judgeCall fails a call whose caller has left or would wait for ever.
func judgeCall(ctx context.Context) error {
	if _, bounded := ctx.Deadline(); !bounded {
		return errors.New("the call has no time-out")
	}
	return ctx.Err()
}

func (w *backend) Release(ctx context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := judgeCall(ctx); err != nil {
		return err
	}
	w.released = append(w.released, id)
	return w.lockGone
}

func (w *backend) ReleaseDurably(ctx context.Context, id string) error {
	w.mu.Lock()
	w.durable = append(w.durable, id)
	w.mu.Unlock()
	return w.Release(ctx, id)
}

func (w *backend) ReleaseAcquisition(ctx context.Context, userID, acquisitionID string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := judgeCall(ctx); err != nil {
		return err
	}
	w.returned = append(w.returned, userID+"|"+acquisitionID)
	return w.lockGone
}

// refusesTurn reports whether storage is of a build that takes no lock in a commit.
func (w *backend) refusesTurn(c schemas.CheckOut) bool { return c.TakeLock != nil && !w.takes }

func (w *backend) CheckOut(ctx context.Context, c schemas.CheckOut) (schemas.CheckOutResult, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refusesTurn(c) {
		return schemas.CheckOutResult{}, errLost
	}
	w.commits = append(w.commits, c)
	if err := judgeCall(ctx); err != nil {
		return schemas.CheckOutResult{}, err
	}
	if len(w.commit) > 0 {
		err := w.commit[0]
		w.commit = w.commit[1:]
		if err != nil {
			return schemas.CheckOutResult{}, err
		}
	}
	if n := len(c.Limits); n > 0 && w.nextOpen() >= c.Limits[n-1].Max { // the policy's comes last
		return schemas.CheckOutResult{}, newLimitReached(n - 1)
	}
	return schemas.CheckOutResult{
		Loan: c.Loan, Item: json.RawMessage(storedItem), LockReleased: w.releases && c.ReleaseLock,
		LockWaitMs: w.waitMs, Repeated: w.repeated,
	}, nil
}

func (w *backend) CommittedLoan(ctx context.Context, id string) (json.RawMessage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := judgeCall(ctx); err != nil {
		return nil, err
	}
	if w.loanErr != nil {
		return nil, w.loanErr
	}
	var loan struct{ ID string }
	for _, c := range w.commits {
		if err := json.Unmarshal(c.Loan, &loan); err == nil && loan.ID == id {
			return c.Loan, nil
		}
	}
	return nil, librarytest.ErrNone
}

func (w *backend) SettleCheckOut(ctx context.Context, id string) (schemas.SettledCheckOut, error) {
	w.mu.Lock()
	older := w.older
	w.settled = append(w.settled, id)
	w.mu.Unlock()
	if older {
		return schemas.SettledCheckOut{}, librarytest.ErrNone
	}
	loan, err := w.CommittedLoan(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return schemas.SettledCheckOut{GivenUp: true}, nil
	}
	return schemas.SettledCheckOut{Loan: loan, Item: json.RawMessage(storedItem)}, err
}

// storedItem is what storage answers, with the date of its status.
const (
	storedDate = "2026-03-04T05:06:07.123+00:00"
	storedItem = `{"status":{"name":"Checked out","date":"` + storedDate + `"}}`
)

func (w *backend) Current(context.Context) settings.Settings { return w.set }

func (w *backend) Refresh(context.Context) settings.Settings {
	if w.fresh != nil {
		return *w.fresh
	}
	return w.set
}

func (w *backend) Reached(_ context.Context, step checkout.Step, _ time.Duration) {
	w.mu.Lock()
	w.steps = append(w.steps, step)
	w.mu.Unlock()
	if w.onStep != nil {
		w.onStep(step)
	}
}

func (w *backend) Waited(time.Duration, bool) {}

func (w *backend) WaitBegan(_ context.Context, began checkout.Wait) {
	w.waiting, w.waits = append(w.waiting, 1), append(w.waits, began)
}

func (w *backend) WaitEnded(context.Context, checkout.Wait) { w.waiting = append(w.waiting, -1) }

func (w *backend) Ended(_ context.Context, e checkout.Ending) { w.endings = append(w.endings, e) }

func (w *backend) Repeated(reason string) { w.again = append(w.again, reason) }
