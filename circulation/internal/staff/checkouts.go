package staff

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/redact"
	"checkoutlock/web"
)

// The page Check-out history: how check-outs ended, and why.

const checkOutsShown = 50

type checkOutsPage struct {
	Form     checkOutsForm
	Action   string
	Problems []field
	Entries  []pastCheckOut
	Filtered bool
	All      string // path without filters
	Offset   int
	Shown    bool   // patrons' barcodes are written out
	Toggle   string // path of the same with the opposite of Shown
	Legend   []outcome
	Newer    string
	Older    string
	Days     []dayLink
}

// dayLink leads to the check-outs since the beginning of a day.
type dayLink struct{ Text, Path string }

// pastCheckOut is an entry of the history as the page shows it.
type pastCheckOut struct {
	Entry   schemas.PastCheckOut
	Patron  string
	Outcome outcome
	Why     string // shown before the entry's reason
	Lent    bool
}

func (p *pages) showCheckOuts(v *visit) error {
	offset := web.QueryOf(v.c).Integer("offset")
	form, filter := readCheckOutsForm(web.QueryOf(v.c))
	page := checkOutsPage{
		Form: form, Action: v.path("/check-outs"), All: v.keepShown("/check-outs"),
		Problems: findProblems(form.Patron, form.Item, form.Outcome, form.Around, form.From, form.Until),
		Filtered: filter != (schemas.HistoryFilter{}), Offset: offset, Legend: outcomes,
		Shown: v.showsPatrons(), Toggle: v.toggleShown("/check-outs"), Days: v.linkDays(time.Now()),
	}
	status := http.StatusUnprocessableEntity
	if len(page.Problems) == 0 {
		filter.Offset, filter.Limit = offset, checkOutsShown
		found, err := p.admin.PastCheckOuts(v.ctx(), filter)
		switch {
		case fault.Is(err, fault.Invalid):
			page.Problems = []field{{Wrong: web.ToFault(err).Msg}}
		case err != nil:
			return err
		default:
			status = http.StatusOK
			page.Entries = describeCheckOuts(found.CheckOuts, page.Shown)
			page.Newer, page.Older = v.linkNeighbours("/check-outs", offset, checkOutsShown, found.More)
		}
	}
	return v.show(status, "checkouts.html", "/check-outs", "Check-out history", page)
}

// linkDays links to the same search on other days.
func (v *visit) linkDays(now time.Time) []dayLink {
	link := func(text string, from, until int) dayLink {
		return dayLink{text, v.pathOf("/check-outs", func(q url.Values) {
			q.Del("around")
			q.Del("offset")
			q.Del("until")
			q.Set("from", now.AddDate(0, 0, -from).Format(time.DateOnly)+"T00:00")
			if until > 0 {
				q.Set("until", now.AddDate(0, 0, -until).Format(time.DateOnly)+"T23:59")
			}
		})}
	}
	return []dayLink{link("Today", 0, 0), link("Yesterday", 1, 1), link("7 days", 6, 0)}
}

func describeCheckOuts(list []schemas.PastCheckOut, named bool) []pastCheckOut {
	entries := make([]pastCheckOut, len(list))
	for i, e := range list {
		o := findOutcome(e.Outcome)
		entries[i] = pastCheckOut{Entry: e, Patron: e.UserBarcode, Outcome: o, Why: o.explain(e.Reason), Lent: e.Outcome == schemas.OutcomeLent}
		if !named {
			entries[i].hidePatron()
		}
	}
	return entries
}

// hidePatron masks the patron's barcode, also where the reason names the patron.
func (p *pastCheckOut) hidePatron() {
	if p.Patron != "" {
		p.Patron = redact.Mask(p.Patron)
	}
	p.Entry.Reason = redact.MaskIn(p.Entry.Reason, p.Entry.UserBarcode, p.Entry.UserID)
}

// checkOutsForm is the search for past check-outs, as it was typed.
type checkOutsForm struct {
	Patron, Item, Around, From, Until, Outcome field
}

