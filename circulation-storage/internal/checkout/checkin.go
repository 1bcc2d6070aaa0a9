package checkout

import (
	"context"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
)

// CheckIn is a check-in to commit, as ParseCheckIn read it. It needs no lock: it
// can only lower a patron's count.
type CheckIn struct {
	ItemID uuid.UUID
	// ItemVersion is the _version of the item that the caller judged.
	ItemVersion int

	servicePointID string
	date           string // as sent; it becomes the loan's returnDate
	itemStatus     string
	destinationID  string // "" unless the item goes in transit
	staffMemberID  string // "" when nobody is named
	loanAction     string
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
		ItemID: id(doc, "itemId"), ItemVersion: integer(doc["itemVersion"]),
		servicePointID: doc.Text("servicePointId"), date: doc.Text("checkInDate"),
		itemStatus: doc.Text("itemStatus"), destinationID: doc.Text("inTransitDestinationServicePointId"),
		staffMemberID: doc.Text("staffMemberId"), loanAction: doc.Text("loanAction"),
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
	return c, nil
}

// SeenReturn is what the transaction of a check-in found, the item locked before
// its loan.
type SeenReturn struct {
	Item records.Record // nil when there is none
	Loan records.Record // the item's open loan; nil when it is not on loan
	Moment
}

// Returning is what to write for a check-in.
type Returning struct {
	Loan  records.Record // nil when the item was not on loan
	Item  records.Record
	Event Event
}

// Decide judges a check-in. Faults: ItemChanged, Invalid.
func (c CheckIn) Decide(ctx context.Context, seen SeenReturn) (Returning, error) {
	if seen.Item == nil {
		return Returning{}, noItem("itemId", c.ItemID)
	}
	if err := checkVersion(seen.Item, c.ItemVersion); err != nil {
		return Returning{}, err
	}
	r := Returning{}
	if seen.Loan != nil {
		r.Loan = c.closeLoan(seen)
		if err := seen.complete(ctx, records.Loan(), r.Loan, seen.Loan); err != nil {
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
	})
	return r, nil
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
