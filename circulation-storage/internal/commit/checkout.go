// Package commit decides about one check-out, check-in, or change of a loan or a request: what must
// hold in its transaction, and what is written then. It judges records that the store has
// read and locked. It knows neither SQL nor HTTP.
package commit

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// CheckOut is a check-out to commit, from ParseCheckOut.
type CheckOut struct {
	LoanID uuid.UUID // chosen by the caller; a repeat has the same one
	UserID uuid.UUID // the patron who borrows, never the proxy
	ItemID uuid.UUID
	// ItemVersion is the _version of the item that the caller judged.
	ItemVersion int
	// LockID is the lock that the caller holds; Nil means none.
	LockID uuid.UUID
	// ReleaseLock releases that lock together with the writes.
	ReleaseLock bool
	// TakeLock takes that lock in the commit, if it is free; nil does not. It is never seen by others.
	TakeLock *LockTurn
	// Limits bound the patron's open loans.
	Limits []schemas.LoanLimit
	// SettingsVersion is the version of the settings that the caller acted on. It may be
	// empty only under a lock that the tenant's own settings require.
	SettingsVersion string
	// Unfenced is set for a loan that staff record: no fence guards it, and no limit counts.
	Unfenced bool
	// KeyLeaseID is the caller's lease of the Idempotency-Key; Nil means no key.
	KeyLeaseID uuid.UUID
	// FilledRequestID is the borrower's request that the caller saw first in the queue;
	// Nil means an empty queue.
	FilledRequestID uuid.UUID
	// TitleLevel makes the requests of the item's instance the queue.
	TitleLevel bool
	// Recalled says whether the caller saw an open recall of the item besides FilledRequestID; nil
	// is not judged.
	Recalled *bool
	// StatusOnly shortens the answer's item to its status.
	StatusOnly bool

	loan      records.Record
	sessionID string // "" when the desk keeps none
}

// LockTurn is how a commit gets its turn at the patron's lock.
type LockTurn struct {
	AcquisitionID uuid.UUID
	Wait          time.Duration
}

// ParseCheckOut reads the body of POST /loan-storage/check-outs. Faults: Malformed for
// bad JSON or a bad date of the loan, Invalid for the rest, with place and rule.
func ParseCheckOut(body []byte) (CheckOut, error) {
	doc, err := parseBody("check-out", body)
	if err != nil {
		return CheckOut{}, err
	}
	loan := doc.Object("loan")
	c := CheckOut{
		LoanID: readID(loan, "id"), UserID: readID(loan, "userId"), ItemID: readID(loan, "itemId"),
		ItemVersion: readInteger(doc["itemVersion"]),
		LockID:      readID(doc, "lockId"), ReleaseLock: doc["releaseLock"] == true, SettingsVersion: doc.Text("settingsVersion"), KeyLeaseID: readID(doc, "claimId"),
		FilledRequestID: readID(doc, "requestId"), TitleLevel: doc["titleLevelRequests"] == true, Unfenced: doc["unfenced"] == true,
		StatusOnly: doc["statusOnly"] == true, loan: loan, sessionID: doc.Text("sessionId"),
	}
	fenced := c.LockID != uuid.Nil || c.SettingsVersion != ""
	switch {
	case fenced && c.Unfenced:
		return CheckOut{}, newInvalid("unfenced excludes lockId and settingsVersion", "unfenced", "true")
	case !fenced && !c.Unfenced:
		return CheckOut{}, newInvalid("lockId or settingsVersion is required", "lockId", doc.Text("lockId"))
	}
	if recalled, ok := doc["recalled"].(bool); ok {
		c.Recalled = &recalled
	}
	c.Limits = readLimits(doc)
	if turn := doc.Object("takeLock"); turn != nil {
		c.TakeLock = &LockTurn{AcquisitionID: readID(turn, "requestId"), Wait: time.Duration(readInteger(turn["waitMs"])) * time.Millisecond}
		switch {
		case c.LockID == uuid.Nil:
			return CheckOut{}, newInvalid("takeLock needs a new lockId", "lockId", doc.Text("lockId"))
		case !c.ReleaseLock:
			return CheckOut{}, newInvalid("takeLock needs releaseLock", "releaseLock", "false")
		}
	}
	if len(c.Limits) > 0 && c.LockID == uuid.Nil {
		return CheckOut{}, newInvalid("limits are allowed with lockId only, because a count without the lock decides nothing",
			"limits[0].max", strconv.Itoa(c.Limits[0].Max))
	}
	if loan.Object("status") != nil && !records.IsOpenLoan(loan) {
		return CheckOut{}, newInvalid("loan.status.name must be Open", "loan.status.name", loan.Text("status.name"))
	}
	if date, ok := loan["returnDate"]; ok {
		return CheckOut{}, newInvalid("loan.returnDate must be absent in a check-out", "loan.returnDate", fmt.Sprint(date))
	}
	loan["id"] = c.LoanID.String()
	return c, nil
}

