package desk

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/texts"
)

// returnedRecently is how long a return at the same terminal is taken for a repeat.
const returnedRecently = time.Minute

// The types of alerts in CV.
const (
	alertNone      = "00"
	alertPickup    = "01" // a request, to be picked up here
	alertElsewhere = "02" // a request, to be picked up elsewhere
	alertHome      = "04" // in transit home
	alertOther     = "99"
)

// checkIn answers 09 with 10.
func (d *Desk) checkIn(ctx context.Context, v *visit) wire.Answer {
	if refusal, incomplete := v.refuseUnscanned("AB"); incomplete {
		return refusal
	}
	a, err := d.checkInOnce(ctx, v)
	if fault.Is(err, fault.ItemChanged) || fault.Is(err, fault.RequestChanged) { // by a repeat at another instance, it may be
		a, err = d.checkInOnce(ctx, v)
	}
	if err != nil {
		return d.fail(ctx, v, err)
	}
	return a
}

// checkInOnce takes the item back as it is now, or finds that this terminal has just done so. Faults:
// ItemChanged and RequestChanged if the item or its queue was changed meanwhile.
func (d *Desk) checkInOnce(ctx context.Context, v *visit) (wire.Answer, error) {
	facts, err := library.ReadFacts(ctx, d.Library, schemas.CheckOutSubjects{
		ItemBarcode: v.Field("AB"), ServicePointID: v.terminal.ServicePointID,
	})
	if err != nil {
		return wire.Answer{}, err
	}
	if v.hasReturned(&facts, d.readTime(&facts)) {
		return v.answerReturn(v.readReturn(&facts)), nil
	}
	date, err := d.chooseReturnDate(ctx, v, &facts)
	if err != nil {
		return wire.Answer{}, err
	}
	returned, err := d.CheckIn(ctx, checkin.Request{
		ItemBarcode: v.Field("AB"), ServicePointID: v.terminal.ServicePointID, CheckInDate: library.Instant{Time: date}.Text(),
		FillNoRequest: v.Yes("BI"), Seen: &facts.Item.Version,
	})
	switch {
	case err == nil:
		return v.answerReturn(returned), nil
	case fault.Is(err, fault.Invalid):
		code, text := explainReturn(err)
		a := v.refuse(text, texts.Values{"item": v.Field("AB")})
		a.Reason = code
		return a, nil
	}
	return wire.Answer{}, err
}

// hasReturned reports whether this terminal has just taken the item back, by the database's clock. Then
// the message is a repeat, and a second check-in would count one more use.
func (v *visit) hasReturned(facts *library.Facts, now time.Time) bool {
	by, _ := facts.Item.LastCheckIn["staffMemberId"].(string)
	at, _ := facts.Item.LastCheckIn["dateTime"].(string)
	date, err := time.Parse(time.RFC3339Nano, at)
	return err == nil && !facts.IsOnLoan() && strings.EqualFold(by, v.terminal.ID) && now.Before(date.Add(returnedRecently))
}

// readReturn returns what the check-in of an item has made of it.
func (v *visit) readReturn(facts *library.Facts) checkin.Returned {
	returned := checkin.Returned{
		Copy: facts.Copy(), Slip: facts.Slip, At: facts.Slip.FindServicePoint(v.terminal.ServicePointID),
		Destination: facts.Slip.FindServicePoint(facts.Item.InTransitDestinationServicePointID),
	}
	first, exists := schemas.FirstFilledBy(facts.Requests, facts.Item.ID, facts.Holdings.InstanceID, facts.TitleLevel)
	if exists && first.Status != schemas.RequestNotYetFilled {
		returned.Request = &first
	}
	return returned
}