// readCheckOutsForm reads the form and makes the filter. The filter counts only if no
// field is wrong.
func readCheckOutsForm(q *web.Values) (checkOutsForm, schemas.HistoryFilter) {
	zone := nameZone(time.Local, time.Now().Year())
	f := checkOutsForm{
		Patron:  readBarcode(q, "patron", "Patron's barcode"),
		Item:    readBarcode(q, "item", "Item's barcode"),
		Outcome: field{Name: "outcome", Label: "Outcome", Value: strings.TrimSpace(q.Text("outcome"))},
		Around: field{
			Name: "around", Label: "Around (" + zone + ")", Value: strings.TrimSpace(q.Text("around")),
			Hint: "Such as 14:03: ten minutes before and after",
		},
		From:  field{Name: "from", Label: "From (" + zone + ")", Type: "datetime-local", Value: strings.TrimSpace(q.Text("from"))},
		Until: field{Name: "until", Label: "Until (" + zone + ")", Type: "datetime-local", Value: strings.TrimSpace(q.Text("until"))},
	}
	known := func(o outcome) bool { return o.Name == f.Outcome.Value }
	if f.Outcome.Value != "" && !slices.ContainsFunc(outcomes, known) {
		f.Outcome.Wrong = fmt.Sprintf("There is no outcome %s; choose one from the list.", fault.Shown(f.Outcome.Value))
	}
	from, _ := readLocalTime(&f.From)
	_, until := readLocalTime(&f.Until)
	if !from.IsZero() && !until.IsZero() && until.Before(from) {
		f.Until.Wrong = "This is before the time in From, so nothing can lie between them."
	}
	if around, ok := readClock(&f.Around, time.Now()); ok {
		from, until = around.Add(-aroundMargin), around.Add(aroundMargin+time.Minute-time.Millisecond)
		if f.From.Value+f.Until.Value != "" {
			f.Around.Wrong = "Leave From and Until empty beside this."
		}
	}
	filter := schemas.HistoryFilter{UserBarcode: f.Patron.Value, ItemBarcode: f.Item.Value, Outcome: f.Outcome.Value}
	if !from.IsZero() {
		filter.From = from.Format(schemas.FolioTime)
	}
	if !until.IsZero() {
		filter.Until = until.Format(schemas.FolioTime)
	}
	return f, filter
}

// outcome is one of the ends of a check-out in the words of the pages.
type outcome struct {
	Name    string // as the history has it
	Word    string
	Kind    string // class of its badge
	Meaning string
	Why     string // shown for each such check-out; empty if its reason says it
}

// outcomes are all of them, the most frequent searches first.
var outcomes = []outcome{
	{checkout.OutcomeLent, "Lent", "good", "The loan was made.", ""},
	{
		checkout.OutcomeLimitReached, "Limit reached", "bad",
		"The patron has as many loans as the loan policy allows. The item was not lent.", "",
	},
	{
		checkout.OutcomeRefused, "Refused", "bad",
		"The library's rules say no: the patron is blocked or the item cannot be lent, for example. The item was not lent.", "",
	},
	{
		checkout.OutcomeLockNotAcquired, "Had to wait too long", "warn",
		"The check-out did not get the patron's lock in time, or lost it and had no time left. The item was not lent; trying again usually helps.",
		"Another check-out of this patron was under way for longer than the machine may wait.",
	},
	{
		checkout.OutcomeUnknown, "Not known", "warn",
		"Storage was lost while the loan was written, so it is not known whether the loan was made.",
		"Storage was lost in the middle; look at the patron's loans.",
	},
	{
		checkout.OutcomeTakenOver, "Taken over", "plain",
		"The machine sent the same check-out again, and the second request finished it. Look at that one.",
		"The machine sent it again, and that request took over.",
	},
	{
		checkout.OutcomeClientLeft, "Machine left", "plain",
		"The machine hung up before the check-out was done. The item was not lent.",
		"The machine hung up before the check-out was done, perhaps because it waited longer than it is patient.",
	},
	{
		checkout.OutcomeOverloaded, "Too busy", "warn",
		"So many check-outs came at once that this one was not begun. The item was not lent; trying again later helps.",
		"More check-outs came at once than could be worked on in time.",
	},
	{
		checkout.OutcomeFailed, "Failed", "bad",
		"Something in the services did not work. The item was not lent.",
		"Something in the services did not work; an operator finds it by the request id.",
	},
}

// lockRefused begins the message to machines that did not get the lock.
const lockRefused = "unable to acquire lock"

// explain says why a check-out with this reason ended so. It is empty if the reason
// says it.
func (o outcome) explain(reason string) string {
	if strings.HasPrefix(reason, lockRefused+": ") {
		return ""
	}
	return o.Why
}

func findOutcome(name string) outcome {
	if i := slices.IndexFunc(outcomes, func(o outcome) bool { return o.Name == name }); i >= 0 {
		return outcomes[i]
	}
	return outcome{Name: name, Word: name, Kind: "plain"}
}
