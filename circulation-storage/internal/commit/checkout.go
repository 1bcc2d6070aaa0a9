// Package commit is the commit of one check-out, one check-in, or one new
// request: what must hold in its transaction, and what is written then. It judges
// records that the store has read and locked, and knows neither SQL nor HTTP.
package commit

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
)

// CheckOut is a check-out to commit, as ParseCheckOut read it.
type CheckOut struct {
	LoanID uuid.UUID // chosen by the caller; the same one again is a repeat
	UserID uuid.UUID // the patron who borrows, never the proxy
	ItemID uuid.UUID
	// ItemVersion is the _version of the item that the caller judged.
	ItemVersion int
	// LockID is the lock that the caller holds; Nil means none.
	LockID uuid.UUID
	// SettingsVersion is the version of the settings that the caller acted on. It is
	// empty only under a lock that the tenant's own settings ask for.
	SettingsVersion string
	// ClaimID is the caller's claim on the Idempotency-Key that the check-out came
	// with; Nil means that it came with none.
	ClaimID uuid.UUID
	// RequestID is the borrower's request that the caller saw first in the queue;
	// Nil means that nobody waits for the item.
	RequestID uuid.UUID
	// TitleLevel makes the requests of the item's instance the queue.
	TitleLevel bool

	loan      records.Record
	sessionID string // "" when the desk keeps none
}

// ParseCheckOut reads the body of POST /loan-storage/check-outs. Faults:
// Malformed for what is no JSON or a loan's date that is none, Invalid for
// everything else, each with where it is wrong and what is allowed.
func ParseCheckOut(body []byte) (CheckOut, error) {
	doc, err := parse("check-out", body)
	if err != nil {
		return CheckOut{}, err
	}
	loan := doc.Object("loan")
	c := CheckOut{
		LoanID: id(loan, "id"), UserID: id(loan, "userId"), ItemID: id(loan, "itemId"),
		ItemVersion: integer(doc["itemVersion"]),
		LockID:      id(doc, "lockId"), SettingsVersion: doc.Text("settingsVersion"), ClaimID: id(doc, "claimId"),
		RequestID: id(doc, "requestId"), TitleLevel: doc["titleLevelRequests"] == true,
		loan: loan, sessionID: doc.Text("sessionId"),
	}
	if c.LockID == uuid.Nil && c.SettingsVersion == "" {
		return CheckOut{}, invalid("lockId or settingsVersion is required", "lockId", doc.Text("lockId"))
	}
	if loan.Object("status") != nil && !records.IsOpenLoan(loan) {
		return CheckOut{}, invalid("loan.status.name must be Open", "loan.status.name", loan.Text("status.name"))
	}
	if date, ok := loan["returnDate"]; ok {
		return CheckOut{}, invalid("loan.returnDate must be absent in a check-out", "loan.returnDate", fmt.Sprint(date))
	}
	loan["id"] = c.LoanID.String()
	return c, nil
}

// Seen is what the transaction of a check-out found, each row locked before the
// next was looked for, in this order.
type Seen struct {
	// ClaimedLoan is the loan that the claim named by ClaimID is for; Nil means that
	// there is no such claim, or that its key is finished.
	ClaimedLoan uuid.UUID
	// LockUser is whom the lock named by LockID is for; Nil means that there is no
	// such lock.
	LockUser uuid.UUID
	// SettingsVersion is the stored one, read when the check-out names one.
	SettingsVersion string
	// EnvironmentOn means that the environment of an instance turns the lock on; read
	// with SettingsVersion.
	EnvironmentOn bool
	Item          records.Record // nil when there is none
	Loan          records.Record // the one with the check-out's loan id; nil when there is none
	OnLoan        bool           // the item has an open loan
	Queue         Queue          // the open requests of the item or, for TitleLevel, of its instance
	Moment
}

// Lending is what to write for a check-out, or to answer again.
type Lending struct {
	Loan records.Record
	Item records.Record // nil in a repeat whose item was deleted since
	// Requests are those of the queue that change; Session says what the patron
	// did. Both are nil in a repeat.
	Requests []records.Record
	Session  records.Record
	// Event tells others; zero in a repeat.
	Event Event
	// Repeated is a check-out that was committed before: nothing is to be written.
	Repeated bool
}

// notLendable are the item statuses that FOLIO's circulation refuses.
var notLendable = []string{checkedOut, "Declared lost", "Claimed returned", "Intellectual item", "Aged to lost"}

const checkedOut = "Checked out"

// Decide judges a check-out. A repeat is answered again whether or not its lock
// still exists. Faults: ClaimLost, LockLost, SettingsChanged, ItemChanged,
// RequestChanged, Invalid.
func (c CheckOut) Decide(ctx context.Context, seen Seen) (Lending, error) {
	if seen.Loan != nil {
		return c.again(seen)
	}
	if err := c.checkFence(seen); err != nil {
		return Lending{}, err
	}
	if err := c.checkItem(seen); err != nil {
		return Lending{}, err
	}
	own, err := c.ownRequest(seen)
	if err != nil {
		return Lending{}, err
	}
	return c.lend(ctx, seen, own)
}

