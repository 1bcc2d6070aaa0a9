package desk

import (
	"context"
	"strings"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/renewal"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/texts"
)

// renewalReserve is the time before the deadline in which no further loan of several is renewed.
const renewalReserve = 500 * time.Millisecond

// renew answers 29 with 30.
func (d *Desk) renew(ctx context.Context, v *visit) wire.Answer {
	if refusal, incomplete := v.refuseUnscanned("AA", "AB"); incomplete {
		return refusal
	}
	if !v.terminal.Renews() {
		return v.refuse(texts.MachineNotRenewable, nil)
	}
	card, err := d.findCard(ctx, v)
	if err != nil {
		return d.fail(ctx, v, err)
	}
	if card == "" {
		return v.refuse(texts.MachineCardUnknown, texts.Values{"card": v.Field("AA")})
	}
	if refusal, wrong := d.refusePIN(ctx, v, card); wrong {
		return refusal
	}
	o, err := d.renewOnce(ctx, v, card)
	if fault.Is(err, fault.LoanChanged) { // by a repeat at another instance, it may be
		o, err = d.renewOnce(ctx, v, card)
	}
	if err != nil {
		return d.fail(ctx, v, err)
	}
	return v.answerLoan("30", o)
}

// renewOnce renews the loan as it is now, or finds that this terminal has just renewed it. Fault:
// LoanChanged if it was renewed meanwhile.
func (d *Desk) renewOnce(ctx context.Context, v *visit, card string) (outcome, error) {
	facts, loan, err := d.readAround(ctx, card, v.Field("AB"))
	if err != nil {
		return outcome{}, err
	}
	o := describeCopy(facts.Copy())
	if strings.EqualFold(loan.UserID, facts.User.ID) && v.hasRenewed(loan, d.readTime(&facts)) {
		o.Lent, o.Renewal, o.Due = true, true, loan.DueDate
		return o, nil
	}
	return d.renewLoan(ctx, v, o, &facts, renewal.Request{
		ItemBarcode: v.Field("AB"), UserBarcode: card, ServicePointID: v.terminal.ServicePointID, Seen: loan.seen(),
	})
}

// seen is how often the loan was renewed when it was read; nil without a loan.
func (l storedLoan) seen() *int {
	if l.ID == "" {
		return nil
	}
	return new(int(l.Renewals))
}

// renewAll answers 65 with 66. It renews loan by loan, those that are due first, while there is time. A
// repeat goes on: a loan that this terminal has just renewed counts as renewed.
func (d *Desk) renewAll(ctx context.Context, v *visit) wire.Answer {
	if refusal, incomplete := v.refuseUnscanned("AA"); incomplete {
		return refusal
	}
	if !v.terminal.Renews() {
		return v.refuse(texts.MachineNotRenewable, nil)
	}
	p, err := d.findPatron(ctx, v)
	if err != nil {
		return d.fail(ctx, v, err)
	}
	if p.User.ID == "" {
		return v.refuse(texts.MachineCardUnknown, texts.Values{"card": v.Field("AA")})
	}
	if refusal, wrong := d.refusePIN(ctx, v, p.User.Barcode); wrong {
		return refusal
	}
	loans, _, err := d.readLoans(ctx, p.User.ID)
	if err != nil {
		return d.fail(ctx, v, err)
	}
	barcodes, err := readBarcodes(ctx, d, loans, storedLoan.itemID)
	if err != nil {
		return d.fail(ctx, v, err)
	}
	var renewed, unrenewed, says []string
	for i, loan := range loans {
		item := barcodes[strings.ToLower(loan.ItemID)]
		why := v.say(texts.MachineNotTried, nil)
		if i < maxListed {
			why = d.renewOne(ctx, v, loan, &p)
		}
		if why == "" {
			renewed = append(renewed, item)
			continue
		}
		unrenewed = append(unrenewed, item)
		if item != "" {
			why = v.say(texts.MachinePerItem, texts.Values{"item": item, "reason": why})
		}
		says = append(says, why)
	}
	a := v.answer("66", "1", wire.Count(len(renewed), 4), wire.Count(len(unrenewed), 4), v.date())
	for _, item := range renewed {
		a.AddFilled("BM", item)
	}
	named := min(len(unrenewed), maxListed)
	for _, item := range unrenewed[:named] {
		a.AddFilled("BN", item)
	}
	a.Say(says[:named]...)
	return a
}

// renewOne renews one of several loans, and says why it did not; "" if it did.
func (d *Desk) renewOne(ctx context.Context, v *visit, loan storedLoan, p *library.Facts) string {
	if v.hasRenewed(loan, d.readTime(p)) {
		return ""
	}
	if end, bounded := ctx.Deadline(); ctx.Err() != nil || bounded && time.Until(end) < renewalReserve {
		return v.say(texts.MachineNotTried, nil)
	}
	_, err := d.Renewals.RenewByID(ctx, renewal.ByIDRequest{
		ItemID: loan.ItemID, UserID: p.User.ID, ServicePointID: v.terminal.ServicePointID, Seen: loan.seen(),
	})
	if fault.Is(err, fault.LoanChanged) { // by a repeat at another instance, it may be
		if changed, failed := d.Library.Loan(ctx, loan.ID); failed == nil && v.hasRenewed(readLoan(changed), d.readTime(p)) {
			return ""
		}
	}
	switch {
	case err == nil:
		return ""
	case fault.Is(err, fault.Invalid):
		facts := *p
		facts.Item.ID, facts.OnLoan = loan.ItemID, new(true)
		return strings.Join(d.newRefusal(v, err, &facts, forRenewing).Says, " ")
	}
	code, _ := describeFailure(err)
	return v.say(code, nil)
}
