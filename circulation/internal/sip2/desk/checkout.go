package desk

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/schemas/redact"
	"checkoutlock/web/texts"
)

const (
	// offlineAge is how old the date of a check-out may be that happened already.
	offlineAge = 7 * 24 * time.Hour
	// lastMoment is how long a check-out may take beyond the deadline to say that it ended.
	lastMoment = 100 * time.Millisecond
	// confirmTimeout bounds the last look for a loan. With lastMoment it stays below the half second
	// between the deadline and the machine's patience.
	confirmTimeout = 250 * time.Millisecond
)

// checkOut answers 11 with 12.
func (d *Desk) checkOut(ctx context.Context, v *visit) wire.Answer {
	if refusal, incomplete := v.refuseUnscanned("AA", "AB"); incomplete {
		return refusal
	}
	if v.Yes("BI") {
		d.Log.WarnContext(ctx, "a machine could not unlock an item, and takes its check-out back: nothing was changed", v.subjects())
		a := v.refuse(texts.MachineBringToDesk, nil)
		a.Note = v.note(schemas.NoteCancelled, a.Reason)
		return a
	}
	card, err := d.findCard(ctx, v)
	if err != nil {
		return d.fail(ctx, v, err)
	}
	if card == "" {
		return v.refuse(texts.MachineCardUnknown, texts.Values{"card": v.Field("AA")})
	}
	req := checkout.Request{ItemBarcode: v.Field("AB"), UserBarcode: card, ServicePointID: v.terminal.ServicePointID}
	if !v.Flag(wire.NoBlock) {
		return d.lendWithPIN(ctx, v, req)
	}
	var answer wire.Answer
	switch v.terminal.NoBlock {
	case NoBlockRefuse:
		answer = v.refuse(texts.MachineOffline, nil)
	case NoBlockLend:
		ctx, req = v.liftBlocks(ctx, req)
		answer = d.lendInTime(ctx, v, req)
	default:
		answer = d.lendWithPIN(ctx, v, req)
	}
	if answer.Result != wire.OK {
		d.Log.WarnContext(ctx, "an item that was taken off-line was not lent", v.subjects(), "code", answer.Reason)
		if answer.Note == nil {
			answer.Note = v.note(schemas.NoteOffLine, answer.Reason)
		}
	}
	return answer
}

// lendWithPIN lends, unless the message has a wrong PIN.
func (d *Desk) lendWithPIN(ctx context.Context, v *visit, req checkout.Request) wire.Answer {
	if refusal, wrong := d.refusePIN(ctx, v, req.UserBarcode); wrong {
		return refusal
	}
	return d.lendInTime(ctx, v, req)
}

// note returns a note for staff about card and item. code is why, as in the log.
func (v *visit) note(kind, code string) *schemas.TerminalNote {
	return &schemas.TerminalNote{Kind: kind, Code: code, UserBarcode: v.Field("AA"), ItemBarcode: v.Field("AB")}
}

// subjects names card and item for the log.
func (v *visit) subjects() slog.Attr {
	card := v.Field("AA")
	return slog.Group("", slog.String("terminal", v.terminal.Login), slog.String("patron", redact.Mask(card)),
		slog.String("item", redact.MaskIn(v.Field("AB"), card)))
}

// liftBlocks makes req the check-out of an item that the patron has taken already: no block of the
// patron and no item limit refuses it.
func (v *visit) liftBlocks(ctx context.Context, req checkout.Request) (context.Context, checkout.Request) {
	req.OverrideBlocks = checkout.OverrideBlocks{
		PatronBlock: &struct{}{}, ItemLimitBlock: &struct{}{}, Comment: "self-check, off-line",
	}
	if taken, ok := v.Time(wire.Date, v.zone); ok && !taken.After(v.now) && taken.After(v.now.Add(-offlineAge)) {
		req.LoanDate = library.Instant{Time: taken}
	}
	call := okapi.FromContext(ctx)
	call.Permissions = checkout.OverridePermissions()
	return okapi.NewContext(ctx, call), req
}

