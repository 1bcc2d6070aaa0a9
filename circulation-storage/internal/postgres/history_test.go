package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/history"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// past is the history of a tenant of its own.
type past struct {
	*postgres.HistoryStore
	t  testing.TB
	db *postgres.DB
	id okapi.Tenant
}

func newPast(tb testing.TB) past {
	tb.Helper()
	db, id := pgtest.New(tb)
	return past{postgres.NewHistoryStore(db, true), tb, db, id}
}

func (p past) ctx() context.Context { return okapi.WithTenant(p.t.Context(), p.id) }

// exec runs SQL in which {schema} is the tenant's.
func (p past) exec(statement string, args ...any) {
	p.t.Helper()
	if _, err := p.db.Pool().Exec(p.ctx(), p.in(statement), args...); err != nil {
		p.t.Fatal(err)
	}
}

// in names the tenant's schema in a statement.
func (p past) in(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", pgx.Identifier{postgres.SchemaName(p.id)}.Sanitize())
}

func (p past) add(entries ...schemas.PastCheckOut) {
	p.t.Helper()
	if err := p.Add(p.ctx(), "desk-1", schemas.CheckOutReport{CheckOuts: entries}); err != nil {
		p.t.Fatal(err)
	}
}

func (p past) list(f history.Filter) schemas.PastCheckOuts {
	p.t.Helper()
	page, err := p.List(p.ctx(), f)
	if err != nil {
		p.t.Fatal(err)
	}
	return page
}

// reasons returns those of a page, by which tests distinguish entries.
func reasons(page schemas.PastCheckOuts) string {
	var all []string
	for _, c := range page.CheckOuts {
		all = append(all, c.Reason)
	}
	return strings.Join(all, " ")
}

// refused is a check-out that ended some milliseconds ago.
func refused(reason string, agoMs int64) schemas.PastCheckOut {
	return schemas.PastCheckOut{ID: uuid.NewString(), Outcome: "refused", Reason: reason, AgoMs: agoMs}
}

func TestHistory_ReturnsWhatWasReported(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	waited := 0
	whole := schemas.PastCheckOut{
		ID: uuid.NewString(), Outcome: "failed", Code: "INTERNAL", Reason: "Ein „Grund“ <mit> & \\ \" '; DROP TABLE x; --\n…",
		UserBarcode: "Ünï-1", ItemBarcode: "it em", UserID: uuid.NewString(), LoanID: uuid.NewString(),
		ServicePointID: uuid.NewString(),
		WaitMs:         &waited, TookMs: 12, Repeats: 2, RequestID: "1/a;2/b", Machine: "kiosk-1", AgoMs: 1500,
		Date: "1999-01-01T00:00:00Z", Instance: "another", // storage replaces both
	}
	bare := schemas.PastCheckOut{ID: uuid.NewString(), Outcome: "lent"}
	p.add(whole, bare)
	got := p.list(history.Filter{Limit: 10})
	if got.More || len(got.CheckOuts) != 2 {
		t.Fatalf("got %+v, want both", got)
	}
	dates := map[string]time.Time{}
	for _, c := range got.CheckOuts {
		ended, err := time.Parse(schemas.FolioTime, c.Date)
		if err != nil {
			t.Fatal(err)
		}
		dates[c.ID] = ended
	}
	if ago := dates[bare.ID].Sub(dates[whole.ID]); ago != 1500*time.Millisecond {
		t.Errorf("they ended %s apart, want 1.5s", ago)
	}
	whole.Date, whole.Instance, whole.AgoMs = got.CheckOuts[1].Date, "desk-1", 0
	bare.Date, bare.Instance = got.CheckOuts[0].Date, "desk-1"
	for i, want := range []schemas.PastCheckOut{bare, whole} {
		got, want := fmt.Sprintf("%+v", deref(got.CheckOuts[i])), fmt.Sprintf("%+v", deref(want))
		if got != want {
			t.Errorf("entry %d: got %s\nwant %s", i, got, want)
		}
	}
}

