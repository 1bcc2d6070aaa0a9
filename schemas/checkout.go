package schemas

import (
	"encoding/json"
	"time"
)

// CheckOut is the body of POST /loan-storage/check-outs (ours): everything one
// check-out writes, in one transaction. One of LockID and SettingsVersion is
// given, or both, unless it is Unfenced.
type CheckOut struct {
	// Loan is the storage loan, id chosen by the caller: a repeat with the same
	// id, patron and item answers the same loan again.
	Loan json.RawMessage `json:"loan"`
	// ItemVersion is the _version of the item that the caller judged.
	ItemVersion int `json:"itemVersion"`
	// LockID names the caller's lock of the loan's userId, never the proxy's. It is the
	// fence.
	LockID string `json:"lockId,omitempty"`
	// ReleaseLock releases the lock in the transaction that writes the loan. A commit that
	// is refused leaves it, and so does a repeat.
	ReleaseLock bool `json:"releaseLock,omitempty"`
	// TakeLock makes the commit take the patron's lock if it is free, under LockID, which is new. It
	// needs ReleaseLock. A storage of an earlier build answers LOCK_LOST.
	TakeLock *LockTurn `json:"takeLock,omitempty"`
	// Limits bound the patron's open loans. Storage counts them under the lock, so they need
	// LockID. A refusal names those that are reached by their place in the list.
	Limits []LoanLimit `json:"limits,omitempty"`
	// SettingsVersion is the version of the lock settings that the caller acted on.
	// It is required without a lock, and under a lock that only an environment asks
	// for.
	SettingsVersion string `json:"settingsVersion,omitempty"`
	// Unfenced lends without the patron's lock and without limits: staff record a loan.
	Unfenced bool `json:"unfenced,omitempty"`
	// FilledRequestID names the first open request that the item can fill, which is the
	// borrower's: it is closed as filled, and the requests after it move up. It is absent
	// when no request waits for the item.
	FilledRequestID string `json:"requestId,omitempty"`
	// TitleLevel makes the requests of the item's instance the queue, not those of
	// the item alone (FOLIO's title-level requests).
	TitleLevel bool `json:"titleLevelRequests,omitempty"`
	// Recalled says whether an open recall of the item waits besides FilledRequestID. The due date
	// of the loan depends on that. Storage judges it unless it is nil.
	Recalled *bool `json:"recalled,omitempty"`
	// SessionID names the session at the desk, which its record keeps.
	SessionID string `json:"sessionId,omitempty"`
	// KeyLeaseID names the caller's lease of the Idempotency-Key of the check-out, if
	// it has one: a second fence, see KeyLeaseRequest.
	KeyLeaseID string `json:"claimId,omitempty"`
	// StatusOnly shortens the answer's item to its status: the caller knows the rest. A storage of an
	// earlier build answers the whole item.
	StatusOnly bool `json:"statusOnly,omitempty"`
}

// LockTurn is how a commit gets its turn at the patron's lock.
type LockTurn struct {
	// AcquisitionID is that of the request which acquires the lock if the commit finds it held.
	AcquisitionID string `json:"requestId"`
	// WaitMs is how long the commit waits for its turn, 0 to MaxLockTurnWaitMs.
	WaitMs int `json:"waitMs,omitempty"`
}

// MaxLockTurnWaitMs bounds LockTurn.WaitMs. Who waits longer acquires the lock first.
const MaxLockTurnWaitMs = 250

// CheckOutResult is the answer to it: the loan and the item as stored.
type CheckOutResult struct {
	Loan json.RawMessage `json:"loan"`
	Item json.RawMessage `json:"item"` // with CheckOut.StatusOnly, only its status
	// Repeated says that the loan was there already.
	Repeated bool `json:"repeated,omitempty"`
	// LockReleased says that the commit released the lock, as ReleaseLock asked.
	LockReleased bool `json:"lockReleased,omitempty"`
	// LockWaitMs is how long the commit waited for the lock that it took itself.
	LockWaitMs float64 `json:"lockWaitMs,omitempty"`
}

// SettledCheckOut is the answer of POST /loan-storage/check-outs/{loanId}/settlement (ours): the loan
// that was made, or that it never will be.
type SettledCheckOut struct {
	GivenUp bool `json:"givenUp,omitempty"` // there is no loan, and none will be made
	// Loan and Item are as they are stored now. Of a loan that was deleted since, Loan is the one that
	// was lent, and Item is absent.
	Loan json.RawMessage `json:"loan,omitempty"`
	Item json.RawMessage `json:"item,omitempty"`
}

// CheckIn is the body of POST /loan-storage/check-ins (ours), the twin of
// CheckOut. It needs no lock: a check-in only lowers a patron's count.
type CheckIn struct {
	// ID is chosen by the caller: a repeat with the same id and item gets the
	// first answer, for a day. Without it a repeat is not recognised.
	ID             string `json:"id,omitempty"`
	ItemID         string `json:"itemId"`
	ServicePointID string `json:"servicePointId"`
	CheckInDate    string `json:"checkInDate"` // RFC 3339
	// ItemVersion is the _version of the item that the caller judged.
	ItemVersion int `json:"itemVersion"`
	// ItemStatus is the status the item gets: Available, In transit, …
	ItemStatus string `json:"itemStatus"`
	// InTransitDestinationServicePointID goes with the status In transit.
	InTransitDestinationServicePointID string `json:"inTransitDestinationServicePointId,omitempty"`
	// StaffMemberID is who checked in, for the item's lastCheckIn.
	StaffMemberID string `json:"staffMemberId,omitempty"`
	// LoanAction is the closed loan's action: checkedin, or one of the two that
	// resolve a claimed return (checkedInReturnedByPatron,
	// checkedInFoundByLibrary); absent means checkedin.
	LoanAction string `json:"loanAction,omitempty"`
	// RequestID names the first open request that the item can fill: the item now
	// serves it. It is absent when no request waits for the item.
	RequestID string `json:"requestId,omitempty"`
	// RequestStatus is the status which that request gets: Open - Awaiting pickup,
	// Open - In transit or Open - Awaiting delivery.
	RequestStatus string `json:"requestStatus,omitempty"`
	// HoldShelfExpirationDate is until when the item waits for the patron, RFC
	// 3339; absent means that the request has no such date.
	HoldShelfExpirationDate string `json:"holdShelfExpirationDate,omitempty"`
	// TitleLevel means what it does in CheckOut.
	TitleLevel bool `json:"titleLevelRequests,omitempty"`
	// SessionID names the session at the desk, which its record keeps.
	SessionID string `json:"sessionId,omitempty"`
	// Loan is the closed loan as staff write it, in place of what a check-in makes of the stored
	// one. It must be the item's open loan.
	Loan json.RawMessage `json:"loan,omitempty"`
}

