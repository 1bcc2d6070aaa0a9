package staff_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/auth"
)

var beginning = time.Date(2026, 8, 22, 13, 30, 0, 0, time.UTC)

// hour returns the figures of an hour with check-outs only in the given minutes.
func hour(minutes map[int]schemas.FigureTotal) schemas.Figures {
	f := schemas.Figures{
		Date: beginning.Add(time.Hour).Format(schemas.FolioTime), Minutes: []schemas.FigureMinute{},
		Causes: []schemas.FigureCause{},
	}
	for i := range 60 {
		at := beginning.Add(time.Duration(i) * time.Minute)
		f.Minutes = append(f.Minutes, schemas.FigureMinute{Date: at.Format(schemas.FolioTime), FigureTotal: minutes[i]})
		f.Total.CheckOuts += minutes[i].CheckOuts
		f.Total.Lent += minutes[i].Lent
		f.Total.Locked += minutes[i].Locked
	}
	return f
}

func busyHour() schemas.Figures {
	f := hour(map[int]schemas.FigureTotal{
		3:  {CheckOuts: 12, Lent: 9, Locked: 12, WaitP50Ms: new(40), WaitP95Ms: new(1500), WaitMaxMs: new(2100)},
		4:  {CheckOuts: 2, Lent: 2, Locked: 2, WaitP50Ms: new(0), WaitP95Ms: new(3), WaitMaxMs: new(3)},
		40: {CheckOuts: 1, Lent: 1},
	})
	f.Waiting, f.Held = 4, 2
	f.Total.WaitP50Ms, f.Total.WaitP95Ms, f.Total.WaitMaxMs = new(30), new(1200), new(2100)
	f.Causes = []schemas.FigureCause{
		{
			Outcome: "limit_reached", Code: "ITEM_LIMIT_LOAN_POLICY",
			Reason: "Patron has reached maximum limit of 3 items for <b>", Count: 2,
		},
		{Outcome: "lock_not_acquired", Code: "LOCK_NOT_ACQUIRED", Reason: "unable to acquire lock", Count: 1},
		{
			Outcome: "refused", Code: "ITEM_STATUS",
			Reason: "Lanterns (book) (Barcode: …) has the item status Aged to lost and cannot be checked out", Count: 1,
		},
		{Count: 1},
	}
	return f
}

func localClock(minute int) string {
	return beginning.Add(time.Duration(minute) * time.Minute).Local().Format("15:04")
}

func TestContentionPage_HasChartsWordsAndTables(t *testing.T) {
	t.Parallel()
	p := visit(t, &library{figures: busyHour()}).get(t, "/staff/diku/contention")
	p.want(t, http.StatusOK,
		"Check-outs waiting now 4", "Locks held now 2", "Check-outs 15", "Lent 12", "Half waited less than 30 ms",
		"19 of 20 waited less than 1.2 s", "Longest wait 2.1 s",
		"15 check-outs in the last hour, 12 lent and 3 not. Most a minute: 12 at "+localClock(3)+".",
		"14 check-outs asked for a lock in the last hour. Half waited less than 30 ms, 19 of 20 less than 1.2 s. "+
			"The worst was "+localClock(3)+", with 1.5 s.",
		"5 check-outs were not lent in the last hour. Most often: Limit reached: Patron has reached maximum limit of 3 "+
			"items for <b>, 2 times.",
		localClock(3)+" 12 9 3", localClock(3)+" 12 40 ms 1.5 s 2.1 s", localClock(40)+" 0 – – –",
		"1 Refused: the item's status does not allow it ITEM_STATUS Lanterns (book) (Barcode: …) has the item status Aged "+
			"to lost and cannot be checked out",
		"1 Busy, try again LOCK_NOT_ACQUIRED unable to acquire lock", "1 All other causes – –",
	)
	p.has(t, `data-stream="/staff/diku/contention/live"`, `role="img" aria-labelledby="counts-title counts-text"`,
		`<path class="line two" d="M`, `for &lt;b&gt;`)
	p.lacks(t, "ZgotmplZ", "NaN")
	if strings.Contains(p.html, "<b>") {
		t.Error("a reason is not written as text")
	}
}

