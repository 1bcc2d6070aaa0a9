package staff

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
)

// The page Check-out history: how check-outs ended, and why.

const checkOutsShown = 50

type checkOutsPage struct {
	Form     checkOutsForm
	Action   string
	Problems []field
	Search   patronSearch
	Entries  []pastCheckOut
	Count    string // of the entries, in words
	Filtered bool
	All      string // path without filters
	CSV      string // path of what is shown as a file
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

func (p *pages) showCheckOuts(v *visit) error {
	page, err := p.listCheckOuts(v)
	if err != nil {
		return err
	}
	v.results = true
	status := http.StatusOK
	if len(page.Problems) > 0 {
		status = http.StatusUnprocessableEntity
	}
	return v.show(status, "checkouts.html", "/check-outs", "Check-out history", page)
}

// listCheckOuts reads the check-outs that the address asks for. It makes one call to storage for them,
// three at most to find the patron, and one for each kind of record that they refer to.
func (p *pages) listCheckOuts(v *visit) (checkOutsPage, error) {
	offset := web.QueryOf(v.c).Integer("offset")
	form, filter := readCheckOutsForm(web.QueryOf(v.c))
	if v.may(admin.MaySeePatrons) {
		form.Patron.Hint = "Barcode, name or username"
	}
	page := checkOutsPage{
		Form: form, Action: v.path("/check-outs"), All: v.keepShown("/check-outs"),
		CSV:      v.pathOf("/check-outs.csv", func(url.Values) {}),
		Problems: findProblems(form.Patron, form.Item, form.Outcome, form.Code, form.Point, form.Around, form.From, form.Until),
		Filtered: filter != (schemas.HistoryFilter{}), Offset: offset, Legend: outcomes,
		Shown: v.showsPatrons(), Toggle: v.toggleShown("/check-outs"), Days: v.linkDays(time.Now()),
	}
	if len(page.Problems) > 0 {
		return page, nil
	}
	var err error
	if page.Search, err = p.searchPatron(v, filter.UserBarcode); err != nil {
		return page, err
	}
	filter.UserBarcode = page.Search.Barcode
	filter.Offset, filter.Limit = offset, checkOutsShown
	found, err := p.admin.PastCheckOuts(v.ctx(), filter)
	switch {
	case fault.Is(err, fault.Invalid):
		page.Problems = []field{{Wrong: web.ToFault(err).Msg}}
		return page, nil
	case err != nil:
		return page, err
	}
	page.Entries = v.describeCheckOuts(found.CheckOuts, page.Search.Barcode)
	page.Count = countEntries(offset, len(page.Entries), found.More)
	page.Newer, page.Older = v.linkNeighbours("/check-outs", offset, checkOutsShown, found.More)
	return page, nil
}

// countEntries says how many entries a page has, and whether there are more.
func countEntries(offset, n int, more bool) string {
	text := plural(n, "check-out", "check-outs")
	if offset > 0 || more {
		text = fmt.Sprintf("Check-outs %d to %d", offset+1, offset+n)
	}
	if more {
		text += "; there are older ones"
	}
	return text
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

// checkOutsForm is the search for past check-outs, as it was typed.
type checkOutsForm struct {
	Patron, Item, Around, From, Until, Outcome field
	Code, Point                                field // of a link from a chart; shown only then
}

// readCheckOutsForm reads the form and makes the filter. The filter counts only if no
// field is wrong.
func readCheckOutsForm(q *web.Values) (checkOutsForm, schemas.HistoryFilter) {
	zone := nameZone(time.Local, time.Now().Year())
	f := checkOutsForm{
		Patron:  readBarcode(q, "patron", "Patron"),
		Item:    readBarcode(q, "item", "Item's barcode"),
		Outcome: field{Name: "outcome", Label: "Outcome", Value: strings.TrimSpace(q.Text("outcome"))},
		Around: field{
			Name: "around", Label: "Around (" + zone + ")", Value: strings.TrimSpace(q.Text("around")),
			Hint: "Such as 14:03: ten minutes before and after",
		},
		Code:  readBarcode(q, "code", "Code"),
		Point: readBarcode(q, "servicePoint", "Service point's id"),
		From:  field{Name: "from", Label: "From (" + zone + ")", Type: "datetime-local", Value: strings.TrimSpace(q.Text("from"))},
		Until: field{Name: "until", Label: "Until (" + zone + ")", Type: "datetime-local", Value: strings.TrimSpace(q.Text("until"))},
	}
	known := func(o outcome) bool { return o.Name == f.Outcome.Value }
	if f.Outcome.Value != "" && !slices.ContainsFunc(outcomes, known) {
		f.Outcome.Wrong = fmt.Sprintf("There is no outcome %s; choose one from the list.", fault.Shown(f.Outcome.Value))
	}
	if f.Point.Value != "" && !schemas.IsUUID(f.Point.Value) {
		f.Point.Wrong = "This is no id of a service point."
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
	filter := schemas.HistoryFilter{UserBarcode: f.Patron.Value, ItemBarcode: f.Item.Value, ServicePointID: f.Point.Value, Outcome: f.Outcome.Value, Code: f.Code.Value}
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
		checkout.OutcomeLockNotAcquired, "Busy, try again", "warn",
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
		checkout.OutcomeClientLeft, "Machine gave up waiting", "plain",
		"The machine hung up before the check-out was done. The item was not lent.",
		"The machine hung up before the check-out was done, perhaps because it waited longer than it is patient.",
	},
	{
		checkout.OutcomeOverloaded, "Service too busy", "warn",
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
