package desk

import (
	"context"
	"errors"
	"time"

	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/policy"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web/texts"
)

// languages are those of SIP2 by their number.
var languages = map[string]string{
	"001": "en", "002": "fr", "003": "de", "004": "it", "005": "nl", "006": "sv", "007": "fi", "008": "es", "009": "da", "010": "pt",
	"011": "fr-CA", "012": "nb", "013": "he", "014": "ja", "015": "ru", "016": "ar", "017": "pl", "018": "el", "019": "zh", "020": "ko",
	"021": "es", "022": "ta", "023": "ms", "024": "en", "025": "is", "026": "nl", "027": "zh-TW",
}

// speaker says texts in the language of a message, else in that of its terminal.
type speaker struct {
	catalogue *texts.Catalogue
	own       map[string]string // of the terminal, by code
	languages []string
}

// newSpeaker returns the speaker of a message; number is its language in SIP2. It never fails: the
// delivered texts stand in for the library's own.
func (d *Desk) newSpeaker(ctx context.Context, t library.Terminal, number string) speaker {
	s := speaker{own: t.Texts}
	for _, language := range []string{languages[number], t.Language} {
		if language != "" {
			s.languages = append(s.languages, language)
		}
	}
	var err error
	if s.catalogue, err = d.Library.Texts(ctx); err != nil {
		if _, noTenant := okapi.TenantFrom(ctx); noTenant == nil { // the machine is signed in
			d.Log.WarnContext(ctx, "the library's own texts cannot be used", "err", err)
		}
		s.catalogue = d.Texts
	}
	return s
}

// Text returns a text for a terminal, by its code in package texts. language is a number of SIP2, or
// empty.
func (d *Desk) Text(ctx context.Context, t library.Terminal, language, code string) string {
	return d.newSpeaker(ctx, t, language).say(texts.Code(code), nil)
}

func (s speaker) say(code texts.Code, values texts.Values) string {
	if own := s.own[string(code)]; own != "" {
		return texts.Fill(own, values)
	}
	return s.catalogue.Say(texts.Text{Code: code, Values: values}, s.languages...)
}

// formatDay writes a date as the first of the languages has it.
func (s speaker) formatDay(t time.Time) string {
	layout := time.DateOnly
	if len(s.languages) > 0 {
		switch s.languages[0] {
		case "de":
			layout = "02.01.2006"
		case "es":
			layout = "02/01/2006"
		}
	}
	return t.Format(layout)
}

// describeFailure says what a fault that refuses nothing means for the person at the machine. A
// repeat is not answered by it.
func describeFailure(err error) (texts.Code, wire.Result) {
	if errors.Is(err, context.DeadlineExceeded) {
		return texts.MachineTryAgain, wire.Busy
	}
	switch fault.CodeOf(err) {
	case fault.LockNotAcquired, fault.LockHeld, fault.LockQueueFull, fault.Overloaded:
		return texts.MachineBusy, wire.Busy
	case fault.RequestRunning, fault.ItemChanged, fault.RequestChanged, fault.SettingsChanged, fault.LoanChanged, fault.LockLost,
		fault.KeyLeaseLost, fault.GivenUp, fault.InUse, fault.Conflict, fault.Timeout:
		return texts.MachineTryAgain, wire.Busy
	case fault.OutcomeUnknown:
		return texts.MachineUnknownOutcome, wire.Unknown
	case fault.Internal:
		if isMisconfigured(err) {
			return texts.MachineNotHere, wire.Failed
		}
	default:
	}
	return texts.MachineUnavailable, wire.Failed
}

// isMisconfigured reports whether the fault is one of the library's rules and policies. Faults of
// storage have a cause that is none of them.
func isMisconfigured(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return false
	}
	_, syntax := errors.AsType[*policy.SyntaxError](err)
	return f.Err == nil || syntax || fault.Is(f.Err, fault.NotFound)
}

// fail answers a message that could not be judged, with the message's own refusal.
func (d *Desk) fail(ctx context.Context, v *visit, err error) wire.Answer {
	code, result := describeFailure(err)
	if result != wire.Busy {
		d.Log.ErrorContext(ctx, "a machine's message failed", "terminal", v.terminal.Login, "message", v.Code, "err", err)
	}
	a := v.refuse(code, nil)
	a.Result, a.Reason = result, string(fault.CodeOf(err))
	return a
}
