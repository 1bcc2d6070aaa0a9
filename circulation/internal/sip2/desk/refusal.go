package desk

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/renewal"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/texts"
)

// maxSaid is the most reasons that a screen shows.
const maxSaid = 3

// What a terminal does with an item that the patron has already.
const (
	sameItemConfirm = "confirm" // answers that it is lent
	sameItemRefuse  = "refuse"
)

// renewedRecently is how long the same terminal renews a loan only once: the next message is a repeat.
const renewedRecently = time.Minute

// judgeRefusal returns the outcome of a check-out that was refused. An item that the patron has
// already is renewed or confirmed if the terminal wants that. It is not renewed again if another
// message with the key did so: one that had the lease before, or one that came later.
//
// Faults: KeyLeaseLost if another message with the key has lent the item; LoanChanged if the loan was
// renewed meanwhile.
func (d *Desk) judgeRefusal(ctx context.Context, v *visit, req checkout.Request, lease checkout.KeyLease, refused error) (outcome, error) {
	facts, loan, err := d.readAround(ctx, req.UserBarcode, req.ItemBarcode)
	if err != nil {
		return outcome{}, err
	}
	if loan.ID == lease.LoanID {
		return outcome{}, fault.Wrap(refused, fault.KeyLeaseLost, "Another message with the key has lent the item")
	}
	if facts.User.ID == "" || !strings.EqualFold(loan.UserID, facts.User.ID) {
		o := d.newRefusal(v, refused, &facts, forBorrowing)
		if slices.Contains(o.Says, v.say(texts.MachineNotHere, nil)) {
			d.Log.ErrorContext(ctx, "an item cannot be lent by the library's settings", v.subjects(), "code", o.Reason)
		}
		return o, nil
	}
	now := d.readTime(&facts)
	began := now.Add(v.now.Sub(d.Now())) // the message, by the database's clock
	o := describeCopy(facts.Copy())
	o.Renewal, o.LoanID, o.Due = true, loan.ID, loan.DueDate
	switch {
	case v.terminal.SameItem == sameItemConfirm:
		o.Lent = true
		return o, nil
	case v.terminal.SameItem == sameItemRefuse || !v.Flag(wire.RenewalPolicy) || !v.terminal.Allows(wire.Renew) || !v.terminal.Renews():
		o.Says = []string{v.say(texts.MachineYoursAlready, texts.Values{"date": v.formatDay(loan.DueDate.In(v.zone))})}
		o.Reason = string(texts.MachineYoursAlready)
		return o, nil
	case v.hasRenewed(loan, now) && (lease.Taken || !loan.Metadata.UpdatedDate.Before(began)):
		o.Lent = true
		return o, nil
	}
	return d.renewLoan(ctx, v, o, &facts, renewal.Request{
		ItemBarcode: req.ItemBarcode, UserBarcode: req.UserBarcode, ServicePointID: req.ServicePointID, Seen: loan.seen(),
	})
}

// hasRenewed reports whether this terminal has just renewed the loan, by the database's clock.
func (v *visit) hasRenewed(loan storedLoan, now time.Time) bool {
	return loan.Action == "renewed" && strings.EqualFold(loan.Metadata.UpdatedByUserID, v.terminal.ID) &&
		now.Before(loan.Metadata.UpdatedDate.Add(renewedRecently))
}

// readAround reads what a message is about, and the open loan of the item, if there is one.
func (d *Desk) readAround(ctx context.Context, card, item string) (library.Facts, storedLoan, error) {
	facts, err := library.ReadFacts(ctx, d.Library, schemas.CheckOutSubjects{UserBarcode: card, ItemBarcode: item})
	if err != nil || !facts.IsOnLoan() {
		return facts, storedLoan{}, err
	}
	loan, exists, err := fault.Found(d.Library.OpenLoan(ctx, facts.Item.ID))
	if err != nil || !exists {
		return facts, storedLoan{}, err
	}
	return facts, readLoan(loan), nil
}

// renewLoan renews the loan of o.
func (d *Desk) renewLoan(ctx context.Context, v *visit, o outcome, facts *library.Facts, req renewal.Request) (outcome, error) {
	stored, err := d.Renewals.Renew(ctx, req)
	switch {
	case err == nil:
		loan := readLoan(stored)
		o.Lent, o.Renewal, o.LoanID, o.Due = true, true, loan.ID, loan.DueDate
		return o, nil
	case !fault.Is(err, fault.Invalid):
		return outcome{}, err
	}
	refused := d.newRefusal(v, err, facts, forRenewing)
	o.Says, o.Reason = refused.Says, refused.Reason
	return o, nil
}

// purpose is what a patron is refused.
type purpose struct {
	manual func(library.ManualBlock) bool
	// other is what is said of a reason without a text of its own.
	other texts.Code
}

var (
	forBorrowing = purpose{func(b library.ManualBlock) bool { return b.Borrowing }, texts.MachineNotHere}
	forRenewing  = purpose{func(b library.ManualBlock) bool { return b.Renewals }, texts.MachineNotRenewable}
)

