package commit

import (
	"context"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
)

// CheckIn is a check-in to commit, as ParseCheckIn read it. It needs no lock: it
// can only lower a patron's count.
type CheckIn struct {
	ID     uuid.UUID // chosen by the caller; the same one again is a repeat; Nil for none
	ItemID uuid.UUID
	// ItemVersion is the _version of the item that the caller judged.
	ItemVersion int
	// RequestID is the request that the caller saw first in the queue; Nil means
	// that nobody waits for the item.
	RequestID uuid.UUID
	// TitleLevel makes the requests of the item's instance the queue.
	TitleLevel bool

	servicePointID string
	date           string // as sent; it becomes the loan's returnDate
	itemStatus     string
	destinationID  string // "" unless the item goes in transit
	staffMemberID  string // "" when nobody is named
	loanAction     string
	requestStatus  string // of the request that the item now serves
	holdShelfUntil string // "" takes the date away
	sessionID      string // "" when the desk keeps none
}

const (
	inTransit      = "In transit"
	defaultCheckIn = "checkedin"
)

// ParseCheckIn reads the body of POST /loan-storage/check-ins. Faults: Malformed
// for what is no JSON, Invalid for everything else, each with where it is wrong
// and what is allowed.
func ParseCheckIn(body []byte) (CheckIn, error) {
	doc, err := parse("check-in", body)
	if err != nil {
		return CheckIn{}, err
	}
	c := CheckIn{
		ID: id(doc, "id"), ItemID: id(doc, "itemId"), ItemVersion: integer(doc["itemVersion"]),
		servicePointID: doc.Text("servicePointId"), date: doc.Text("checkInDate"),
		itemStatus: doc.Text("itemStatus"), destinationID: doc.Text("inTransitDestinationServicePointId"),
		staffMemberID: doc.Text("staffMemberId"), loanAction: doc.Text("loanAction"),
		RequestID: id(doc, "requestId"), TitleLevel: doc["titleLevelRequests"] == true,
		requestStatus: doc.Text("requestStatus"), holdShelfUntil: doc.Text("holdShelfExpirationDate"),
		sessionID: doc.Text("sessionId"),
	}
	if c.loanAction == "" {
		c.loanAction = defaultCheckIn
	}
	if c.itemStatus == checkedOut {
		return CheckIn{}, invalid("itemStatus must not be Checked out after a check-in", "itemStatus", c.itemStatus)
	}
	if c.destinationID != "" && c.itemStatus != inTransit {
		return CheckIn{}, invalid("inTransitDestinationServicePointId is allowed with the itemStatus In transit only",
			"inTransitDestinationServicePointId", c.destinationID)
	}
	return c, c.checkRequest()
}

// checkRequest refuses half of what is said about a request.
func (c CheckIn) checkRequest() error {
	switch {
	case (c.RequestID == uuid.Nil) != (c.requestStatus == ""):
		return invalid("requestId and requestStatus go together", "requestStatus", c.requestStatus)
	case c.holdShelfUntil != "" && c.requestStatus != schemas.RequestAwaitingPickup:
		return invalid("holdShelfExpirationDate is allowed with the requestStatus Open - Awaiting pickup only",
			"holdShelfExpirationDate", c.holdShelfUntil)
	}
	return nil
}

// SeenReturn is what the transaction of a check-in found, the item locked before
// its loan, and that before the queue.
type SeenReturn struct {
	// Before is the check-in with the same id that was committed before, nil for none.
	// It is looked for after the item was locked.
	Before *PastCheckIn
	Item   records.Record // nil when there is none
	Loan   records.Record // the item's open loan; nil when it is not on loan
	Queue  Queue          // the open requests of the item or, for TitleLevel, of its instance
	Moment
}

// PastCheckIn is a check-in that was committed, with its answer.
type PastCheckIn struct {
	ItemID uuid.UUID
	Result schemas.CheckInResult
}

// Returning is what to write for a check-in, or to answer again.
type Returning struct {
	// Repeated is the answer of a check-in that was committed before: nothing is to
	// be written. It is nil for a new one.
	Repeated *schemas.CheckInResult
	Loan     records.Record // nil when the item was not on loan
	Item     records.Record
	Requests []records.Record // those of the queue that change
	Session  records.Record   // nil when the item was not on loan
	Event    Event
}