// lendInTime lends, and answers soon after ctx has ended, whether or not the outcome is known by then.
// A commit that has begun goes on.
func (d *Desk) lendInTime(ctx context.Context, v *visit, req checkout.Request) wire.Answer {
	l := &lending{desk: d, visit: v, req: req, ended: make(chan struct{})}
	d.running.Go(func() {
		defer close(l.ended)
		defer func() {
			if isPanic(l.err) {
				d.Panicked(ctx, l.err)
			}
		}()
		defer fault.Recover(&l.err)
		l.outcome, l.err = l.lend(ctx)
	})
	select {
	case <-l.ended:
		return l.answer(ctx)
	case <-ctx.Done():
	}
	select {
	case <-l.ended:
		return l.answer(ctx)
	case <-time.After(lastMoment):
		return l.answerUnknown(ctx)
	}
}

func isPanic(err error) bool { return errors.As(err, new(*fault.PanicError)) }

// answer is that of a check-out that has ended.
func (l *lending) answer(ctx context.Context) wire.Answer {
	switch {
	case fault.Is(l.err, fault.OutcomeUnknown), isPanic(l.err) && l.loanID() != "":
		return l.answerUnknown(ctx)
	case errors.Is(l.err, context.DeadlineExceeded): // nothing was lent: an unknown outcome says so
		a := l.visit.refuse(texts.MachineBusy, nil)
		a.Result, a.Reason = wire.Busy, string(fault.Timeout)
		return a
	case l.err != nil:
		return l.desk.fail(ctx, l.visit, l.err)
	}
	return l.visit.answerLoan("12", l.outcome)
}

// answerUnknown looks for the loan once more. Without one it sends the patron to the staff, who find
// the loan's id in the log.
func (l *lending) answerUnknown(ctx context.Context) wire.Answer {
	loanID := l.loanID()
	if loanID != "" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTimeout)
		defer cancel()
		if lent, exists, err := l.desk.Committed(ctx, l.req, loanID); err == nil && exists && readLoan(lent.Loan).isOpen() {
			return l.visit.answerLoan("12", newOutcome(lent))
		}
	}
	l.desk.Log.ErrorContext(ctx, "it is not known whether an item was lent: the patron was sent to the staff", l.visit.subjects(), "loan_id", loanID)
	a := l.visit.refuse(texts.MachineUnknownOutcome, nil)
	a.Result, a.Reason = wire.Unknown, string(fault.OutcomeUnknown)
	a.Note = l.visit.note(schemas.NoteUnknownOutcome, a.Reason)
	a.Note.LoanID = loanID
	return a
}

// answerLoan writes the answer to a check-out (12) or a renewal (30).
func (v *visit) answerLoan(code string, o outcome) wire.Answer {
	desensitize, due := "N", ""
	if o.Lent {
		desensitize, due = "Y", v.formatDue(o.Due.Time)
	}
	a := v.answer(code, map[bool]string{true: "1", false: "0"}[o.Lent], wire.YN(o.Renewal), "U", desensitize, v.date())
	a.Repeated = o.repeated
	a.Add("AA", v.Field("AA"))
	a.Add("AB", v.Field("AB"))
	a.Add("AJ", o.Title)
	a.Add("AH", due)
	if o.Lent {
		a.AddFilled("CK", o.Media)
	} else {
		a.Result, a.Reason = wire.Refused, o.Reason
	}
	a.Say(o.Says...)
	return a
}

// formatDue writes a due date as the terminal wants it.
func (v *visit) formatDue(due time.Time) string {
	if due.IsZero() {
		return ""
	}
	if v.terminal.DueDateForm == "text" {
		return v.formatDay(due.In(v.zone))
	}
	return wire.FormatDate(due.In(v.zone))
}
