package storageclient

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const (
	locksPath       = "/check-out-lock-storage"
	lockChangesPath = "/check-out-lock-changes-storage"
	// lockMargin is how much longer than storage's wait an acquire may take.
	lockMargin = 5 * time.Second
)

// Acquire implements checkout.Locker.
func (c *Client) Acquire(ctx context.Context, req checkout.LockRequest) (string, error) {
	r := send("acquiring the patron's lock", http.MethodPost, locksPath, schemas.CheckoutLockRequest{
		UserID: req.UserID, TTLMs: new(int(req.TTL.Milliseconds())), AcquisitionID: req.AcquisitionID, WaitMs: int(req.Wait.Milliseconds()),
	}, http.StatusCreated).settling()
	r.timeout = req.Wait + lockMargin
	lock, err := call(ctx, c, r, "lock id", func(lock schemas.CheckoutLock) bool { return schemas.IsUUID(lock.ID) })
	return lock.ID, err
}

// Release implements checkout.Locker. Storage's DELETE waits for a commit that
// uses the lock.
func (c *Client) Release(ctx context.Context, lockID string) error {
	return c.release(ctx, lockID, nil)
}

// ReleaseDurably implements checkout.Locker. A missing lock counts as released here too:
// storage answers 404 only after its removal is durable.
func (c *Client) ReleaseDurably(ctx context.Context, lockID string) error {
	return c.release(ctx, lockID, url.Values{"durable": {"true"}})
}

func (c *Client) release(ctx context.Context, lockID string, query url.Values) error {
	r := changeRecord("releasing the patron's lock", http.MethodDelete, locksPath, lockID, nil).settling()
	r.query = query
	_, _, err := fault.Found(c.do(ctx, r))
	return err
}

// ReleaseAcquisition implements checkout.Locker.
func (c *Client) ReleaseAcquisition(ctx context.Context, userID, acquisitionID string) error {
	query := url.Values{"userId": {userID}, "requestId": {acquisitionID}}
	return c.run(ctx, deleteMatching("releasing the lock of a request", locksPath, query).settling())
}

// Locks implements admin.Storage.
func (c *Client) Locks(ctx context.Context, f admin.LockFilter) (schemas.CheckoutLocks, error) {
	query := pageQuery(f.Offset, f.Limit)
	setUnlessEmpty(query, "userId", f.UserID)
	setUnlessEmpty(query, "holder", f.Holder)
	if f.Outdated != nil {
		query.Set("outdated", strconv.FormatBool(*f.Outdated))
	}
	r := get("listing locks", locksPath, query)
	return call(ctx, c, r, "checkoutLocks", func(page schemas.CheckoutLocks) bool { return page.CheckoutLocks != nil })
}

// Lock implements admin.Storage.
func (c *Client) Lock(ctx context.Context, lockID string) (schemas.CheckoutLock, error) {
	return c.callLock(ctx, lockID, getRecord("reading a lock", locksPath, lockID))
}

// ForceRelease implements admin.Storage. Like Release it waits for a commit
// that uses the lock.
func (c *Client) ForceRelease(ctx context.Context, lockID string, reason schemas.ForcedRelease) (schemas.CheckoutLock, error) {
	const action = "/forced-release"
	r := getRecord("releasing a lock by force", locksPath, lockID)
	r.method, r.body = http.MethodPost, reason
	r.route, r.path = r.route+action, r.path+action
	return c.callLock(ctx, lockID, r)
}

// callLock makes a call that is answered with the lock that its path names.
func (c *Client) callLock(ctx context.Context, lockID string, r request) (schemas.CheckoutLock, error) {
	if !schemas.IsUUID(lockID) {
		return schemas.CheckoutLock{}, fault.New(fault.NotFound, "No lock has the id %q", lockID)
	}
	return call[schemas.CheckoutLock](ctx, c, r, "", nil)
}

// LockChanges implements admin.Storage.
func (c *Client) LockChanges(ctx context.Context, kind string, offset, limit int) (schemas.LockChanges, error) {
	query := pageQuery(offset, limit)
	setUnlessEmpty(query, "kind", kind)
	r := get("listing changes of the check-out lock", lockChangesPath, query)
	return call(ctx, c, r, "changes", func(page schemas.LockChanges) bool { return page.Changes != nil })
}

const (
	historyPath = "/check-out-history-storage/check-outs"
	figuresPath = "/check-out-history-storage/figures"
	waitsPath   = "/check-out-history-storage/waits"
	checkPath   = "/check-out-history-storage/limit-check"
)

// Report implements reporter.Storage.
func (c *Client) Report(ctx context.Context, report schemas.CheckOutReport) error {
	return c.run(ctx, send("reporting finished check-outs", http.MethodPost, historyPath, report, http.StatusNoContent))
}

// PastCheckOuts implements admin.Storage.
func (c *Client) PastCheckOuts(ctx context.Context, f schemas.HistoryFilter) (schemas.PastCheckOuts, error) {
	query := pageQuery(f.Offset, f.Limit)
	for name, value := range map[string]string{
		"userBarcode": f.UserBarcode, "itemBarcode": f.ItemBarcode, "servicePointId": f.ServicePointID,
		"outcome": f.Outcome, "code": f.Code, "from": f.From, "until": f.Until,
	} {
		setUnlessEmpty(query, name, value)
	}
	r := get("listing past check-outs", historyPath, query)
	return call(ctx, c, r, "checkOuts", func(page schemas.PastCheckOuts) bool { return page.CheckOuts != nil })
}

// Figures implements admin.Storage.
func (c *Client) Figures(ctx context.Context, f schemas.FigureFilter) (schemas.Figures, error) {
	query := url.Values{"minutes": {strconv.Itoa(f.Minutes)}}
	if f.Bucket > 1 {
		query.Set("bucketMinutes", strconv.Itoa(f.Bucket))
	}
	setUnlessEmpty(query, "servicePointId", f.ServicePointID)
	r := get("reading the figures of check-outs", figuresPath, query)
	return call(ctx, c, r, "minutes", func(figures schemas.Figures) bool { return len(figures.Minutes) > 0 })
}

// Waits implements admin.Storage.
func (c *Client) Waits(ctx context.Context) (schemas.LockWaits, error) {
	r := get("listing waits for locks", waitsPath, nil)
	return call(ctx, c, r, "waiting", func(w schemas.LockWaits) bool { return w.Waiting != nil })
}

// CheckLimit implements admin.Storage.
func (c *Client) CheckLimit(ctx context.Context, since time.Time) (schemas.LimitCheck, error) {
	r := get("checking the limit", checkPath, url.Values{"since": {since.UTC().Format(time.RFC3339)}})
	return call(ctx, c, r, "overLimit", func(found schemas.LimitCheck) bool { return found.OverLimit != nil })
}
