package postgres_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas"
)

func (p past) figures(minutes int) schemas.Figures {
	p.t.Helper()
	f, err := p.Figures(p.ctx(), schemas.FigureFilter{Minutes: minutes})
	if err != nil {
		p.t.Fatal(err)
	}
	return f
}

// whileBelieved runs f, which reports waiting callers and reads the figures. It runs f
// again if f took longer than such a report counts.
func whileBelieved(f func()) {
	for {
		start := time.Now()
		if f(); time.Since(start) < 4*time.Second {
			return
		}
	}
}

// ended is a check-out, dated from the beginning of the minute under way.
type ended struct {
	after   time.Duration
	outcome string
	wait    any // milliseconds; nil asked for no lock
}

// figuresOf stores check-outs and sums them up within one minute of the database's
// clock, and returns when that minute began.
func (p past) figuresOf(minutes int, all []ended) (schemas.Figures, time.Time) {
	p.t.Helper()
	for {
		p.exec(`TRUNCATE {schema}.check_out_history`)
		var minute time.Time
		if err := p.db.Pool().QueryRow(p.ctx(), `SELECT date_trunc('minute', clock_timestamp())`).Scan(&minute); err != nil {
			p.t.Fatal(err)
		}
		for _, e := range all {
			p.exec(`INSERT INTO {schema}.check_out_history (id, ended_date, outcome, wait_ms, took_ms, repeats)
			        VALUES ($1, $2, $3, $4, 1, 0)`, uuid.New(), minute.Add(e.after), e.outcome, e.wait)
		}
		if f := p.figures(minutes); f.Minutes[len(f.Minutes)-1].Date == minute.UTC().Format(schemas.FolioTime) {
			return f, minute
		}
	}
}

