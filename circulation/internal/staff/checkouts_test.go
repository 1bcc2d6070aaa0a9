package staff_test

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/checkout"
	people "checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/auth"
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
		"by one end":    {"until=2026-08-22T14:03", schemas.HistoryFilter{Until: local("2026-08-22T14:03:59.999")}},
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
	v := visit(t, history()).get(t, "/staff/diku/check-outs?item=036&around=14:03&offset=50")
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
		"no such outcome": {query: "outcome=%3Cscript%3E", field: "outcome", words: "There is no outcome <script>"},
		"a long barcode": {
			query: "patron=" + strings.Repeat("9", 256), field: "patron",
			words: "The barcode has 256 characters; at most 255 are possible.",
		},
		"no text": {query: "item=%00%ff", field: "item", words: "The barcode has characters that no barcode can have."},
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

func TestCheckOutsPage_FindsThePatron(t *testing.T) {
	t.Parallel()
	ann := people.User{ID: annID, Barcode: "5690001", Personal: people.Personal{FirstName: "Ann", LastName: "Reader"}}
	eve := people.User{ID: benID, Barcode: "5690002", Username: "eve"}
	entry := schemas.PastCheckOut{Outcome: "lent", UserBarcode: "5690001", UserID: annID, ItemBarcode: "036"}
	may := granted(admin.MaySeeCheckOuts, admin.MaySeePatrons)
	tests := map[string]struct {
		header  http.Header
		found   admin.FoundPatrons
		none    error
		entries []schemas.PastCheckOut
		barcode string // by which the history is searched
		words   []string
		lacks   string
	}{
		"by name": {
			header: may, found: admin.FoundPatrons{Patron: &ann}, entries: []schemas.PastCheckOut{entry}, barcode: "5690001",
			words: []string{"Reader, Ann 1 check-out."}, lacks: "There is no such patron",
		},
		"without check-outs": {
			header: may, found: admin.FoundPatrons{Patron: &ann}, barcode: "5690001",
			words: []string{"Reader, Ann No check-outs match, but there is such a patron."}, lacks: "There is no such patron",
		},
		"several": {
			header: may, found: admin.FoundPatrons{Near: []people.User{ann, eve, {ID: newID, Username: "no barcode"}}},
			barcode: "reader", words: []string{
				"There is no such patron: reader. Did you mean one of these? Reader, Ann ****01 eve ****02", "No check-outs match.",
			}, lacks: "no barcode",
		},
		"unknown, but named by a machine": {
			header: may, entries: []schemas.PastCheckOut{entry}, barcode: "reader",
			words: []string{"There is no such patron: reader. The check-outs below named it.", "1 check-out."},
		},
		"without the permission": {
			header: granted(admin.MaySeeCheckOuts), found: admin.FoundPatrons{Patron: &ann}, barcode: "reader",
			words: []string{"No check-outs match, but there is such a patron."}, lacks: "Reader, Ann",
		},
		"without the permission, unknown": {
			header: granted(admin.MaySeeCheckOuts), none: fault.New(fault.NotFound, "none"), barcode: "reader",
			words: []string{"There is no such patron: reader."}, lacks: "such a patron.",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := history(tt.entries...)
			l.found, l.none = tt.found, tt.none
			page := visitAs(t, l, auth.Gateway, tt.header).get(t, "/staff/diku/check-outs?patron=reader")
			page.want(t, 200, tt.words...)
			if tt.lacks != "" {
				page.lacks(t, tt.lacks)
			}
			if l.filter == nil || l.filter.UserBarcode != tt.barcode || len(l.lookups) != 2 {
				t.Errorf("searched the history for %+v, made the lookups %q, want %s and two", l.filter, l.lookups, tt.barcode)
			}
		})
	}
}