// Decide judges a check-in. A repeat is answered again, also when the item has
// changed since. Faults: ItemChanged, RequestChanged, Invalid.
func (c CheckIn) Decide(ctx context.Context, seen SeenReturn) (Returning, error) {
	switch {
	case seen.Before != nil && seen.Before.ItemID != c.ItemID:
		return Returning{}, c.idTaken()
	case seen.Before != nil:
		return Returning{Repeated: &seen.Before.Result}, nil
	}
	if seen.Item == nil {
		return Returning{}, noItem("itemId", c.ItemID)
	}
	if err := checkVersion(seen.Item, c.ItemVersion); err != nil {
		return Returning{}, err
	}
	served, err := seen.Queue.expect(c.RequestID, seen.Item, c.TitleLevel)
	if err != nil {
		return Returning{}, err
	}
	r := Returning{}
	if served != nil {
		if r.Requests, err = seen.completeRequests(ctx, seen.Queue, c.serve(served, seen)); err != nil {
			return Returning{}, err
		}
	}
	if seen.Loan != nil {
		r.Loan = c.closeLoan(seen)
		if err := seen.complete(ctx, records.Loan(), r.Loan, seen.Loan); err != nil {
			return Returning{}, err
		}
		r.Session = newSession(didCheckIn, c.sessionID, r.Loan)
		if err := seen.complete(ctx, records.PatronActionSession(), r.Session, nil); err != nil {
			return Returning{}, err
		}
	}
	r.Item = c.receive(seen)
	if err := seen.completeItem(ctx, r.Item, seen.Item); err != nil {
		return Returning{}, err
	}
	r.Event = newEvent(ctx, ItemCheckedIn, map[string]string{
		"itemId": c.ItemID.String(), "itemStatus": c.itemStatus, "servicePointId": c.servicePointID, "returnDate": c.date,
		"loanId": seen.Loan.ID(), "userId": seen.Loan.Text("userId"),
		"servedRequestId": served.ID(),
	})
	return r, nil
}

func (c CheckIn) idTaken() error {
	return invalid("id is already that of a check-in of another item", "id", c.ID.String())
}

// Violation is the fault for writing a check-in against a constraint that another
// transaction's write violates meanwhile; nil for one that is not the caller's.
func (c CheckIn) Violation(constraint string) error {
	if constraint == "check_in_pkey" {
		return c.idTaken()
	}
	return nil
}

func (c CheckIn) closeLoan(seen SeenReturn) records.Record {
	loan := clone(seen.Loan)
	loan["status"] = map[string]any{"name": "Closed"}
	loan["action"] = c.loanAction
	loan["returnDate"] = c.date
	loan["systemReturnDate"] = seen.Now.UTC().Format(schemas.FolioTime)
	loan["checkinServicePointId"] = c.servicePointID
	loan["itemStatus"] = c.itemStatus
	return loan
}

// serve is the queue after the item was set aside for the request.
func (c CheckIn) serve(request records.Record, seen SeenReturn) []records.Record {
	request = assign(request, seen.Item)
	request["status"] = c.requestStatus
	delete(request, "holdShelfExpirationDate")
	if c.holdShelfUntil != "" {
		request["holdShelfExpirationDate"] = c.holdShelfUntil
	}
	return seen.Queue.serve(request)
}

// receive gives the item its new place. lastCheckIn has the time at which the
// check-in was processed, as in FOLIO, also when checkInDate is an earlier one.
func (c CheckIn) receive(seen SeenReturn) records.Record {
	item := clone(seen.Item)
	item["status"] = map[string]any{"name": c.itemStatus}
	last := map[string]any{"dateTime": seen.Now.UTC().Format(schemas.FolioTime), "servicePointId": c.servicePointID}
	if c.staffMemberID != "" {
		last["staffMemberId"] = c.staffMemberID
	}
	item["lastCheckIn"] = last
	delete(item, "inTransitDestinationServicePointId")
	if c.destinationID != "" {
		item["inTransitDestinationServicePointId"] = c.destinationID
	}
	return item
}
