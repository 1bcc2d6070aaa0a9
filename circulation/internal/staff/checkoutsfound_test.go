package staff_test

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/admin"
	people "checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/auth"
)

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
		link    string
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
			}, link: `href="/staff/diku/check-outs?patron=5690002"`, lacks: "no barcode",
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
			page.has(t, tt.link)
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
		Reason: "No, \"never\"", Code: "ITEM_STATUS", WaitMs: &wait, TookMs: 9, RequestID: "req-1", Instance: "\r=c1",
		Machine: "10.1.2.3",
	})
	l.names.Titles = map[string]string{"=b1": "\tMoby Dick"}
	v := visit(t, l)
	v.get(t, "/staff/diku/check-outs?item=036&offset=50").
		has(t, `href="/staff/diku/check-outs.csv?item=036&amp;offset=50"`)
	file := v.get(t, "/staff/diku/check-outs.csv?item=036&offset=50")
	rows, err := csv.NewReader(strings.NewReader(file.html)).ReadAll()
	if err != nil || len(rows) != 2 || l.filter.ItemBarcode != "036" || l.filter.Offset != 50 {
		t.Fatalf("got %q, %v for %+v", file.html, err, l.filter)
	}
	if got := strings.Join(rows[1][1:], "|"); got !=
		"****01||'=B1|'\tMoby Dick||10.1.2.3|Refused|ITEM_STATUS|No, \"never\"|7|9|req-1|'=c1" {
		t.Errorf("got %s", got)
	}
	kind, name := file.header.Get("Content-Type"), file.header.Get("Content-Disposition")
	if kind != "text/csv; charset=utf-8" || name != `attachment; filename="check-outs-diku.csv"` {
		t.Errorf("got %s, %s", kind, name)
	}
	visit(t, l).get(t, "/staff/diku/check-outs.csv?from=soon").want(t, 422, "From", "soon is no date and time")
}

// Spreadsheets in German or Spanish begin a cell after a semicolon. A machine sends what a patron scans.
func TestCheckOutsPage_SavesNoFormula(t *testing.T) {
	t.Parallel()
	l := history(schemas.PastCheckOut{
		ItemBarcode: `B;=HYPERLINK("http://evil.example";"1")`, Reason: "a;+1;;-2\r\n@3\t=4\r;=5", Instance: "\t=6;\r=7",
	})
	file := visit(t, l).get(t, "/staff/diku/check-outs.csv").raw
	for _, separator := range ",;\t" {
		r := csv.NewReader(strings.NewReader(file))
		r.Comma, r.LazyQuotes, r.FieldsPerRecord = separator, true, -1
		rows, err := r.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, cell := range slices.Concat(rows...) {
			if cell != "" && strings.ContainsAny(cell[:1], "=+-@") {
				t.Errorf("with %q between cells, one is %s", separator, cell)
			}
		}
	}
}

func TestCheckOutsPage_CountsWhatItShows(t *testing.T) {
	t.Parallel()
	l := history(schemas.PastCheckOut{Outcome: "lent"}, schemas.PastCheckOut{Outcome: "lent"})
	l.history.More = true
	visit(t, l).get(t, "/staff/diku/check-outs?offset=50").want(t, 200, "Check-outs 51 to 52; there are older ones.")
}
