package desk

import (
	"context"
	"errors"
	"slices"
	"strings"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas"
	"checkoutlock/web/texts"
)

// The kinds of patron identifiers that a terminal may read, by the property of users.
const byBarcode = "barcode"

// findCard returns the barcode of the patron with the identifier AA, "" for none. A terminal that reads
// barcodes only leaves the search to the flows. An identifier of two patrons names none.
func (d *Desk) findCard(ctx context.Context, v *visit) (string, error) {
	card, kinds := v.Field("AA"), v.terminal.PatronIdentifiers
	if len(kinds) == 0 || slices.Equal(kinds, []string{byBarcode}) {
		return card, nil
	}
	for _, kind := range kinds {
		found, err := d.Library.UsersBy(ctx, kind, card)
		if err != nil {
			return "", err
		}
		if len(found) == 1 {
			return found[0].Barcode, nil
		}
	}
	return "", nil
}

// findPatron returns the patron with the identifier AA and the blocks; an empty user if there is none.
func (d *Desk) findPatron(ctx context.Context, v *visit) (library.Facts, error) {
	card, err := d.findCard(ctx, v)
	if err != nil || card == "" {
		return library.Facts{}, err
	}
	return library.ReadFacts(ctx, d.Library, schemas.CheckOutSubjects{UserBarcode: card})
}

// describePatron answers 23 with 24 and 25 with 26. It lifts no block.
func (d *Desk) describePatron(ctx context.Context, v *visit) wire.Answer {
	p, err := d.findPatron(ctx, v)
	if err != nil {
		return d.fail(ctx, v, err)
	}
	code := "24"
	if v.Code == wire.EnablePatron {
		code = "26"
	}
	a := v.answer(code, v.statusOf(&p), v.Language(), v.date())
	a.Add("AA", v.Field("AA"))
	a.Add("AE", v.nameOf(p.User))
	d.addStanding(ctx, v, &p, &a)
	if v.Code == wire.EnablePatron {
		a.Say(v.say(texts.MachineCardsAtDesk, nil))
	}
	return a
}

// noteCard answers 01 with 24. An unattended machine blocks no card: staff find the note.
func (d *Desk) noteCard(ctx context.Context, v *visit) wire.Answer {
	d.Log.WarnContext(ctx, "a machine wants a card to be blocked: nothing was changed", v.subjects(), "retained", v.Flag(wire.CardRetained))
	a := d.describePatron(ctx, v)
	a.Say(v.say(texts.MachineNoted, nil))
	a.Note = v.note(schemas.NoteBlockCard, "")
	return a
}

// addStanding adds whether the card may be used, whether the PIN is right, the fields of a list, and the
// texts.
func (d *Desk) addStanding(ctx context.Context, v *visit, p *library.Facts, a *wire.Answer, list ...wire.Field) {
	valid, says := p.User.ID != "" && !p.User.IsInactive(v.now), v.sayAccount(p)
	a.Add("BL", wire.YN(valid))
	if pin := v.Field("AD"); pin != "" {
		right, why := d.checkPIN(ctx, v, p.User, pin)
		a.Add("CQ", wire.YN(right))
		if why != "" {
			says = append(says, v.say(why, nil))
		}
	}
	a.Fields = append(a.Fields, list...)
	a.Say(says...)
	if !valid {
		a.Result, a.Reason = wire.Refused, "CARD_NOT_VALID"
	}
}

// statusOf writes the 14 places of the patron status. Borrowing, renewals and requests are denied
// apart. A patron who is unknown or may not use the card is denied all.
func (v *visit) statusOf(p *library.Facts) string {
	all := p.User.ID == "" || p.User.IsInactive(v.now)
	borrowing, renewals, requests := all, all, all
	for _, b := range p.ManualBlocks {
		if b.IsInForce(v.now) {
			borrowing, renewals, requests = borrowing || b.Borrowing, renewals || b.Renewals, requests || b.Requests
		}
	}
	for _, b := range p.AutomatedBlocks.Blocks {
		borrowing, renewals, requests = borrowing || b.BlockBorrowing, renewals || b.BlockRenewals, requests || b.BlockRequests
	}
	status := []byte(strings.Repeat(" ", 14))
	for place, denied := range []bool{borrowing, renewals, requests, requests} { // recalls and holds
		if denied {
			status[place] = 'Y'
		}
	}
	return string(status)
}