// newRefusal puts the reasons of a refusal into words: each once, the most useful first.
func (d *Desk) newRefusal(v *visit, refused error, facts *library.Facts, p purpose) outcome {
	o := describeCopy(facts.Copy())
	f, ok := errors.AsType[*fault.Error](refused)
	if !ok {
		return o
	}
	said := make([]reason, 0, len(f.Details))
	for _, detail := range f.Details {
		said = append(said, v.explain(detail, facts, p))
	}
	slices.SortStableFunc(said, func(a, b reason) int { return cmp.Compare(a.rank, b.rank) })
	for _, s := range said {
		for _, text := range s.says {
			if len(o.Says) < maxSaid && !slices.Contains(o.Says, text) {
				o.Says = append(o.Says, text)
			}
		}
	}
	if len(f.Details) > 0 {
		o.Reason = f.Details[0].Code
	}
	return o
}

// reason is what is said of one reason of a refusal; the lower rank is said first.
type reason struct {
	rank int
	says []string
}

// explain puts one reason of a refusal into words. Messages of the flows are for staff, so codes
// choose the words; those of automated blocks are the library's own.
func (v *visit) explain(detail fault.Detail, facts *library.Facts, p purpose) reason {
	one := func(rank int, code texts.Code, values texts.Values) reason {
		return reason{rank, []string{v.say(code, values)}}
	}
	if strings.HasPrefix(detail.Code, "ITEM_LIMIT_") {
		return one(0, texts.MachineLimit, texts.Values{"limit": parameter(detail, "itemLimit")})
	}
	switch detail.Code {
	case "USER_BARCODE_NOT_FOUND":
		return one(1, texts.MachineCardUnknown, texts.Values{"card": v.Field("AA")})
	case library.CodeItemNotFound:
		return one(2, texts.MachineItemUnknown, texts.Values{"item": v.Field("AB")})
	case "USER_IS_INACTIVE_OR_EXPIRED", "USER_STATUS_CANNOT_BE_DETERMINED":
		return reason{3, []string{v.sayInactive(facts.User)}}
	case "USER_IS_BLOCKED_MANUALLY":
		return reason{4, v.sayBlocks(facts, p.manual)}
	case "USER_IS_BLOCKED_AUTOMATICALLY":
		return reason{5, []string{detail.Message}}
	case library.CodeItemCheckedOut, library.CodeItemHadByPatron, library.CodeOpenLoan:
		return one(6, texts.MachineOnLoan, nil)
	case library.CodeItemRequested:
		return one(7, texts.MachineReserved, nil)
	case "ITEM_NOT_LOANABLE":
		return one(8, texts.MachineNotLoanable, nil)
	case library.CodeItemStatus:
		return one(9, texts.MachineNotNow, nil)
	case "ITEM_CHECKED_OUT_TO_DIFFERENT_USER", "USER_NOT_FOUND":
		if facts.User.ID == "" {
			return one(1, texts.MachineCardUnknown, texts.Values{"card": v.Field("AA")})
		}
		return one(6, texts.MachineNotYours, nil)
	case "LOAN_RENEWAL_LIMIT_REACHED":
		return one(6, texts.MachineRenewedTooOften, nil)
	case "RENEWAL_BLOCKED_BY_HOLD_REQUEST":
		return one(7, texts.MachineRenewalRequested, nil)
	case "RENEWAL_BLOCKED_BY_RECALL":
		return one(7, texts.MachineRenewalRecalled, nil)
	case "RENEWAL_WOULD_NOT_CHANGE_DUE_DATE":
		return one(8, texts.MachineDateStays, nil)
	case library.CodeNotOnLoan:
		if facts.Item.ID != "" && !facts.IsOnLoan() && p.other == texts.MachineNotRenewable {
			return one(6, texts.MachineNotYours, nil)
		}
	}
	return one(10, p.other, nil)
}

// sayInactive says since when a card may not be used, or only that it may not.
func (v *visit) sayInactive(user library.User) string {
	expired := user.ExpirationDate
	if user.Active != nil && *user.Active && !expired.IsZero() && expired.Before(v.now) {
		return v.say(texts.MachineCardExpired, texts.Values{"date": v.formatDay(expired.In(v.zone))})
	}
	return v.say(texts.MachineCardInactive, nil)
}

// sayBlocks returns the messages for the patron of the manual blocks that deny something. Their
// descriptions are for staff, so a block without a message sends the patron to the desk.
func (v *visit) sayBlocks(facts *library.Facts, denies func(library.ManualBlock) bool) []string {
	var says []string
	for _, b := range facts.ManualBlocks {
		if b.PatronMessage != "" && denies(b) && b.IsInForce(v.now) {
			says = append(says, b.PatronMessage)
		}
	}
	if len(says) == 0 {
		says = []string{v.say(texts.MachineBlocked, nil)}
	}
	return says
}

func parameter(detail fault.Detail, key string) string {
	for _, p := range detail.Parameters {
		if p.Key == key && p.Value != nil {
			return *p.Value
		}
	}
	return ""
}