// chooseReturnDate returns now. A return that has happened already (no block) has its own date, unless
// that is in the future or before the loan: clocks of machines run wrong.
func (d *Desk) chooseReturnDate(ctx context.Context, v *visit, facts *library.Facts) (time.Time, error) {
	returned, ok := v.Time(wire.ReturnDate, v.zone)
	if !v.Flag(wire.NoBlock) || !ok || returned.After(v.now) || !facts.IsOnLoan() {
		return v.now, nil
	}
	stored, exists, err := fault.Found(d.Library.OpenLoan(ctx, facts.Item.ID))
	if err != nil {
		return time.Time{}, err
	}
	if !exists || returned.Before(readLoan(stored).LoanDate.Time) {
		return v.now, nil
	}
	return returned, nil
}

// explainReturn returns the code of a refused check-in, and what is said of it.
func explainReturn(err error) (string, texts.Code) {
	code := ""
	if f, ok := errors.AsType[*fault.Error](err); ok && len(f.Details) > 0 {
		code = f.Details[0].Code
	}
	switch code {
	case library.CodeItemNotFound:
		return code, texts.MachineItemUnknown
	case checkin.CodeClaimedReturned:
		return code, texts.MachineClaimedReturned
	case library.CodeItemRequested:
		return code, texts.MachineBringToDesk
	default:
		return code, texts.MachineNotReturnable
	}
}

// answerReturn writes the answer to a check-in that happened.
func (v *visit) answerReturn(in checkin.Returned) wire.Answer {
	alert := alertOf(in)
	a := v.answer("10", "1", "Y", "U", wire.YN(alert != alertNone), v.date())
	a.Add("AB", v.Field("AB"))
	a.Add("AQ", in.Copy.Location.Name)
	a.AddFilled("AJ", in.Copy.Instance.Title)
	destination := ""
	if alert == alertElsewhere || alert == alertHome {
		destination = in.Destination.Name
		if v.terminal.DestinationForm == "code" {
			destination = in.Destination.Code
		}
	}
	a.AddFilled("CL", v.chooseBin(alert, in))
	a.AddFilled("CK", mediaOf(in.Copy.Material))
	a.AddFilled("CR", in.Copy.Location.Code)
	a.AddFilled("CS", formatCallNumber(in.Copy.Item.CallNumber))
	a.AddFilled("CT", destination)
	if alert != alertNone || v.terminal.AlertAlways {
		a.Add("CV", alert)
	}
	waiting := in.Slip.Requester
	if v.terminal.PersonalData && in.Request != nil && strings.EqualFold(waiting.ID, in.Request.RequesterID) {
		a.AddFilled("CY", waiting.Barcode)
		a.AddFilled("DA", v.nameOf(waiting))
	}
	return a
}

func alertOf(in checkin.Returned) string {
	status := in.Copy.Item.Status.Name
	switch {
	case in.Request != nil && status == library.StatusAwaitingPickup:
		return alertPickup
	case in.Request != nil && status == library.StatusInTransit:
		return alertElsewhere
	case in.Request != nil:
		return alertOther
	case status == library.StatusInTransit:
		return alertHome
	default:
		return alertNone
	}
}

// chooseBin returns the bin of the first of the terminal's rules that fits; "" for none. An empty part
// of a rule fits everything, and places fit by code or name.
func (v *visit) chooseBin(alert string, in checkin.Returned) string {
	for _, rule := range v.terminal.Bins {
		if fits(rule.Alert, alert) && fits(rule.Destination, in.Destination.Code, in.Destination.Name) &&
			fits(rule.Location, in.Copy.Location.Code, in.Copy.Location.Name) && fits(rule.MaterialType, in.Copy.Material.Name) {
			return rule.Bin
		}
	}
	return ""
}

func fits(wanted string, values ...string) bool {
	return wanted == "" || slices.ContainsFunc(values, func(value string) bool { return strings.EqualFold(wanted, value) })
}

func formatCallNumber(n library.CallNumber) string {
	return strings.Join(strings.Fields(n.Prefix+" "+n.CallNumber+" "+n.Suffix), " ")
}