func (c CheckOut) again(seen Seen) (Lending, error) {
	if id(seen.Loan, "userId") != c.UserID || id(seen.Loan, "itemId") != c.ItemID {
		return Lending{}, c.LoanTaken()
	}
	return Lending{Loan: seen.Loan, Item: seen.Item, Repeated: true}, nil
}

// LoanTaken is the fault for a loan id that another patron's loan has, or
// another item's.
func (c CheckOut) LoanTaken() error {
	return invalid("loan.id is already that of a loan to another patron or of another item", "loan.id", c.LoanID.String())
}

// checkFence refuses a commit whose claim was taken over, or whose lock was
// released or taken over. An outdated lock or claim that nobody took still counts:
// nobody else could have lent meanwhile.
func (c CheckOut) checkFence(seen Seen) error {
	locked := seen.LockUser != uuid.Nil && seen.LockUser == c.UserID
	switch {
	case c.ClaimID != uuid.Nil && seen.ClaimedLoan != c.LoanID:
		return fault.New(fault.ClaimLost, "The claim %s is no longer that of the loan: somebody else finishes the check-out", c.ClaimID)
	case c.LockID != uuid.Nil && !locked:
		return ErrLockLost(c.LockID)
	case c.SettingsVersion != "" && seen.SettingsVersion != c.SettingsVersion:
		return fault.New(fault.SettingsChanged, "The check-out lock settings have version %s, not %s: read them again",
			seen.SettingsVersion, c.SettingsVersion)
	case c.LockID == uuid.Nil && seen.EnvironmentOn:
		return fault.New(fault.SettingsChanged, "The environment of another instance turns the check-out lock on: acquire the lock")
	}
	return nil
}

// ErrLockLost is the fault for a lock that is not, or no longer, the patron's.
func ErrLockLost(id uuid.UUID) error {
	return fault.New(fault.LockLost, "The lock %s is no longer that of the patron: acquire it anew and count again", id)
}

func (c CheckOut) checkItem(seen Seen) error {
	if seen.Item == nil {
		return noItem("loan.itemId", c.ItemID)
	}
	if err := checkVersion(seen.Item, c.ItemVersion); err != nil {
		return err
	}
	if status := seen.Item.Text("status.name"); slices.Contains(notLendable, status) {
		return fault.New(fault.ItemChanged, "The item has the status %s and cannot be lent", status)
	}
	if seen.OnLoan {
		return records.Loan().Violation(openLoanKey, c.loan)
	}
	return nil
}

// ownRequest returns the borrower's request that the check-out fills, nil when
// nobody waits for the item. Who is not first in the queue gets no item.
func (c CheckOut) ownRequest(seen Seen) (records.Record, error) {
	own, err := seen.Queue.expect(c.RequestID, seen.Item, c.TitleLevel)
	if err == nil && own != nil && id(own, "requesterId") != c.UserID {
		return nil, fault.New(fault.RequestChanged, "The request %s is another patron's: read the queue again", c.RequestID)
	}
	return own, err
}

// openLoanKey is the unique index that allows one open loan per item.
const openLoanKey = "loan_open_item_id_key"

func (c CheckOut) lend(ctx context.Context, seen Seen, own records.Record) (Lending, error) {
	l := Lending{Loan: clone(c.loan), Item: clone(seen.Item)}
	if err := seen.complete(ctx, records.Loan(), l.Loan, nil); err != nil {
		return Lending{}, err
	}
	l.Item["status"] = map[string]any{"name": checkedOut}
	delete(l.Item, "inTransitDestinationServicePointId")
	if err := seen.completeItem(ctx, l.Item, seen.Item); err != nil {
		return Lending{}, err
	}
	if own != nil {
		var err error
		if l.Requests, err = seen.completeRequests(ctx, seen.Queue, seen.Queue.fill(own, seen.Item)); err != nil {
			return Lending{}, err
		}
	}
	l.Session = newSession(didCheckOut, c.sessionID, l.Loan)
	if err := seen.complete(ctx, records.PatronActionSession(), l.Session, nil); err != nil {
		return Lending{}, err
	}
	l.Event = newEvent(ctx, ItemCheckedOut, map[string]string{
		"loanId": c.LoanID.String(), "userId": c.UserID.String(), "itemId": c.ItemID.String(),
		"loanDate": l.Loan.Text("loanDate"), "dueDate": l.Loan.Text("dueDate"),
		"filledRequestId": own.ID(),
	})
	return l, nil
}

// Violation is the fault for writing the loan against a constraint that another
// transaction's write made bite in between; nil for one that says nothing to the
// caller.
func (c CheckOut) Violation(constraint string) error {
	if constraint == records.Loan().Table+"_pkey" {
		return c.LoanTaken()
	}
	return records.Loan().Violation(constraint, c.loan)
}

func parse(schema string, body []byte) (records.Record, error) {
	doc, err := records.Decode(body)
	if err != nil {
		return nil, err
	}
	return doc, jsonschema.Check(schema, map[string]any(doc))
}