func TestCheckOutsPage_NamesAndLinksWhatItShows(t *testing.T) {
	t.Parallel()
	l := history(
		schemas.PastCheckOut{
			Outcome: "refused", UserBarcode: "569", UserID: annID, ItemBarcode: "B 1", ServicePointID: "desk-1", Reason: "No",
		},
		schemas.PastCheckOut{Outcome: "lent", UserBarcode: "570", UserID: benID, ItemBarcode: "B2", ServicePointID: "desk-2"},
	)
	l.names = admin.Names{
		Titles: map[string]string{"b 1": "Moby Dick"}, ServicePoints: map[string]string{"desk-1": "Front desk"},
		Patrons: map[string]string{annID: "Reader, Ann"},
	}
	shown := visit(t, l).get(t, "/staff/diku/check-outs?patrons=shown")
	shown.want(t, 200, "Front desk 569 Reader, Ann B 1 Moby Dick Refused No Try it again", "desk-2 570 B2 Lent",
		"2 check-outs.")
	shown.has(t, `href="/staff/diku/check-outs?patron=569&amp;patrons=shown">569`,
		`href="/staff/diku/try?itemBarcode=B&#43;1&amp;userBarcode=569">Try it again`, `href="#results">Skip to the results`)
	masked := visit(t, l).get(t, "/staff/diku/check-outs")
	masked.want(t, 200, "Moby Dick", "Front desk")
	masked.lacks(t, "569", "Reader, Ann")
	masked.has(t, `href="/staff/diku/try?itemBarcode=B&#43;1">Try it again`)
	if want := "names of 2, patrons true names of 2, patrons false"; strings.Join(l.lookups, " ") != want {
		t.Errorf("made the lookups %q, want %s", l.lookups, want)
	}
	may := granted(admin.MaySeeCheckOuts)
	reader := visitAs(t, l, auth.Gateway, may).get(t, "/staff/diku/check-outs?patrons=shown")
	reader.want(t, 200, "569 B 1 Moby Dick")
	reader.lacks(t, "Reader, Ann", "Try it again")
}

func TestCheckOutsPage_SavesWhatItShows(t *testing.T) {
	t.Parallel()
	wait := 7
	l := history(schemas.PastCheckOut{
		Date: "2026-08-22T10:11:12.345+00:00", Outcome: "refused", UserBarcode: "5690001", ItemBarcode: "=B1",
		Reason: "No, \"never\"", Code: "ITEM_STATUS", WaitMs: &wait, TookMs: 9, RequestID: "req-1", Instance: "c1",
		Machine: "10.1.2.3",
	})
	l.names.Titles = map[string]string{"=b1": "Moby Dick"}
	file := visit(t, l).get(t, "/staff/diku/check-outs.csv?item=036&offset=50")
	rows, err := csv.NewReader(strings.NewReader(file.html)).ReadAll()
	if err != nil || len(rows) != 2 || l.filter.ItemBarcode != "036" || l.filter.Offset != 50 {
		t.Fatalf("got %q, %v for %+v", file.html, err, l.filter)
	}
	if got := strings.Join(rows[1][1:], "|"); got !=
		`****01||'=B1|Moby Dick||10.1.2.3|Refused|ITEM_STATUS|No, "never"|7|9|req-1|c1` {
		t.Errorf("got %s", got)
	}
	kind, name := file.header.Get("Content-Type"), file.header.Get("Content-Disposition")
	if kind != "text/csv; charset=utf-8" || name != `attachment; filename="check-outs-diku.csv"` {
		t.Errorf("got %s, %s", kind, name)
	}
	visit(t, l).get(t, "/staff/diku/check-outs.csv?from=soon").want(t, 422, "From", "soon is no date and time")
}

func TestCheckOutsPage_CountsWhatItShows(t *testing.T) {
	t.Parallel()
	l := history(schemas.PastCheckOut{Outcome: "lent"}, schemas.PastCheckOut{Outcome: "lent"})
	l.history.More = true
	visit(t, l).get(t, "/staff/diku/check-outs?offset=50").want(t, 200, "Check-outs 51 to 52; there are older ones.")
}
