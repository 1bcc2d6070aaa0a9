package reporter_test

import (
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/reporter"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

func TestRecorder_ReportsEndingsOnceInABatch(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *harness) {
		ctx := inTenant(t, "diku")
		<-time.After(200 * time.Millisecond)
		b.Ended(okapi.NewContext(ctx, okapi.Call{RequestID: "r-1", Machine: "kiosk-1", Token: "old"}), checkout.Ending{
			Outcome: checkout.OutcomeLimitReached, Code: "ITEM_LIMIT", Reason: "no", UserBarcode: "ann", ItemBarcode: "1",
			UserID: "77477611-ab44-4082-a0d8-42f7acdfde11", ServicePointID: "3a40852d-49fd-4df2-a1f9-6e2641a6e91f",
			Wait: new(time.Duration), Took: 1234567 * time.Microsecond, Repeats: 2,
		})
		<-time.After(200 * time.Millisecond)
		b.lend(okapi.NewContext(ctx, okapi.Call{
			RequestID: "r-2", Token: "new", UserID: "staff", Permissions: []string{"p"},
		}), 2, 1)
		<-time.After(5 * time.Second)
		reports := b.takeReports()
		if len(reports) != 1 || reports[0].at != 500*time.Millisecond || reports[0].tenant != "diku" ||
			reports[0].Waiting != 0 {
			t.Fatalf("reported %+v, want once, after half a second", reports)
		}
		if i := reports[0].info; i.Token != "new" || i.RequestID != "r-2" || i.UserID != "staff" || !i.HasPermission("p") {
			t.Errorf("reported on behalf of %+v, want the newest call", i)
		}
		first, second := reports[0].CheckOuts[0], reports[0].CheckOuts[1]
		if first.ID == second.ID || !schemas.IsUUID(first.ID) {
			t.Errorf("ids %s and %s", first.ID, second.ID)
		}
		first.ID = ""
		if first.WaitMs == nil || *first.WaitMs != 0 {
			t.Errorf("waited %v, want 0", first.WaitMs)
		}
		first.WaitMs = nil
		want := schemas.PastCheckOut{
			AgoMs: 300, Outcome: "limit_reached", Code: "ITEM_LIMIT", Reason: "no", UserBarcode: "ann", ItemBarcode: "1",
			UserID: "77477611-ab44-4082-a0d8-42f7acdfde11", ServicePointID: "3a40852d-49fd-4df2-a1f9-6e2641a6e91f",
			TookMs: 1235, Repeats: 2, RequestID: "r-1", Machine: "kiosk-1",
		}
		if first != want {
			t.Errorf("reported %+v\nwant %+v", first, want)
		}
		if second.AgoMs != 100 || second.WaitMs != nil || second.RequestID != "r-2" {
			t.Errorf("reported %+v", second)
		}
	})
}

func TestRecorder_ReportsManyEndingsInSeveralBatches(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *harness) {
		b.lend(inTenant(t, "diku"), 0, 1000)
		<-time.After(600 * time.Millisecond)
		reports := b.takeReports()
		if len(reports) != 2 || len(reports[0].CheckOuts) != 500 || !slices.Equal(items(reports), numbered(0, 1000)) {
			t.Errorf("%d reports, %d check-outs", len(reports), len(items(reports)))
		}
	})
}

func TestRecorder_BoundsTheTenants(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *harness) {
		b.script(always(errDown))
		for i := range 1200 {
			b.lend(inTenant(t, fmt.Sprintf("t%d", i)), 0, 1)
		}
		if n := b.Remembered(); n != 1000 || b.dropped != 200 {
			t.Errorf("%d tenants are remembered, %d check-outs dropped; want 1000 and 200", n, b.dropped)
		}
		b.takeReports()
		b.script(nil)
		<-time.After(2 * time.Minute)
		if n, sent := b.Remembered(), len(items(b.takeReports())); n != 0 || sent != 1000 {
			t.Errorf("%d tenants are remembered after %d check-outs were reported, want none after 1000", n, sent)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := &harness{}
		r := reporter.NewRecorder(b, "1.0.0", b.drop, slog.New(slog.DiscardHandler))
		if r.Ended(t.Context(), checkout.Ending{}); r.Remembered() != 0 || b.dropped != 1 {
			t.Error("a check-out of no tenant is kept")
		}
	})
}

