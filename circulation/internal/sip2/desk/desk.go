// Package desk does what self-check machines ask for. It calls the flows of circulation, and puts
// into words for patrons how they ended.
package desk

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/keyed"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/circulation/internal/renewal"
	"checkoutlock/circulation/internal/sip2/wire"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web/texts"
)

// Library has the records that machines ask about. Methods that name a record return a NotFound fault if it
// does not exist.
type Library interface {
	library.Records
	Loan(ctx context.Context, id string) (json.RawMessage, error)
	// OpenLoan returns the item's open loan.
	OpenLoan(ctx context.Context, itemID string) (json.RawMessage, error)
	// PatronLoans and PatronRequests return the patron's open ones, at most limit, and how many there
	// are.
	PatronLoans(ctx context.Context, userID string, limit int) ([]json.RawMessage, int, error)
	PatronRequests(ctx context.Context, userID string, limit int) ([]json.RawMessage, int, error)
	Items(ctx context.Context, ids []string) ([]library.Item, error)
	// UsersBy returns at most two patrons whose property index has exactly this value.
	UsersBy(ctx context.Context, index, value string) ([]library.User, error)
	VerifyPIN(ctx context.Context, userID, pin string) (library.PINCheck, error)
	// Texts returns the catalogues with the library's own texts over them.
	Texts(ctx context.Context) (*texts.Catalogue, error)
}

// What is done with a check-out that has happened already, by its no block flag.
const (
	NoBlockJudge  = "judge"  // like any other
	NoBlockLend   = "lend"   // with overrides of the patron's blocks and of the item limit
	NoBlockRefuse = "refuse" // always
)

// Desk answers messages of signed-in machines. All fields are required.
type Desk struct {
	Library     Library
	Keyed       *keyed.Requests
	Committed   func(ctx context.Context, req checkout.Request, loanID string) (checkout.Lent, bool, error)
	CheckIn     func(ctx context.Context, req checkin.Request) (checkin.Returned, error)
	EndSessions func(ctx context.Context, req checkin.EndSessionsRequest) error
	Renewals    renewal.Renewals
	Texts       *texts.Catalogue // as delivered, while the library's cannot be read
	// Panicked is called with a panic of a check-out.
	Panicked func(ctx context.Context, err error)
	Log      *slog.Logger
	Now      func() time.Time

	// running are the check-outs whose machine may have been answered already.
	running sync.WaitGroup
}

// Handler answers a request of a terminal that the front has completed. ctx has the tenant, and ends
// half a second before the machine's patience; a machine that hangs up does not end it. The answer
// comes before that, or soon after. A commit of a check-in or a renewal may take longer: the front does
// not wait for it.
type Handler = func(ctx context.Context, t library.Terminal, r wire.Request) wire.Answer

// Handlers returns the handlers by the code of the request.
func (d *Desk) Handlers() map[string]Handler {
	handlers := map[string]Handler{}
	for code, handle := range map[string]func(context.Context, *visit) wire.Answer{
		wire.CheckOut: d.checkOut, wire.CheckIn: d.checkIn, wire.Renew: d.renew, wire.RenewAll: d.renewAll,
		wire.PatronStatus: d.describePatron, wire.PatronInformation: d.listAccount, wire.EndSession: d.endSession,
		wire.ItemInformation: d.describeItem, wire.BlockPatron: d.noteCard,
		wire.EnablePatron: d.describePatron, wire.Hold: refuseEach(texts.MachineRequestInCatalogue),
		wire.FeePaid: refuseEach(texts.MachineFeesAtDesk), wire.ItemStatusUpdate: refuseEach(texts.MachineTellDesk),
	} {
		handlers[code] = func(ctx context.Context, t library.Terminal, r wire.Request) wire.Answer {
			ctx, v := d.enter(ctx, t, r)
			a := handle(ctx, v)
			a.RightPIN = v.rightPIN
			return a
		}
	}
	return handlers
}

// Outlive returns a context that ends after ctx, once the check-outs have ended whose machine was
// answered before their outcome was known. Call cancel when it is not needed any more.
func (d *Desk) Outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		d.running.Wait()
		end()
	})
	return longer, func() {
		stop()
		end()
	}
}

// visit is one message, with what its answer needs.
type visit struct {
	wire.Request
	terminal library.Terminal
	zone     *time.Location
	now      time.Time // in zone
	rightPIN *bool     // nil unless the PIN was compared
	speaker
}

// enter begins a message. The flows see the terminal as the acting user, so the records name it.
func (d *Desk) enter(ctx context.Context, t library.Terminal, r wire.Request) (context.Context, *visit) {
	call := okapi.FromContext(ctx)
	call.UserID, call.Machine = t.ID, t.Login
	zone, err := time.LoadLocation(t.TimeZone)
	if err != nil {
		zone = time.UTC // storage refuses an unknown name
	}
	return okapi.NewContext(ctx, call), &visit{
		Request: r, terminal: t, zone: zone, now: d.Now().In(zone), speaker: d.newSpeaker(ctx, t, r.Spoken()),
	}
}

// readTime returns when the facts were read, by the database's clock, which dates loans and items. A storage
// of an earlier build does not say it, so it is the time of this clock then.
func (d *Desk) readTime(facts *library.Facts) time.Time {
	if facts.ReadAt.IsZero() {
		return d.Now()
	}
	return facts.ReadAt.Time
}

// answer begins an answer with the institution, after fixed parts.
func (v *visit) answer(code string, fixed ...string) wire.Answer {
	a := wire.NewAnswer(code, fixed...)
	a.Add("AO", v.Institution(v.terminal.Institution))
	return a
}

// refuse returns the message's own refusal.
func (v *visit) refuse(code texts.Code, values texts.Values) wire.Answer {
	return v.refuseWith(string(code), v.say(code, values))
}

// refuseWith is refuse with texts; reason is for the log.
func (v *visit) refuseWith(reason string, says ...string) wire.Answer {
	a := wire.Refusal(v.Request, v.terminal.Institution, v.now, says...)
	a.Reason = reason
	return a
}

// date writes the time of the answer.
func (v *visit) date() string { return wire.FormatDate(v.now) }

// refuseUnscanned refuses a message without a card or an item; false if it has both.
func (v *visit) refuseUnscanned(fields ...string) (wire.Answer, bool) {
	for _, id := range fields {
		if v.Field(id) != "" {
			continue
		}
		if id == "AA" {
			return v.refuse(texts.MachineScanCard, nil), true
		}
		return v.refuse(texts.MachineScanItem, nil), true
	}
	return wire.Answer{}, false
}

// refuseEach returns a handler that refuses each request with a text.
func refuseEach(code texts.Code) func(context.Context, *visit) wire.Answer {
	return func(_ context.Context, v *visit) wire.Answer { return v.refuse(code, nil) }
}
