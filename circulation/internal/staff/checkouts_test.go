package staff_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func history(entries ...schemas.PastCheckOut) *library {
	return &library{view: own(true, 3000), history: schemas.PastCheckOuts{CheckOuts: entries}}
}

func TestCheckOutsPage_SaysEachOutcomeInWords(t *testing.T) {
	t.Parallel()
	wait := 2500
	tests := map[string]struct {
		e     schemas.PastCheckOut
		words []string
	}{
		"lent": {
			schemas.PastCheckOut{Outcome: "lent", LoanID: "loan-1", WaitMs: &wait, TookMs: 2600},
			[]string{"Lent – 2.5 s 2.6 s More Loan loan-1"},
		},
		"at once": {
			schemas.PastCheckOut{Outcome: "lent", LoanID: "loan-1", WaitMs: new(int), TookMs: 12}, []string{"Lent – 0 ms 12 ms"},
		},
		"no lock":    {schemas.PastCheckOut{Outcome: "lent", LoanID: "loan-1", TookMs: 12}, []string{"Lent – – 12 ms"}},
		"repeats":    {schemas.PastCheckOut{Outcome: "lent", Repeats: 2}, []string{"The commit was sent again 2 times."}},
		"one repeat": {schemas.PastCheckOut{Outcome: "lent", Repeats: 1}, []string{"The commit was sent again 1 time."}},
		"the limit": {
			schemas.PastCheckOut{
				Outcome: "limit_reached", Code: "ITEM_LIMIT_PATRON_GROUP",
				Reason: "Patron has reached maximum limit of 3 items for patron group",
			},
			[]string{"Limit reached Patron has reached maximum limit of 3 items for patron group Code ITEM_LIMIT_PATRON_GROUP"},
		},
		"no lock in time": {
			schemas.PastCheckOut{Outcome: "lock_not_acquired", Code: "LOCK_NOT_ACQUIRED", Reason: "unable to acquire lock"},
			[]string{
				"Busy, try again Another check-out of this patron was under way for longer than the machine may wait. " +
					"unable to acquire lock Code LOCK_NOT_ACQUIRED",
			},
		},
		"a lock that was lost": {
			schemas.PastCheckOut{
				Outcome: "lock_not_acquired", Code: "LOCK_NOT_ACQUIRED", Reason: "unable to acquire lock: it was released by force",
			},
			[]string{"Busy, try again unable to acquire lock: it was released by force Code LOCK_NOT_ACQUIRED"},
		},
		"unknown": {
			schemas.PastCheckOut{Outcome: "outcome_unknown", LoanID: "loan-1"},
			[]string{
				"The connection to storage broke off in the middle; look at the patron's loans.", "Loan, if it was made loan-1",
			},
		},
		"left": {
			schemas.PastCheckOut{Outcome: "client_left", Reason: "The machine left"},
			[]string{"The machine hung up before the check-out was done", "The machine left"},
		},
		"taken over": {schemas.PastCheckOut{Outcome: "taken_over"}, []string{"The machine sent it again"}},
		"failed": {
			schemas.PastCheckOut{Outcome: "failed", Code: "UNAVAILABLE", Reason: "storage away"},
			[]string{"an operator finds it by the request id", "storage away Code UNAVAILABLE"},
		},
		"refused": {
			schemas.PastCheckOut{Outcome: "refused", Reason: "Item is already checked out"},
			[]string{"Refused Item is already checked out"},
		},
		"a new one": {schemas.PastCheckOut{Outcome: "eaten", Reason: "by a dog"}, []string{"eaten by a dog"}},
		"request": {
			schemas.PastCheckOut{Outcome: "lent", RequestID: "123/circulation", Instance: "circ-2"},
			[]string{"123/circ Request 123/circulation Copy Instance circ-2"},
		},
		"a machine": {
			schemas.PastCheckOut{Outcome: "lent", ServicePointID: "desk", Machine: "kiosk-1"}, []string{"desk Machine kiosk-1"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.e.Date = "2026-08-22T10:11:12.345+00:00"
			p := visit(t, history(tt.e)).get(t, "/staff/diku/check-outs")
			p.want(t, 200, append(tt.words, "22 Aug 2026")...)
		})
	}
}

