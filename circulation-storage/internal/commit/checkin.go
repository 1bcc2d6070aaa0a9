package commit

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// CheckIn is a check-in to commit, from ParseCheckIn. It needs no lock, because it can
// only lower a patron's count.
type CheckIn struct {
	ID     uuid.UUID // chosen by the caller; a repeat has the same one; Nil for none
	ItemID uuid.UUID
	// ItemVersion is the _version of the item that the caller judged.
	ItemVersion int
	// RequestID is the request that the caller saw first in the queue; Nil means an
	// empty queue.
	RequestID uuid.UUID
	// TitleLevel makes the requests of the item's instance the queue.
	TitleLevel bool

	servicePointID string
	date           string // as sent; it becomes the loan's returnDate
	itemStatus     string
	destinationID  string // "" unless the item goes in transit
	staffMemberID  string // "" if none is named
	loanAction     string
	requestStatus  string         // the new status of the request RequestID
	holdShelfUntil string         // "" removes the date
	sessionID      string         // "" if the desk keeps none
	loan           records.Record // the closed loan as staff write it; nil for a check-in at a desk
}

const (
	inTransit      = "In transit"
	defaultCheckIn = "checkedin"
)

// ParseCheckIn reads the body of POST /loan-storage/check-ins. Faults: Malformed for bad
// JSON, Invalid for the rest, with place and rule.
func ParseCheckIn(body []byte) (CheckIn, error) {
	doc, err := parseBody("check-in", body)
	if err != nil {
		return CheckIn{}, err
	}
	c := CheckIn{
		ID: readID(doc, "id"), ItemID: readID(doc, "itemId"), ItemVersion: readInteger(doc["itemVersion"]),
		servicePointID: doc.Text("servicePointId"), date: doc.Text("checkInDate"),
		itemStatus: doc.Text("itemStatus"), destinationID: doc.Text("inTransitDestinationServicePointId"),
		staffMemberID: doc.Text("staffMemberId"), loanAction: cmp.Or(doc.Text("loanAction"), defaultCheckIn),
		RequestID: readID(doc, "requestId"), TitleLevel: doc["titleLevelRequests"] == true,
		requestStatus: doc.Text("requestStatus"), holdShelfUntil: doc.Text("holdShelfExpirationDate"),
		sessionID: doc.Text("sessionId"), loan: doc.Object("loan"),
	}
	if c.loan != nil && c.loan.Text("status.name") != closed {
		return CheckIn{}, newInvalid("loan.status.name must be Closed", "loan.status.name", c.loan.Text("status.name"))
	}
	if c.loan != nil && readID(c.loan, "itemId") != c.ItemID {
		return CheckIn{}, newInvalid("loan.itemId must be the itemId", "loan.itemId", c.loan.Text("itemId"))
	}
	if c.itemStatus == checkedOut {
		return CheckIn{}, newInvalid("itemStatus must not be Checked out after a check-in", "itemStatus", c.itemStatus)
	}
	if c.destinationID != "" && c.itemStatus != inTransit {
		return CheckIn{}, newInvalid("inTransitDestinationServicePointId is allowed with the itemStatus In transit only",
			"inTransitDestinationServicePointId", c.destinationID)
	}
	return c, c.checkRequest()
}

// checkRequest refuses properties of a request that are incomplete or contradict.
func (c CheckIn) checkRequest() error {
	switch {
	case (c.RequestID == uuid.Nil) != (c.requestStatus == ""):
		return newInvalid("requestId and requestStatus go together", "requestStatus", c.requestStatus)
	case c.holdShelfUntil != "" && c.requestStatus != schemas.RequestAwaitingPickup:
		return newInvalid("holdShelfExpirationDate is allowed with the requestStatus Open - Awaiting pickup only",
			"holdShelfExpirationDate", c.holdShelfUntil)
	}
	return nil
}

