package desk

import (
	"context"
	"strconv"
	"strings"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/jsonschema"
	"checkoutlock/web/texts"
)

const (
	noSecurityMarker = "01"
	otherFee         = "01" // the fee type of everything, because no fees are kept
	otherStatus      = "01"
	recalledStatus   = "07"
)

// circulationStatuses are SIP2's numbers of the statuses of items; otherStatus is that of all others.
var circulationStatuses = map[string]string{
	"On order": "02", library.StatusAvailable: "03", library.StatusCheckedOut: "04", "In process": "06",
	"In process (non-requestable)": "06", library.StatusAwaitingPickup: "08", library.StatusInTransit: "10",
	library.StatusAwaitingDelivery: "10", library.StatusClaimedReturned: "11", library.StatusDeclaredLost: "12",
	library.StatusAgedToLost: "12", "Lost and paid": "12", "Missing": "13", "Long missing": "13",
}

// mediaTypes are SIP2's numbers of material types by name, in lower case.
var mediaTypes = map[string]string{"book": "001", "cd": "006"}

func mediaOf(material library.Named) string { return mediaTypes[strings.ToLower(material.Name)] }

// describeItem answers 17 with 18. It never says who has the item.
func (d *Desk) describeItem(ctx context.Context, v *visit) wire.Answer {
	if refusal, incomplete := v.refuseUnscanned("AB"); incomplete {
		return refusal
	}
	facts, err := library.ReadFacts(ctx, d.Library, schemas.CheckOutSubjects{ItemBarcode: v.Field("AB")})
	if err != nil {
		return d.fail(ctx, v, err)
	}
	if facts.Item.ID == "" {
		return v.refuse(texts.MachineItemUnknown, texts.Values{"item": v.Field("AB")})
	}
	var due time.Time
	if facts.IsOnLoan() {
		loan, _, err := fault.Found(d.Library.OpenLoan(ctx, facts.Item.ID))
		if err != nil {
			return d.fail(ctx, v, err)
		}
		due = readLoan(loan).DueDate.Time
	}
	return v.answerItem(&facts, due)
}

// answerItem writes 18. due is the zero time for an item that is not lent.
func (v *visit) answerItem(facts *library.Facts, due time.Time) wire.Answer {
	recall, recalled := facts.FindRecall("")
	status, known := circulationStatuses[facts.Item.Status.Name]
	switch {
	case !known:
		status = otherStatus
	case recalled && facts.Item.Status.Name == library.StatusCheckedOut:
		status = recalledStatus
	}
	a := wire.NewAnswer("18", status, noSecurityMarker, otherFee, v.date())
	a.Add("CF", strconv.Itoa(len(facts.Requests)))
	a.AddFilled("AH", v.formatDue(due))
	if recalled {
		a.AddFilled("CJ", v.formatStored(recall.RequestDate))
	}
	if first, waits := facts.FindLent(); waits && first.Status == schemas.RequestAwaitingPickup {
		a.AddFilled("CM", v.formatStored(first.HoldShelfExpirationDate))
	}
	a.Add("AB", v.Field("AB"))
	a.Add("AJ", facts.Instance.Title)
	a.AddFilled("CK", mediaOf(facts.Material))
	a.AddFilled("AQ", facts.Location.Name)
	a.AddFilled("AP", facts.Location.Name)
	return a
}

// formatStored writes a date of a stored record; "" for none.
func (v *visit) formatStored(stored string) string {
	at, err := jsonschema.ParseTime(stored)
	if err != nil {
		return ""
	}
	return wire.FormatDate(at.In(v.zone))
}