func TestCheckOutsPage_SearchesForEachOutcome(t *testing.T) {
	t.Parallel()
	for _, outcome := range checkout.Outcomes() {
		l := history()
		visit(t, l).get(t, "/staff/diku/check-outs?outcome="+outcome).has(t, `<option value="`+outcome+`" selected>`)
		if l.filter == nil || l.filter.Outcome != outcome {
			t.Errorf("%s: asked for %+v", outcome, l.filter)
		}
	}
}

func TestCheckOutsPage_MasksPatronsByDefault(t *testing.T) {
	t.Parallel()
	l := history(schemas.PastCheckOut{
		Outcome: "refused", UserBarcode: "5690001", UserID: "8a2b-4711", ItemBarcode: "036000",
		Reason: "No user with barcode 5690001 (8a2b-4711)",
	}, schemas.PastCheckOut{
		Outcome: "limit_reached", UserBarcode: "15", ItemBarcode: "036015",
		Reason: "Patron has reached maximum limit of 15 items for loan type",
	}, schemas.PastCheckOut{
		Outcome: "failed", ItemBarcode: "036016",
	})
	v := visit(t, l)
	masked := v.get(t, "/staff/diku/check-outs?outcome=refused&offset=50")
	masked.want(t, 200, "****01 036000 Refused No user with barcode ****01 (****711)", "Show the patrons",
		"**** 036015", "Patron has reached maximum limit of 15 items for loan type", "– 036016")
	masked.lacks(t, "5690001", "8a2b-4711")
	masked.has(t, `href="/staff/diku/check-outs?offset=50&amp;outcome=refused&amp;patrons=shown"`)

	shown := v.get(t, "/staff/diku/check-outs?offset=50&outcome=refused&patrons=shown")
	shown.want(t, 200, "5690001 036000 Refused No user with barcode 5690001", "Mask the patrons")
	shown.has(t, `href="/staff/diku/check-outs?offset=50&amp;outcome=refused"`, `name="patrons" value="shown"`,
		`href="/staff/diku/check-outs?patrons=shown">Show all`)
}

// A patron scanned the card twice.
func TestCheckOutsPage_MasksACardThatWasScannedAsTheItem(t *testing.T) {
	t.Parallel()
	for card, masked := range map[string]string{"P-12345678": "****678", "12345": "****5", "annlee": "****ee"} {
		v := visit(t, history(schemas.PastCheckOut{Outcome: "refused", UserBarcode: card, ItemBarcode: card}))
		for _, path := range []string{"/staff/diku/check-outs", "/staff/diku/check-outs.csv"} {
			p := v.get(t, path)
			p.want(t, 200, masked)
			p.lacks(t, card)
		}
		v.get(t, "/staff/diku/check-outs?patrons=shown").want(t, 200, card+" "+card)
	}
}