func TestRecorder_BoundsTheEndingsOfManyTenants(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *harness) {
		b.script(always(errDown))
		const tenants, each = 1000, 25 // each may keep 20
		for range 2 {                  // also of tenants that were added while there were few
			for i := range tenants {
				b.lend(inTenant(t, fmt.Sprintf("t%d", i)), 0, each)
			}
		}
		if kept := 2*tenants*each - b.dropped; kept > 20_000 {
			t.Errorf("%d check-outs are kept, want at most 20000", kept)
		}
	})
}

// It measures the memory of the whole process, so no other test runs beside it.
func TestRecorder_KeepsNoBarcodeOfAMegabyte(t *testing.T) {
	run(t, func(t *testing.T, b *harness) {
		b.script(always(errDown))
		ctx := inTenant(t, "diku")
		before := heap()
		const n, size = 64, 1 << 20
		for range n {
			long := strings.Repeat("9", size)
			b.Ended(ctx, checkout.Ending{Outcome: checkout.OutcomeRefused, UserBarcode: long, Reason: long + " is no barcode"})
		}
		if kept := heap() - before; kept > n*size/4 {
			t.Errorf("%d MB are kept of %d check-outs, want 1 KB of each", kept>>20, n)
		}
	})
}

// heap is how much memory is in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestRecorder_ReportsWaitingOnChangeAndEverySecond(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *harness) {
		ctx := inTenant(t, "diku")
		b.Waiting(ctx, -1) // the end of a wait whose beginning found no room
		b.Waiting(ctx, 1)
		b.Waiting(ctx, -1) // between two ticks
		<-time.After(900 * time.Millisecond)
		b.Waiting(ctx, 1)
		b.Waiting(ctx, 1)
		<-time.After(3 * time.Second) // reported at 1 s, 2 s and 3 s
		b.Waiting(ctx, -1)            // reported at 4 s
		<-time.After(500 * time.Millisecond)
		b.Waiting(ctx, -1) // reported at 4.5 s
		<-time.After(time.Minute)
		var got []string
		for _, r := range b.takeReports() {
			got = append(got, fmt.Sprintf("%d at %s", r.Waiting, r.at))
			if len(r.Waits) != r.Waiting {
				t.Errorf("reported %d waits of %d", len(r.Waits), r.Waiting)
			}
			for i, w := range r.Waits {
				// The first wait ended before the first report.
				if w.WaitedMs != (r.at-900*time.Millisecond).Milliseconds() || w.ServicePointID != "" || i == 0 && r.Waiting == 1 &&
					w.UserID != patronID(3) {
					t.Errorf("at %s: reported %+v", r.at, w)
				}
			}
			if r.CheckOuts == nil {
				t.Error("no check-outs are reported as null, want an empty list")
			}
		}
		want := []string{"2 at 1s", "2 at 2s", "2 at 3s", "1 at 4s", "0 at 4.5s"}
		if !slices.Equal(got, want) {
			t.Errorf("reported %q, want %q", got, want)
		}
		if n := b.Remembered(); n != 0 {
			t.Errorf("%d tenants are remembered, want none", n)
		}
	})
}

func TestRecorder_ReportsTheRestAtTheStop(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *harness) {
		ctx := inTenant(t, "diku")
		b.script(always(errDown))
		b.Waiting(ctx, 1)
		b.lend(ctx, 0, 700)
		<-time.After(3 * time.Second) // during a pause
		b.takeReports()
		b.script(nil)
		b.Waiting(ctx, -1)
		start := time.Now()
		b.end()
		reports := b.takeReports()
		if !slices.Equal(items(reports), numbered(0, 700)) || b.dropped != 0 || time.Since(start) != 0 {
			t.Errorf("reported %d check-outs, dropped %d, in %s", len(items(reports)), b.dropped, time.Since(start))
		}
		if last := reports[len(reports)-1]; last.Waiting != 0 {
			t.Errorf("%d wait after the stop", last.Waiting)
		}
	})
}

func TestRecorder_StopsWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *harness) {
		b.delay = time.Hour
		for i := range 10 { // more than are sent at once
			b.lend(inTenant(t, fmt.Sprintf("t%d", i)), 0, 2)
		}
		<-time.After(time.Second)
		start := time.Now()
		b.end()
		if took := time.Since(start); took != 2*time.Second || b.dropped != 20 ||
			!strings.Contains(b.log.String(), "check_outs=20") {
			t.Errorf("stopped after %s, dropped %d, logged %s; want 2 s and 20", took, b.dropped, b.log.String())
		}
	})
}