// deref shows the wait instead of its address.
func deref(c schemas.PastCheckOut) any {
	wait := -1
	if c.WaitMs != nil {
		wait = *c.WaitMs
	}
	c.WaitMs = nil
	return struct {
		schemas.PastCheckOut
		Wait int
	}{c, wait}
}

func TestHistory_KeepsARepeatedEntryOnce(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	first := refused("first", 60_000)
	p.add(first)
	before := p.list(history.Filter{Limit: 10})
	repeat := refused("repeat", 0)
	repeat.ID = strings.ToUpper(first.ID)
	other := refused("other", 0)
	p.add(repeat, other, other)
	got := p.list(history.Filter{Limit: 10})
	if reasons(got) != "other first" || got.CheckOuts[1] != before.CheckOuts[0] {
		t.Errorf("got %+v, want the other, then what stood there: %+v", got, before)
	}
}

func TestHistory_AcceptsTheSameEntriesFromManyAtOnce(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	const entries, reporters = 200, 8
	reports := make([]schemas.PastCheckOut, entries)
	for i := range reports {
		reports[i] = refused("r", 0)
	}
	var wg sync.WaitGroup
	for reporter := range reporters {
		wg.Go(func() {
			// Each in another order: the store deadlocks unless it sorts them.
			for round := range 5 {
				mine := append(append([]schemas.PastCheckOut(nil), reports[(reporter*37+round)%entries:]...),
					reports[:(reporter*37+round)%entries]...)
				if reporter%2 == 0 {
					slices.Reverse(mine)
				}
				if round > 0 { // so that every round has entries to race for
					for i := range mine {
						mine[i].ID = uuid.NewSHA1(uuid.NameSpaceOID, fmt.Append(nil, mine[i].ID, round)).String()
					}
				}
				if err := p.Add(p.ctx(), "desk", schemas.CheckOutReport{CheckOuts: mine, Waiting: reporter % 3}); err != nil {
					t.Errorf("reporter %d: %v", reporter, err)
				}
			}
		})
	}
	wg.Wait()
	var n int
	for page := p.list(history.Filter{Limit: 200}); ; page = p.list(history.Filter{Limit: 200, Offset: n}) {
		n += len(page.CheckOuts)
		if !page.More {
			break
		}
	}
	if n != 5*entries {
		t.Errorf("%d entries are there, want %d", n, 5*entries)
	}
}

func TestHistory_PagesFromTheNewest(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	var all []schemas.PastCheckOut
	for i := range 10 {
		all = append(all, refused(fmt.Sprint(i), int64(i/2)*1000)) // two at a time
	}
	p.add(all...)
	var seen []string
	for offset := 0; ; offset += 3 {
		page := p.list(history.Filter{Offset: offset, Limit: 3})
		seen = append(seen, strings.Fields(reasons(page))...)
		if page.More != (offset < 9) || len(page.CheckOuts) != min(3, 10-offset) {
			t.Errorf("page at %d: %d entries, more %t", offset, len(page.CheckOuts), page.More)
		}
		if !page.More {
			break
		}
	}
	for i, s := range seen {
		if s[0]/2 != byte('0'+i)/2 {
			t.Errorf("got %v, want the newest first", seen)
			break
		}
	}
	if unique := len(mapOf(seen)); unique != 10 {
		t.Errorf("pages have %d entries, want 10: %v", unique, seen)
	}
	if past := p.list(history.Filter{Offset: 10, Limit: 3}); past.More || past.CheckOuts == nil ||
		len(past.CheckOuts) != 0 {
		t.Errorf("past the end: got %+v, want an empty list", past)
	}
}

func mapOf(all []string) map[string]bool {
	m := map[string]bool{}
	for _, s := range all {
		m[s] = true
	}
	return m
}