// CheckInResult is the answer to it. Loan is absent when the item was not on
// loan.
type CheckInResult struct {
	Loan json.RawMessage `json:"loan,omitempty"`
	Item json.RawMessage `json:"item"`
}

// Renewal is the body of POST /loan-storage/renewals (ours): an open loan gets a
// later due date if it is still as the caller judged it.
type Renewal struct {
	LoanID string `json:"loanId"`
	// ItemID is the loan's item and ItemVersion the _version that was judged.
	ItemID      string `json:"itemId"`
	ItemVersion int    `json:"itemVersion"`
	// JudgedDueDate and JudgedRenewalCount are those of the loan that was judged;
	// absent is a loan without a due date.
	JudgedDueDate      string `json:"judgedDueDate,omitempty"`
	JudgedRenewalCount int    `json:"judgedRenewalCount"`
	// DueDate is the new one, later than the old. RFC 3339.
	DueDate string `json:"dueDate"`
	// LoanPolicyID is the policy that allowed the renewal; the loan is under it
	// from now on.
	LoanPolicyID string `json:"loanPolicyId"`
	// Override is there if staff lifted a block.
	Override *RenewalOverride `json:"override,omitempty"`
}

// RenewalOverride is a renewal that staff allow although something forbids it.
type RenewalOverride struct {
	Comment string `json:"comment"`
	// Recalled allows an open recall of the item.
	Recalled bool `json:"recalled,omitempty"`
	// ItemStatus is the status that a lost item gets, for it is with the patron: Checked out.
	ItemStatus string `json:"itemStatus,omitempty"`
}

// RenewalResult is the answer to it: the loan as stored.
type RenewalResult struct {
	Loan json.RawMessage `json:"loan"`
}

// CheckOutSubjects is the body of POST /loan-storage/check-out-facts (ours): what a
// check-out names. All fields are optional. It is a body, because barcodes of patrons do
// not belong into logs of URLs.
type CheckOutSubjects struct {
	UserBarcode      string `json:"userBarcode,omitempty"`
	ProxyUserBarcode string `json:"proxyUserBarcode,omitempty"`
	ItemBarcode      string `json:"itemBarcode,omitempty"`
	// UserID and ItemID name the user and the item instead of the barcodes.
	UserID string `json:"userId,omitempty"`
	ItemID string `json:"itemId,omitempty"`
	// TitleLevel asks for the queue of the item's instance instead of the item's own.
	TitleLevel bool `json:"titleLevel,omitempty"`
	// ServicePointID is where the item is checked in. It asks for Slip.
	ServicePointID string `json:"servicePointId,omitempty"`
}

// CheckOutFacts is the answer: the records that a check-out is judged by, as of one
// moment. A record that does not exist is absent.
type CheckOutFacts struct {
	User           json.RawMessage   `json:"user,omitempty"`
	ProxyUser      json.RawMessage   `json:"proxyUser,omitempty"`
	ProxyRelations []json.RawMessage `json:"proxyRelations,omitempty"` // of proxy and user
	ManualBlocks   []json.RawMessage `json:"manualBlocks,omitempty"`   // of the user
	// AutomatedBlocks is the answer of GET /automated-patron-blocks/{userId}; absent if there
	// are none.
	AutomatedBlocks json.RawMessage `json:"automatedBlocks,omitempty"`
	// BlockLimits are those of the user's group that block borrowing, reached or not.
	BlockLimits []BlockLimit `json:"blockLimits,omitempty"`

	Item     json.RawMessage `json:"item,omitempty"`
	Holdings json.RawMessage `json:"holdings,omitempty"`
	Instance json.RawMessage `json:"instance,omitempty"`
	OnLoan   bool            `json:"onLoan"` // the item has an open loan
	// OnLoanToUser says that the open loan is the user's.
	OnLoanToUser bool              `json:"onLoanToUser,omitempty"`
	Requests     []json.RawMessage `json:"requests,omitempty"` // open ones, by position

	// OpenLoans counts the user's open loans as limits do.
	OpenLoans []OpenLoans `json:"openLoans,omitempty"`

	// Slip has the records that a check-in and its staff slip name besides these: loanType, library,
	// campus, institution, requester, group and servicePoints. It is null if there are none.
	Slip json.RawMessage `json:"slip,omitempty"`

	// ReferenceVersion changes with the reference records, which circulation keeps.
	ReferenceVersion string `json:"referenceVersion,omitempty"`
	// ReadAt is when they were read, by the database's clock.
	ReadAt time.Time `json:"readAt,omitzero"`
}

// MaxQueue is the longest queue of requests that a check-out reads. Positions come first,
// so only the end of a longer queue is cut off.
const MaxQueue = 10_000