// Decide judges a check-in. It answers a repeat with the stored answer, also if the item
// has changed since. Faults: ItemChanged, LoanChanged, RequestChanged, Invalid.
func (c CheckIn) Decide(ctx context.Context, seen Seen) (Change, error) {
	switch {
	case seen.Before != uuid.Nil && seen.Before != c.ItemID:
		return Change{}, newInvalid("id is already that of a check-in of another item", "id", c.ID.String())
	case seen.Before != uuid.Nil:
		return Change{Repeated: true, Past: seen.Past}, nil
	}
	if seen.Item == nil {
		return Change{}, newNoItem("itemId", c.ItemID)
	}
	if err := checkVersion(seen.Item, c.ItemVersion); err != nil {
		return Change{}, err
	}
	if c.loan != nil && (seen.Loan == nil || seen.Loan.ID() != c.loan.ID()) {
		return Change{}, fault.New(fault.LoanChanged, "The loan %s is not the open loan of the item: read it again", c.loan.ID())
	}
	served, err := seen.Queue.expectFirst(c.RequestID, seen.Item, c.TitleLevel, schemas.FirstFilledBy)
	if err != nil {
		return Change{}, err
	}
	var change Change
	change.setItem(c.receiveItem(seen))
	if served != nil {
		change.Requests = seen.Queue.listChanged(c.serveRequest(served, seen))
	}
	if seen.Loan != nil {
		change.Loan = c.closeLoan(seen)
	}
	if seen.Loan != nil && c.loan == nil {
		change.Session = newSession(didCheckIn, c.sessionID, change.Loan)
	}
	if c.loan == nil {
		change.CheckIn = c.describe(ctx, seen)
	}
	change.Events = []Event{newEvent(ctx, ItemCheckedIn, map[string]any{
		"itemId": c.ItemID.String(), "itemStatusName": c.itemStatus, "servicePointId": c.servicePointID, "returnDate": c.date,
		"loanId": seen.Loan.ID(), "userId": seen.Loan.Text("userId"), "proxyUserId": seen.Loan.Text("proxyUserId"),
		"dueDate": seen.Loan.Text("dueDate"), "systemReturnDate": change.Loan.Text("systemReturnDate"), "destinationId": c.destinationID,
		"servedRequestId": served.ID(), "requests": seen.Queue.listStatuses(change.Requests),
		"claimedReturnedResolution": resolutions[change.Loan.Text("action")],
	})}
	return change.complete(ctx, seen.Now, seen.Loan, []records.Record{seen.Item}, seen.Queue)
}

// resolutions are FOLIO's texts for how a claimed return ended, by the action of the closed loan.
var resolutions = map[string]string{
	"checkedInFoundByLibrary": "Found by library", "checkedInReturnedByPatron": "Returned by patron",
}

func (c CheckIn) closeLoan(seen Seen) records.Record {
	loan := clone(seen.Loan)
	loan["status"] = map[string]any{"name": closed}
	loan["action"] = c.loanAction
	delete(loan, "actionComment") // it belonged to the action before
	if c.loan != nil {
		loan = clone(c.loan)
		keepHidden(loan, seen.Loan)
	}
	endBilling(loan, seen.Item)
	loan["returnDate"] = c.date
	loan["systemReturnDate"] = seen.Now.UTC().Format(schemas.FolioTime)
	loan["checkinServicePointId"] = c.servicePointID
	loan["itemStatus"] = c.itemStatus
	return loan
}

// serveRequest returns the queue after the item was set aside for the request.
func (c CheckIn) serveRequest(request records.Record, seen Seen) []records.Record {
	request = assignItem(request, seen.Item)
	request["status"] = c.requestStatus
	request.Set("holdShelfExpirationDate", c.holdShelfUntil)
	return seen.Queue.serveRequest(request, seen.OtherTitles)
}

// describe returns the record of the check-in. Without a user in the call it names none.
func (c CheckIn) describe(ctx context.Context, seen Seen) records.Record {
	r := records.Record{
		"id": uuid.NewString(), "occurredDateTime": seen.Now.UTC().Format(schemas.FolioTime), "itemId": c.ItemID.String(),
		"servicePointId": c.servicePointID, "requestQueueSize": len(seen.Queue), "itemStatusPriorToCheckIn": seen.Item.Text("status.name"),
	}
	r.Set("itemLocationId", seen.Item.Text("effectiveLocationId"))
	r.Set("performedByUserId", cmp.Or(c.staffMemberID, okapi.FromContext(ctx).UserID))
	return r
}

// receiveItem sets the item's status and destination. As in FOLIO, lastCheckIn has the
// time of the processing, also if checkInDate is earlier.
func (c CheckIn) receiveItem(seen Seen) records.Record {
	item := withStatus(seen.Item, c.itemStatus)
	last := records.Record{"dateTime": seen.Now.UTC().Format(schemas.FolioTime), "servicePointId": c.servicePointID}
	last.Set("staffMemberId", c.staffMemberID)
	item["lastCheckIn"] = map[string]any(last)
	item.Set("inTransitDestinationServicePointId", c.destinationID)
	return item
}