func TestCheckOutsPage_Searches(t *testing.T) {
	t.Parallel()
	local := func(text string) string {
		at, err := time.ParseInLocation("2006-01-02T15:04:05.000", text, time.Local)
		if err != nil {
			t.Fatal(err)
		}
		return at.Format(schemas.FolioTime)
	}
	tests := map[string]struct {
		query string
		want  schemas.HistoryFilter
	}{
		"all":         {"", schemas.HistoryFilter{}},
		"by barcodes": {"patron=+569+&item=036", schemas.HistoryFilter{UserBarcode: "569", ItemBarcode: "036"}},
		"by outcome":  {"outcome=lent&offset=100", schemas.HistoryFilter{Outcome: "lent", Offset: 100}},
		"by a minute": {
			"from=2026-08-22T14:03&until=2026-08-22T14:03",
			schemas.HistoryFilter{From: local("2026-08-22T14:03:00.000"), Until: local("2026-08-22T14:03:59.999")},
		},
		"by a second": {
			"from=2026-08-22T14:03:05&until=2026-08-22T14:03:05",
			schemas.HistoryFilter{From: local("2026-08-22T14:03:05.000"), Until: local("2026-08-22T14:03:05.999")},
		},
		"by one end":   {"until=2026-08-22T14:03", schemas.HistoryFilter{Until: local("2026-08-22T14:03:59.999")}},
		"by the other": {"from=2026-08-22T14:03", schemas.HistoryFilter{From: local("2026-08-22T14:03:00.000")}},
		"by a cause": {
			"code=X&servicePoint=" + heldID, schemas.HistoryFilter{Code: "X", ServicePointID: heldID},
		},
		"empty in form": {"patron=&item=&outcome=&from=&until=", schemas.HistoryFilter{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := history(schemas.PastCheckOut{Outcome: "lent"})
			visit(t, l).get(t, "/staff/diku/check-outs?"+tt.query).want(t, 200)
			tt.want.Limit = 50
			if l.filter == nil || *l.filter != tt.want {
				t.Errorf("got %+v, want %+v", l.filter, tt.want)
			}
		})
	}
}

// A time of day is that of today, or of yesterday if it is not yet.
func TestCheckOutsPage_SearchesAroundATimeOfDay(t *testing.T) {
	t.Parallel()
	now := time.Now()
	tests := map[string]struct {
		at     time.Time
		layout string
	}{
		"an hour ago":    {at: now.Add(-time.Hour), layout: "15:04"},
		"now":            {at: now, layout: "3:04 pm"},
		"later, so then": {at: now.Add(time.Hour - 24*time.Hour), layout: "15.04"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := history()
			typed := strings.ReplaceAll(tt.at.Format(tt.layout), "pm", tt.at.Format("pm"))
			page := visit(t, l).get(t, "/staff/diku/check-outs?around="+url.QueryEscape(typed))
			page.want(t, 200, "Today", "Yesterday", "7 days")
			minute := tt.at.Truncate(time.Minute)
			from, until := minute.Add(-10*time.Minute), minute.Add(11*time.Minute-time.Millisecond)
			if got := *l.filter; got.From != from.Format(schemas.FolioTime) || got.Until != until.Format(schemas.FolioTime) {
				t.Errorf("searched from %s until %s, want %s and %s", got.From, got.Until, from, until)
			}
		})
	}
}

func TestCheckOutsPage_LinksToDays(t *testing.T) {
	t.Parallel()
	v := visit(t, history()).get(t, "/staff/diku/check-outs?item=036&around=14:03&offset=50&until=2026-01-01T00:00")
	day := func(ago int) string { return time.Now().AddDate(0, 0, -ago).Format(time.DateOnly) }
	for _, query := range []string{
		"from=" + day(0) + "T00%3A00&amp;item=036",
		"from=" + day(1) + "T00%3A00&amp;item=036&amp;until=" + day(1) + "T23%3A59",
		"from=" + day(6) + "T00%3A00&amp;item=036",
	} {
		v.has(t, `href="/staff/diku/check-outs?`+query+`"`)
	}
}