// readLimits reads the limits, which the schema has checked. Circulation of earlier builds sends
// one, as limit.
func readLimits(doc records.Record) []schemas.LoanLimit {
	sent, _ := doc["limits"].([]any)
	if doc["limit"] != nil {
		sent = append(sent, doc["limit"])
	}
	limits := make([]schemas.LoanLimit, len(sent))
	for i, v := range sent {
		object, _ := v.(map[string]any)
		limit := records.Record(object)
		limits[i] = schemas.LoanLimit{
			Max: readInteger(limit["max"]), MaterialTypeID: limit.Text("materialTypeId"), LoanTypeID: limit.Text("loanTypeId"),
			OverdueMinutes: readInteger(limit["overdueMinutes"]), Recalled: limit["recalled"] == true, Lost: limit["lost"] == true,
		}
	}
	return limits
}

// notLendable are the item statuses that FOLIO's circulation refuses.
var notLendable = []string{checkedOut, declaredLost, claimedReturned, "Intellectual item", agedToLost}

const checkedOut = "Checked out"

// Decide judges a check-out. It answers a repeat with the stored loan, also without the
// lock. Faults: GivenUp, KeyLeaseLost, LockHeld, LockLost, SettingsChanged, ItemChanged, RequestChanged,
// LimitReached, Invalid.
func (c CheckOut) Decide(ctx context.Context, seen Seen) (Change, error) {
	if seen.Loan != nil {
		return c.repeat(seen)
	}
	if err := c.checkFence(seen); err != nil {
		return Change{}, err
	}
	if err := c.checkItem(seen); err != nil {
		return Change{}, err
	}
	own, err := c.findOwnRequest(seen)
	if err != nil {
		return Change{}, err
	}
	if err := c.checkLimits(seen); err != nil {
		return Change{}, err
	}
	return c.lendItem(ctx, seen, own)
}

func (c CheckOut) repeat(seen Seen) (Change, error) {
	if readID(seen.Loan, "userId") != c.UserID || readID(seen.Loan, "itemId") != c.ItemID {
		return Change{}, newInvalid("loan.id is already that of a loan to another patron or of another item", "loan.id", c.LoanID.String())
	}
	return Change{Loan: seen.Loan, Item: seen.Item, Repeated: true}, nil
}

// checkFence refuses a commit that was given up, or whose key lease or lock was released or taken over. An outdated
// lock or key lease that still exists is valid, because no other caller could commit
// meanwhile.
func (c CheckOut) checkFence(seen Seen) error {
	locked := seen.LockUser != uuid.Nil && seen.LockUser == c.UserID
	switch {
	case seen.GivenUp:
		return fault.New(fault.GivenUp, "The check-out of the loan %s was given up: nothing was lent, and nothing will be", c.LoanID)
	case c.KeyLeaseID != uuid.Nil && seen.LeasedLoan != c.LoanID:
		return fault.New(fault.KeyLeaseLost, "The claim %s is no longer that of the loan: another caller finishes the check-out", c.KeyLeaseID)
	case c.TakeLock != nil && !locked:
		return fault.New(fault.LockHeld, "Another request has the lock of the patron")
	case c.LockID != uuid.Nil && !locked:
		return fault.New(fault.LockLost, "The lock %s is no longer that of the patron: acquire it anew", c.LockID)
	case c.SettingsVersion != "" && seen.SettingsVersion != c.SettingsVersion:
		return fault.New(fault.SettingsChanged, "The check-out lock settings have version %s, not %s: read them again",
			seen.SettingsVersion, c.SettingsVersion)
	case c.LockID == uuid.Nil && seen.EnvironmentOn:
		return fault.New(fault.SettingsChanged, "The environment of another instance turns the check-out lock on: acquire the lock")
	}
	return nil
}