func wantFigures(t *testing.T, what string, got, want schemas.FigureTotal) {
	t.Helper()
	text := func(f schemas.FigureTotal) string {
		b, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if text(got) != text(want) {
		t.Errorf("%s: got %s, want %s", what, text(got), text(want))
	}
}

// total is made by hand: check-outs, loans, locks asked for, and the waits p50, p95
// and longest.
func total(checkOuts, lent, locked int, waits ...int) schemas.FigureTotal {
	f := schemas.FigureTotal{CheckOuts: checkOuts, Lent: lent, Locked: locked}
	if len(waits) == 3 {
		f.WaitP50Ms, f.WaitP95Ms, f.WaitMaxMs = &waits[0], &waits[1], &waits[2]
	}
	return f
}

func TestFigures_CountTheMinutesWithoutGaps(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	all := []ended{
		{after: -3 * time.Minute, outcome: "lent", wait: nil},
		{after: -3*time.Minute + 1, outcome: "refused", wait: nil},
		{after: -1, outcome: "lent", wait: 7}, // still in the minute before the last
		{after: 0, outcome: "lent", wait: 0},
		{after: time.Second, outcome: "refused", wait: 100},
		{after: 2 * time.Second, outcome: "failed", wait: nil},
		{after: 59*time.Second + 999*time.Millisecond, outcome: "lent", wait: 40},
		{after: -3*time.Minute - time.Microsecond, outcome: "lent", wait: 9999}, // before the first
		{after: time.Minute, outcome: "lent", wait: 9999},                       // ahead, of a clock that was set back
	}
	f, minute := p.figuresOf(4, all)
	if len(f.Minutes) != 4 {
		t.Fatalf("got %d minutes, want 4", len(f.Minutes))
	}
	for i, m := range f.Minutes {
		if want := minute.Add(time.Duration(i-3) * time.Minute).UTC().Format(schemas.FolioTime); m.Date != want {
			t.Errorf("minute %d begins %s, want %s", i, m.Date, want)
		}
	}
	wantFigures(t, "the first minute", f.Minutes[0].FigureTotal, total(2, 1, 0))
	wantFigures(t, "the second", f.Minutes[1].FigureTotal, total(0, 0, 0))
	wantFigures(t, "the third", f.Minutes[2].FigureTotal, total(1, 1, 1, 7, 7, 7))
	wantFigures(t, "the last", f.Minutes[3].FigureTotal, total(4, 2, 3, 40, 100, 100))
	wantFigures(t, "all", f.Total, total(7, 4, 4, 7, 100, 100))
	date, err := time.Parse(schemas.FolioTime, f.Date)
	if err != nil || date.Truncate(time.Minute) != minute.Truncate(time.Minute).In(date.Location()) {
		t.Errorf("the figures are of %s, %v, want within %s", f.Date, err, minute)
	}
}

func TestFigures_ComputePercentilesOfTheWaits(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	var all []ended
	for wait := 21; wait > 0; wait-- {
		all = append(all, ended{time.Duration(wait) * time.Millisecond, "lent", wait * 10})
	}
	f, _ := p.figuresOf(1, all)
	// Of 21 waits the 11th (0.5 of 21, rounded up) and the 20th (19.95, rounded up).
	wantFigures(t, "the minute", f.Minutes[0].FigureTotal, total(21, 21, 21, 110, 200, 210))
	wantFigures(t, "all", f.Total, total(21, 21, 21, 110, 200, 210))
}

func TestFigures_CountBucketsOfAServicePoint(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	desk := uuid.NewString()
	now := time.Now().UTC()
	for i, point := range []any{desk, desk, nil} {
		p.exec(`INSERT INTO {schema}.check_out_history (id, ended_date, outcome, service_point_id, took_ms, repeats)
		        VALUES ($1, $2, 'refused', $3, 1, 0)`, uuid.New(), now.Add(-time.Duration(i)*5*24*time.Hour), point)
	}
	for _, tt := range []struct {
		filter  schemas.FigureFilter
		buckets int
		total   int
	}{
		{filter: schemas.FigureFilter{Minutes: schemas.MaxFigureSpan, Bucket: 240}, buckets: 180, total: 3},
		{
			filter:  schemas.FigureFilter{Minutes: schemas.MaxFigureSpan, Bucket: 240, ServicePointID: desk},
			buckets: 180, total: 2,
		},
		{filter: schemas.FigureFilter{Minutes: 7 * 24 * 60, Bucket: 60, ServicePointID: desk}, buckets: 168, total: 2},
		{filter: schemas.FigureFilter{Minutes: 24 * 60, Bucket: 15}, buckets: 96, total: 1},
	} {
		f, err := p.Figures(p.ctx(), tt.filter)
		if err != nil || len(f.Minutes) != tt.buckets || f.Total.CheckOuts != tt.total || f.Causes[0].Count != tt.total {
			t.Fatalf("%+v: got %d buckets, %+v, %+v, %v", tt.filter, len(f.Minutes), f.Total, f.Causes, err)
		}
		sum := 0
		for i, m := range f.Minutes {
			begin, err := time.Parse(schemas.FolioTime, m.Date)
			length := time.Duration(tt.filter.Bucket) * time.Minute
			if err != nil || begin.Truncate(length) != begin || i > 0 && m.Date <= f.Minutes[i-1].Date {
				t.Errorf("%+v: the bucket %d begins at %s, %v", tt.filter, i, m.Date, err)
			}
			sum += m.CheckOuts
		}
		if sum != tt.total {
			t.Errorf("%+v: the buckets have %d, want %d", tt.filter, sum, tt.total)
		}
	}
}

func TestFigures_OfAnEmptyHistory(t *testing.T) {
	t.Parallel()
	f := newPast(t).figures(schemas.MaxFigureMinutes)
	if len(f.Minutes) != schemas.MaxFigureMinutes || f.Causes == nil || len(f.Causes) != 0 || f.Waiting != 0 ||
		f.Held != 0 {
		t.Errorf("got %d minutes, %v, %d, %d", len(f.Minutes), f.Causes, f.Waiting, f.Held)
	}
	wantFigures(t, "all", f.Total, total(0, 0, 0))
}

func TestFigures_NameTheCauses(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	cause := func(outcome, code, reason, user, item string) schemas.PastCheckOut {
		return schemas.PastCheckOut{
			ID: uuid.NewString(), Outcome: outcome, Code: code, Reason: reason, UserBarcode: user, ItemBarcode: item,
		}
	}
	p.add(
		cause("lent", "", "", "u1", "i1"),
		// Without a code the text decides.
		cause("refused", "", "Item is already checked out", "1234", "123456"),
		cause("refused", "", "Item is already checked out", "9988", "99"),
		cause("refused", "", "Item is already checked out", "", ""),
		// With a code the text does not decide; the example names no barcode.
		cause("refused", "ITEM_STATUS", "Moby Dick (book) (Barcode: 4567) has the status Aged to lost", "45", "4567"),
		cause("refused", "ITEM_STATUS", "", "u2", "i1"),
		cause("refused", "ITEM_STATUS", "Zen (book) (Barcode: 45678) has the status Aged to lost", "u3", "45678"),
		cause("refused", "ITEM_STATUS", "Zen (book) (Barcode: 45678) has the status Aged to lost", "u4", "45678"),
		cause("limit_reached", "ITEM_LIMIT", "Patron 1234567.1 and 1234567 have 15 of 15 items", "1234567", "1234567.1"),
		cause("limit_reached", "ITEM_LIMIT", "Patron has 15 of 15 items", "15", "15"),
		// The same text with another outcome is another cause; so is none at all.
		cause("failed", "", "Item is already checked out", "9988", "99"),
		cause("failed", "", "Item is already checked out", "9988", "98"),
		cause("client_left", "", "", "", ""),
	)
	got := p.figures(60).Causes
	want := []schemas.FigureCause{
		{
			Outcome: "refused", Code: "ITEM_STATUS", Reason: "Moby Dick (book) (Barcode: …) has the status Aged to lost",
			Count: 4,
		},
		{Outcome: "refused", Reason: "Item is already checked out", Count: 3},
		{Outcome: "failed", Reason: "Item is already checked out", Count: 2},
		{Outcome: "limit_reached", Code: "ITEM_LIMIT", Reason: "Patron … and … have 15 of 15 items", Count: 2},
		{Outcome: "client_left", Count: 1},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestFigures_PutRareCausesTogether(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	var all []schemas.PastCheckOut
	for i := range 13 {
		for range max(1, 12-i) { // 12, 11, ... 3, then 2, 1 and 1
			all = append(all, refused(fmt.Sprintf("reason %c", 'a'+i), 0))
		}
	}
	p.add(all...)
	got := p.figures(60).Causes
	if len(got) != 11 {
		t.Fatalf("got %d causes, want 10 and the rest: %+v", len(got), got)
	}
	for i, c := range got[:10] {
		if want := (schemas.FigureCause{
			Outcome: "refused", Reason: fmt.Sprintf("reason %c", 'a'+i), Count: 12 - i,
		}); c != want {
			t.Errorf("cause %d: got %+v, want %+v", i, c, want)
		}
	}
	if rest := (schemas.FigureCause{Count: 4}); got[10] != rest {
		t.Errorf("the rest: got %+v, want %+v", got[10], rest)
	}
}

func TestFigures_SumUpWaitingAndHeld(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	report := func(holder string, waiting int) {
		t.Helper()
		if err := p.Add(p.ctx(), holder, schemas.CheckOutReport{Waiting: waiting}); err != nil {
			t.Fatal(err)
		}
	}
	p.exec(`INSERT INTO {schema}.check_out_lock (user_id, ttl_ms) SELECT gen_random_uuid(), 600000 FROM ` +
		`generate_series(1, 4)`)
	p.exec(`INSERT INTO {schema}.check_out_lock (user_id, ttl_ms, creation_date) VALUES (gen_random_uuid(), 1000, ` +
		`clock_timestamp() - interval '2 s')`)
	var f schemas.Figures
	whileBelieved(func() {
		report("a", 7)
		report("a", 2) // the last report counts
		report("b", 3)
		report("", 1) // one without a name counts too
		report("done", 9)
		report("done", 0)
		report("gone", 50)
		p.exec(`UPDATE {schema}.check_out_waiting SET reported_date = reported_date - interval '6 seconds' WHERE holder = ` +
			`'gone'`)
		f = p.figures(1)
	})
	if f.Waiting != 2+3+1 || f.Held != 4 {
		t.Errorf("got %d waiting and %d held, want 6 and 4", f.Waiting, f.Held)
	}
}

// BenchmarkFigures sums up 100000 check-outs of the last hour, of 300000 in all.
func BenchmarkFigures(b *testing.B) {
	p := newPast(b)
	p.exec(`INSERT INTO {schema}.check_out_history (id, ended_date, outcome, code, reason, user_barcode, item_barcode,
		wait_ms, took_ms, repeats)
	        SELECT gen_random_uuid(), clock_timestamp() - n * interval '35 ms',
	        CASE WHEN n % 5 = 0 THEN 'refused' ELSE 'lent' END,
	               CASE WHEN n % 10 = 0 THEN 'ITEM_LIMIT' END,
	               CASE WHEN n % 5 = 0 THEN 'Item ' || n || ' of ' || n % 7 || ' is not for loan to ' || n % 1000 END,
	               (n % 1000)::text, n::text, CASE WHEN n % 3 = 0 THEN n % 1999 * 7919 % 2000 END, 20, 0
	          FROM generate_series(1, 300000) n`)
	p.exec(`ANALYZE {schema}.check_out_history`)
	for b.Loop() {
		if f := p.figures(60); f.Total.CheckOuts < 100_000 {
			b.Fatalf("only %d check-outs", f.Total.CheckOuts)
		}
	}
}