// sayAccount says what keeps the patron from using the card.
func (v *visit) sayAccount(p *library.Facts) []string {
	switch {
	case v.Field("AA") == "":
		return []string{v.say(texts.MachineScanCard, nil)}
	case p.User.ID == "":
		return []string{v.say(texts.MachineCardUnknown, texts.Values{"card": v.Field("AA")})}
	case p.User.IsInactive(v.now):
		return []string{v.sayInactive(p.User)}
	}
	var says []string
	denies := func(b library.ManualBlock) bool { return b.Borrowing || b.Renewals || b.Requests }
	if slices.ContainsFunc(p.ManualBlocks, func(b library.ManualBlock) bool { return denies(b) && b.IsInForce(v.now) }) {
		says = v.sayBlocks(p, denies)
	}
	for _, b := range p.AutomatedBlocks.Blocks {
		if !slices.Contains(says, b.Message) {
			says = append(says, b.Message)
		}
	}
	return says[:min(len(says), maxSaid)]
}

// nameOf returns the name as the terminal wants it.
func (v *visit) nameOf(user library.User) string {
	if v.terminal.NameForm == "lastFirst" {
		return user.Personal.FullName()
	}
	return strings.TrimSpace(user.Personal.FirstName + " " + user.Personal.LastName)
}

// checkPIN reports whether the password is right. It is never right without a comparison, unless the
// terminal is one that needs none.
func (d *Desk) checkPIN(ctx context.Context, v *visit, user library.User, pin string) (right bool, why texts.Code) {
	if user.ID == "" {
		return false, ""
	}
	if v.terminal.PatronPasswords == "notChecked" {
		return true, ""
	}
	check, err := d.Library.VerifyPIN(ctx, user.ID, pin)
	switch {
	case err != nil:
		d.Log.WarnContext(ctx, "a patron's PIN could not be checked", v.subjects(), "err", err)
	case check == library.PINRight:
		v.rightPIN = new(true)
		return true, ""
	case check == library.PINWrong:
		v.rightPIN = new(false)
		return false, texts.MachinePINWrong
	}
	return false, texts.MachinePINNotChecked
}

// refusePIN refuses a message whose PIN is not that of the card's patron; false if it is, or if it was
// not compared.
func (d *Desk) refusePIN(ctx context.Context, v *visit, card string) (wire.Answer, bool) {
	pin := v.Field("AD")
	if pin == "" || v.terminal.PatronPasswords == "notChecked" {
		return wire.Answer{}, false
	}
	p, err := library.ReadFacts(ctx, d.Library, schemas.CheckOutSubjects{UserBarcode: card})
	if err != nil {
		return d.fail(ctx, v, err), true
	}
	if _, why := d.checkPIN(ctx, v, p.User, pin); why == texts.MachinePINWrong {
		return v.refuse(why, nil), true
	}
	return wire.Answer{}, false
}

// endSession answers 35 with 36, which is always Y. Sessions whose end fails end by themselves.
func (d *Desk) endSession(ctx context.Context, v *visit) wire.Answer {
	p, err := d.findPatron(ctx, v)
	if err == nil && p.User.ID != "" {
		err = d.EndSessions(ctx, checkin.EndSessionsRequest{EndSessions: []checkin.EndSession{{ActionType: "Check-out", PatronID: p.User.ID}}})
	}
	a := v.answer("36", "Y", v.date())
	a.Add("AA", v.Field("AA"))
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		d.Log.WarnContext(ctx, "a patron's session could not be ended", v.subjects(), "err", err)
	}
	return a
}