func (c CheckOut) checkItem(seen Seen) error {
	if seen.Item == nil {
		return newNoItem("loan.itemId", c.ItemID)
	}
	if err := checkVersion(seen.Item, c.ItemVersion); err != nil {
		return err
	}
	if status := seen.Item.Text("status.name"); slices.Contains(notLendable, status) {
		return fault.New(fault.ItemChanged, "The item has the status %s and cannot be lent", status)
	}
	if seen.OnLoan {
		return records.Loan.Violation(openLoanKey, c.loan)
	}
	return nil
}

// checkLimits refuses a loan beyond a limit, and names all that are reached. It comes after the
// checks of the item, because a limit may count the types of the item that the caller judged.
func (c CheckOut) checkLimits(seen Seen) error {
	var reached fault.List
	for i, limit := range c.Limits {
		if open := seen.OpenLoans[i]; open >= limit.Max {
			reached = append(reached, fault.StorageDetail(fmt.Sprintf("The patron has %d open loans, and the limit is %d", open, limit.Max),
				fault.Param("openLoans", strconv.Itoa(open)), fault.Param(schemas.LimitPlace, strconv.Itoa(i))))
		}
	}
	if len(reached) == 0 {
		return nil
	}
	f := fault.Validation(reached...)
	f.Code = fault.LimitReached
	return f
}

// findOwnRequest returns the borrower's request that the check-out fills, nil for an
// empty queue. Only the first patron in the queue gets the item.
func (c CheckOut) findOwnRequest(seen Seen) (records.Record, error) {
	own, err := seen.Queue.expectFirst(c.FilledRequestID, seen.Item, c.TitleLevel, schemas.FirstLentTo)
	if err == nil && own != nil && readID(own, "requesterId") != c.UserID {
		return nil, fault.New(fault.RequestChanged, "The request %s is another patron's: read the queue again", c.FilledRequestID)
	}
	if err == nil && c.Recalled != nil && *c.Recalled != seen.Queue.isRecalled(c.ItemID, c.FilledRequestID) {
		return nil, fault.New(fault.RequestChanged, "A recall of the item came or went: read the queue again")
	}
	return own, err
}

// openLoanKey is the unique index that allows one open loan per item.
const openLoanKey = "loan_open_item_id_key"

func (c CheckOut) lendItem(ctx context.Context, seen Seen, own records.Record) (Change, error) {
	loan, item := clone(c.loan), withStatus(seen.Item, checkedOut)
	delete(item, "inTransitDestinationServicePointId")
	change := Change{Loan: loan, Session: newSession(didCheckOut, c.sessionID, loan)}
	change.setItem(item)
	if own != nil {
		change.Requests = seen.Queue.listChanged(seen.Queue.fillRequest(own, seen.Item, seen.OtherTitles))
	}
	change.Events = []Event{newEvent(ctx, ItemCheckedOut, map[string]any{
		"loanId": c.LoanID.String(), "userId": c.UserID.String(), "itemId": c.ItemID.String(), "proxyUserId": loan.Text("proxyUserId"),
		"loanDate": loan.Text("loanDate"), "dueDate": loan.Text("dueDate"), "action": loan.Text("action"),
		"servicePointId": loan.Text("checkoutServicePointId"), "loanPolicyId": loan.Text("loanPolicyId"),
		"filledRequestId": own.ID(), "requests": seen.Queue.listStatuses(change.Requests),
	})}
	return change.complete(ctx, seen.Now, nil, []records.Record{seen.Item}, seen.Queue)
}