func TestHistory_IsSearched(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	a, b, c, d := refused("a", 1000), refused("b", 2000), refused("c", 3000), refused("d", 4000)
	a.UserBarcode, a.ItemBarcode = "Straße-ÄB", "Book-1"
	b.UserBarcode, b.ItemBarcode, b.Outcome = "straße-äb", "Book-2", "lent"
	c.UserBarcode, c.ItemBarcode = "Straße-Ä", "BOOK-1"
	a.ServicePointID, b.ServicePointID = annID, benID
	p.add(a, b, c, d)
	stored := p.list(history.Filter{Limit: 4}).CheckOuts
	at := func(i int) time.Time {
		ended, err := time.Parse(schemas.FolioTime, stored[i].Date)
		if err != nil {
			t.Fatal(err)
		}
		return ended
	}
	for name, tt := range map[string]struct {
		filter history.Filter
		want   string
	}{
		"a patron":           {history.Filter{UserBarcode: "STRASSE-ÄB"}, ""},
		"a patron, any case": {history.Filter{UserBarcode: "straße-ÄB"}, "a b"},
		"no pattern":         {history.Filter{UserBarcode: "straße%"}, ""},
		"an item":            {history.Filter{ItemBarcode: "book-1"}, "a c"},
		"both":               {history.Filter{UserBarcode: "straße-ä", ItemBarcode: "book-1"}, "c"},
		"a service point":    {history.Filter{ServicePointID: annID}, "a"},
		"an unknown one":     {history.Filter{ServicePointID: cleoID}, ""},
		"an outcome":         {history.Filter{Outcome: "refused"}, "a c d"},
		"an outcome by case": {history.Filter{Outcome: "Refused"}, ""},
		"from its own date":  {history.Filter{From: at(1)}, "a b"},
		"from after it":      {history.Filter{From: at(1).Add(time.Millisecond)}, "a"},
		"until its own date": {history.Filter{Until: at(1)}, "b c d"},
		"until before it":    {history.Filter{Until: at(1).Add(-time.Millisecond)}, "c d"},
		"one moment":         {history.Filter{From: at(2), Until: at(2)}, "c"},
		"everything": {
			history.Filter{
				UserBarcode: "straße-äb", ItemBarcode: "BOOK-2", ServicePointID: strings.ToUpper(benID), Outcome: "lent",
				From: at(3), Until: at(0),
			},
			"b",
		},
		"SQL as a barcode":    {history.Filter{UserBarcode: `' OR true --`}, ""},
		"a dollar as barcode": {history.Filter{ItemBarcode: `$1`}, ""},
	} {
		tt.filter.Limit = 10
		if got := reasons(p.list(tt.filter)); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// The server's clock judges what is long ago.
func TestHistory_IsSearchedBackFromNow(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.add(refused("new", 0), refused("hours", 7_200_000), refused("days", 259_200_000))
	for since, want := range map[time.Duration]string{
		0: "new hours days", 100 * time.Hour: "new hours days", 24 * time.Hour: "new hours", time.Hour: "new",
	} {
		if got := reasons(p.list(history.Filter{Since: since, Limit: 10})); got != want {
			t.Errorf("%s: got %q, want %q", since, got, want)
		}
	}
}

func TestHistory_IsEachTenantsOwn(t *testing.T) {
	t.Parallel()
	mine, theirs := newPast(t), newPast(t)
	mine.add(refused("mine", 0))
	if err := mine.Add(mine.ctx(), "", schemas.CheckOutReport{Waiting: 3}); err != nil {
		t.Fatal(err)
	}
	mine.exec(`INSERT INTO {schema}.check_out_lock (user_id, ttl_ms) VALUES (gen_random_uuid(), 60000)`)
	f, err := theirs.Figures(theirs.ctx(), schemas.FigureFilter{Minutes: 5})
	if err != nil {
		t.Fatal(err)
	}
	if page := theirs.list(history.Filter{Limit: 10}); len(page.CheckOuts) != 0 || f.Total.CheckOuts != 0 ||
		f.Waiting != 0 || f.Held != 0 {
		t.Errorf("the other tenant sees %+v and %+v", page, f)
	}
	if _, err := mine.List(t.Context(), history.Filter{Limit: 1}); err == nil {
		t.Error("a list without a tenant was answered")
	}
}