func TestCheckOutsPage_RefusesAnInvalidSearchAtItsField(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		query, field, words string
	}{
		"no date": {
			query: "from=soon", field: "from", words: "soon is no date and time; write it as in 2026-08-22T14:03.",
		},
		"a date alone":      {query: "until=2026-08-22", field: "until", words: "2026-08-22 is no date and time"},
		"no such day":       {query: "from=2026-02-30T10:00", field: "from", words: "2026-02-30T10:00 is no date and time"},
		"before the year 1": {query: "from=0000-01-01T00:00", field: "from", words: "is no date and time"},
		"until before from": {
			query: "from=2026-08-22T14:04&until=2026-08-22T14:03", field: "until", words: "This is before the time in From",
		},
		"no time of day": {
			query: "around=tea", field: "around", words: "tea is no time of day; write it as in 14:03.",
		},
		"two kinds of times": {
			query: "around=14:03&from=2026-08-22T14:04", field: "around", words: "Leave From and Until empty beside this.",
		},
		"no such outcome":  {query: "outcome=%3Cscript%3E", field: "outcome", words: "There is no outcome <script>"},
		"no service point": {query: "servicePoint=desk", field: "servicePoint", words: "This is no id of a service point."},
		"a long barcode": {
			query: "patron=" + strings.Repeat("9", 256), field: "patron",
			words: "The barcode has 256 characters; at most 255 are possible.",
		},
		"no text":  {query: "item=%ff", field: "item", words: "The barcode has characters that no barcode can have."},
		"with NUL": {query: "item=a%00b", field: "item", words: "The barcode has characters that no barcode can have."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := history(schemas.PastCheckOut{Outcome: "lent"})
			p := visit(t, l).get(t, "/staff/diku/check-outs?"+tt.query)
			p.want(t, 422, tt.words)
			p.has(t, `<a href="#`+tt.field+`">`, tt.field+`-error" aria-invalid="true"`)
			if strings.Contains(p.html, "<script>") {
				t.Error("the page has HTML of others")
			}
			if l.filter != nil {
				t.Errorf("asked for %+v", *l.filter)
			}
		})
	}
	l := &library{err: fault.Validation(fault.Detail{Message: "from must be later"})}
	visit(t, l).get(t, "/staff/diku/check-outs?patron=1").want(t, 422, "Please look at this again", "from must be later")
}

func TestCheckOutsPage_ExplainsAnEmptyList(t *testing.T) {
	t.Parallel()
	const kept = "within a second after it ended. It is kept for a while: 30 days, unless your operator chose otherwise."
	for query, want := range map[string]string{
		"":                   "No check-out has ended yet",
		"?patron=569":        "No check-outs match. Show all check-outs",
		"?offset=50":         "There are no older check-outs.",
		"?offset=50&item=03": "There are no older check-outs like these. Newer",
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			visit(t, history()).get(t, "/staff/diku/check-outs"+query).want(t, 200, want, kept)
		})
	}
}

func TestCheckOutsPage_LinksOlderAndNewerEntries(t *testing.T) {
	t.Parallel()
	l := history(schemas.PastCheckOut{Outcome: "lent"})
	l.history.More = true
	p := visit(t, l).get(t, "/staff/diku/check-outs?item=036&offset=50")
	p.has(t, `href="/staff/diku/check-outs?item=036&amp;offset=0" rel="prev"`,
		`href="/staff/diku/check-outs?item=036&amp;offset=100" rel="next"`)
	last := visit(t, history(schemas.PastCheckOut{Outcome: "lent"})).get(t, "/staff/diku/check-outs")
	last.lacks(t, `rel="next"`, `rel="prev"`)
}

func TestCheckOutsPage_EscapesStoredText(t *testing.T) {
	t.Parallel()
	const bad = `<script>alert("1")</script>`
	l := history(schemas.PastCheckOut{
		Date: bad, Outcome: bad, Code: bad, Reason: bad, UserBarcode: bad, ItemBarcode: bad, LoanID: bad, RequestID: bad,
		Instance: bad,
	})
	p := visit(t, l).get(t, "/staff/diku/check-outs?patrons=shown&"+url.Values{"patron": {bad}, "item": {bad}}.Encode())
	p.want(t, 200, bad)
	if strings.Contains(p.html, "<script>") || strings.Contains(p.html, `alert("`) {
		t.Errorf("the page has HTML of others:\n%s", p.html)
	}
}
