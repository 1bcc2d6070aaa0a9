package staff

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

// The page Check-out history: how check-outs ended, and why.

const checkOutsShown = 50

type checkOutsPage struct {
	Form     checkOutsForm
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
	Days     []page.Link // to the check-outs since the beginning of a day
}

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
	return v.show(status, "checkouts.html", "/check-outs", "nav.history", page)
}

// listCheckOuts reads the check-outs that the address asks for. It makes one call to storage for them,
// three at most to find the patron, and one for each kind of record that they refer to.
func (p *pages) listCheckOuts(v *visit) (checkOutsPage, error) {
	offset := web.QueryOf(v.c).Integer("offset")
	form, filter := v.readCheckOutsForm()
	if v.may(admin.MaySeePatrons) {
		form.Patron.Hint = v.say("history.patronHint", nil)
	}
	page := checkOutsPage{
		Form: form, All: v.keepShown("/check-outs"),
		CSV:      v.pathOf("/check-outs.csv", func(url.Values) {}),
		Problems: findProblems(form.Patron, form.Item, form.Outcome, form.Code, form.Point, form.Around, form.From, form.Until),
		Filtered: filter != (schemas.HistoryFilter{}), Offset: offset, Legend: outcomes,
		Shown: v.showsPatrons(), Toggle: v.toggleShown("/check-outs"), Days: v.linkDays(time.Now().In(v.reader.Zone)),
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
	page.Count = v.countEntries(offset, len(page.Entries), found.More)
	page.Newer, page.Older = v.linkNeighbours("/check-outs", offset, checkOutsShown, found.More)
	return page, nil
}

// countEntries says how many entries a page has, and whether there are more.
func (v *visit) countEntries(offset, n int, more bool) string {
	values := texts.Values{"first": strconv.Itoa(offset + 1), "last": strconv.Itoa(offset + n)}
	switch {
	case more:
		return v.say("history.countMore", values)
	case offset > 0:
		return v.say("history.countFrom", values)
	}
	return v.count("history.count", n)
}

// linkDays links to the same search on other days.
func (v *visit) linkDays(now time.Time) []page.Link {
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC) // no clock there skips a time
	link := func(text texts.Code, from, until int) page.Link {
		return page.Link{Text: text, Path: v.pathOf("/check-outs", func(q url.Values) {
			q.Del("around")
			q.Del("offset")
			q.Del("until")
			q.Set("from", today.AddDate(0, 0, -from).Format(time.DateOnly)+"T00:00")
			if until > 0 {
				q.Set("until", today.AddDate(0, 0, -until).Format(time.DateOnly)+"T23:59")
			}
		})}
	}
	return []page.Link{link("history.today", 0, 0), link("history.yesterday", 1, 1), link("span.week", 6, 0)}
}

// checkOutsForm is the search for past check-outs, as it was typed.
type checkOutsForm struct {
	Patron, Item, Around, From, Until, Outcome field
	Code, Point                                field // of a link from a chart; shown only then
}

// readCheckOutsForm reads the form and makes the filter. The filter counts only if no
// field is wrong.
func (v *visit) readCheckOutsForm() (checkOutsForm, schemas.HistoryFilter) {
	q, now := web.QueryOf(v.c), time.Now().In(v.reader.Zone)
	zone := texts.Values{"zone": nameZone(v.reader.Zone, now.Year())}
	f := checkOutsForm{
		Patron:  v.readBarcode("patron", "column.patron"),
		Item:    v.readBarcode("item", "form.item"),
		Outcome: field{Name: "outcome", Label: v.say("column.outcome", nil), Value: strings.TrimSpace(q.Text("outcome"))},
		Around: field{
			Name: "around", Label: v.say("history.around", zone), Value: strings.TrimSpace(q.Text("around")),
			Hint: v.say("history.aroundHint", nil),
		},
		Code:  v.readBarcode("code", "column.code"),
		Point: v.readBarcode("servicePoint", "history.pointId"),
		From:  field{Name: "from", Label: v.say("history.from", zone), Type: "datetime-local", Value: strings.TrimSpace(q.Text("from"))},
		Until: field{Name: "until", Label: v.say("history.until", zone), Type: "datetime-local", Value: strings.TrimSpace(q.Text("until"))},
	}
	known := func(o outcome) bool { return o.Name == f.Outcome.Value }
	if f.Outcome.Value != "" && !slices.ContainsFunc(outcomes, known) {
		f.Outcome.Wrong = v.say("history.noOutcome", texts.Values{"typed": fault.Shown(f.Outcome.Value)})
	}
	if f.Point.Value != "" && !schemas.IsUUID(f.Point.Value) {
		f.Point.Wrong = v.say("history.noPoint", nil)
	}
	from, _ := v.readLocalTime(&f.From)
	_, until := v.readLocalTime(&f.Until)
	if !until.IsZero() && until.Before(from) {
		f.Until.Wrong = v.say("history.untilBeforeFrom", nil)
	}
	if around, ok := v.readClock(&f.Around, now); ok {
		from, until = around.Add(-aroundMargin), around.Add(aroundMargin+time.Minute-time.Millisecond)
		if f.From.Value+f.Until.Value != "" {
			f.Around.Wrong = v.say("history.aroundAlone", nil)
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
	Word    texts.Code
	Kind    string // class of its badge
	Meaning texts.Code
	Why     texts.Code // shown for each such check-out; empty if its reason says it
}

// outcomes are all of them, the most frequent searches first.
var outcomes = []outcome{
	{checkout.OutcomeLent, "outcome.lent", "good", "outcome.lentMeans", ""},
	{checkout.OutcomeLimitReached, "outcome.limit", "bad", "outcome.limitMeans", ""},
	{checkout.OutcomeRefused, "outcome.refused", "bad", "outcome.refusedMeans", ""},
	{checkout.OutcomeLockNotAcquired, "outcome.busy", "warn", "outcome.busyMeans", "outcome.busyWhy"},
	{checkout.OutcomeUnknown, "outcome.unknown", "warn", "outcome.unknownMeans", "outcome.unknownWhy"},
	{checkout.OutcomeTakenOver, "outcome.takenOver", "plain", "outcome.takenOverMeans", "outcome.takenOverWhy"},
	{checkout.OutcomeClientLeft, "outcome.gaveUp", "plain", "outcome.gaveUpMeans", "outcome.gaveUpWhy"},
	{checkout.OutcomeOverloaded, "outcome.overloaded", "warn", "outcome.overloadedMeans", "outcome.overloadedWhy"},
	{checkout.OutcomeFailed, "outcome.failed", "bad", "outcome.failedMeans", "outcome.failedWhy"},
}

// lockRefused begins the message to machines that did not get the lock.
const lockRefused = "unable to acquire lock"

// explain says why a check-out with this reason ended so. It is empty if the reason
// says it.
func (o outcome) explain(reason string) texts.Code {
	if strings.HasPrefix(reason, lockRefused+": ") {
		return ""
	}
	return o.Why
}

func findOutcome(name string) outcome {
	if i := slices.IndexFunc(outcomes, func(o outcome) bool { return o.Name == name }); i >= 0 {
		return outcomes[i]
	}
	return outcome{Name: name, Word: texts.Code(name), Kind: "plain"}
}