func TestContentionPage_HasSpansMarksAndLinks(t *testing.T) {
	t.Parallel()
	change := func(minute int, before, after string) schemas.LockChange {
		return schemas.LockChange{
			Date: beginning.Add(time.Duration(minute) * time.Minute).Format(schemas.FolioTime), Kind: schemas.ChangeSettings,
			By: schemas.ChangedBy{Name: "Ann"}, Before: json.RawMessage(before), After: json.RawMessage(after),
		}
	}
	day := busyHour()
	day.Minutes = append(day.Minutes, make([]schemas.FigureMinute, 36)...)
	for i := range day.Minutes {
		day.Minutes[i].Date = beginning.Add(time.Duration(i) * 15 * time.Minute).Format(schemas.FolioTime)
	}
	day.Date = beginning.Add((95*15 + 1) * time.Minute).Format(schemas.FolioTime) // the last bar has just begun
	l := &library{figures: day, changes: schemas.LockChanges{Changes: []schemas.LockChange{
		change(91*15, `{"checkOutLockFeatureEnabled":true}`, `{"checkOutLockFeatureEnabled":false}`),
		change(48*15, `{"checkOutLockFeatureEnabled":false}`, `{"checkOutLockFeatureEnabled":true}`),
		change(20, `{"checkOutLockFeatureEnabled":false,"lockTtl":3000}`,
			`{"checkOutLockFeatureEnabled":false,"lockTtl":4000}`),
		change(-5, ``, `{"checkOutLockFeatureEnabled":true}`), // before the chart
	}}}
	p := visit(t, l).get(t, "/staff/diku/contention?span=24h&servicePoint="+heldID)
	p.want(t, http.StatusOK, "1 hour 24 hours 7 days 30 days", "in the last 24 hours", "Check-outs in 15 minutes",
		"When the lock was turned on or off", ": off, by Ann", ": on, by Ann", "Save as CSV")
	p.has(t, `<option value="`+heldID+`" selected>Front desk`, `aria-current="true">24 hours`,
		`href="/staff/diku/contention?servicePoint=`+heldID+`&amp;span=30d">30 days`,
		`href="/staff/diku/check-outs?code=ITEM_STATUS&amp;from=`,
		`&amp;outcome=refused&amp;servicePoint=`+heldID+`">Refused`,
		`<line class="turn" x1="346"`, `<line class="turn" x1="598.6"`, `href="#results">Skip to the results`)
	p.lacks(t, "data-stream=", "default, by Ann")
	if n := strings.Count(p.html, `class="turn"`); n != 4 { // two in each chart
		t.Errorf("there are %d marks, want 4", n)
	}
	if want := (schemas.FigureFilter{Minutes: 1440, Bucket: 15, ServicePointID: heldID}); l.counted != want {
		t.Errorf("asked for %+v, want %+v", l.counted, want)
	}
	wrong := visit(t, l).get(t, "/staff/diku/contention?servicePoint=desk")
	wrong.want(t, http.StatusBadRequest, "There is no service point desk")
	reader := visitAs(t, l, auth.Gateway, granted(admin.MaySeeFigures)).get(t, "/staff/diku/contention")
	reader.lacks(t, "When the lock was turned", "/check-outs?")

	file := visit(t, l).get(t, "/staff/diku/contention.csv?span=30d")
	rows, err := csv.NewReader(strings.NewReader(file.html)).ReadAll()
	if err != nil || len(rows) != 97 || strings.Join(rows[4][1:], "|") != "240|12|9|3|12|40|1500|2100" {
		t.Errorf("got %q, %v", rows, err)
	}
}

func TestContentionPage_SaysThatThereWereNoCheckOuts(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]schemas.Figures{"quiet": hour(nil), "no minutes at all": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := visit(t, &library{figures: f}).get(t, "/staff/diku/contention")
			p.want(t, http.StatusOK, "No check-outs in the last hour.", "No check-out asked for a lock in the last hour.",
				"Longest wait –")
			p.lacks(t, `role="img"`, "NaN", "Inf")
		})
	}
}

func TestContentionPage_SaysThatAllWereLent(t *testing.T) {
	t.Parallel()
	f := hour(map[int]schemas.FigureTotal{59: {CheckOuts: 1, Lent: 1}})
	p := visit(t, &library{figures: f}).get(t, "/staff/diku/contention")
	p.want(t, http.StatusOK, "1 check-out in the last hour, 1 lent and 0 not.",
		"Every check-out of the last hour was lent.")
}

func TestContentionPage_SaysWhyThereAreNoFigures(t *testing.T) {
	t.Parallel()
	p := visit(t, &library{
		noFigures: fault.New(fault.Unavailable, "Storage was not reached"),
	}).get(t, "/staff/diku/contention")
	p.want(t, http.StatusServiceUnavailable, "Storage was not reached")
}

func TestContentionPage_StreamsChangedFigures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &backend{figures: hour(nil)}
		f := newLivePages(t, d).follow(t, "/staff/diku/contention/live")
		if got := f.news(); !strings.Contains(got, "No check-outs in the last hour.") || strings.Contains(got, "<!DOCTYPE") {
			t.Errorf("got at once\n%s", got)
		}
		d.change(func() { d.figures = busyHour() })
		if got := f.after(4900 * time.Millisecond); got != "" {
			t.Errorf("got %q before figures can be newer", got)
		}
		got := f.after(200 * time.Millisecond)
		for _, part := range []string{
			"tiles", "counts", "count-rows", "waits", "wait-rows", "causes", "cause-table", "cause-rows",
		} {
			if !strings.Contains(got, fmt.Sprintf(`data-live=%q`, part)) {
				t.Errorf("the part %s is not sent", part)
			}
		}
		if !strings.Contains(got, "<dd>15</dd>") {
			t.Errorf("got\n%s", got)
		}
		f.leave()
	})
}
