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

func TestEndingsAreToldInBatchesAndOnce(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *bench) {
		ctx := inTenant(t, "diku")
		<-time.After(200 * time.Millisecond)
		b.Ended(okapi.NewContext(ctx, okapi.Call{RequestID: "r-1", Token: "old"}), checkout.Ending{
			Outcome: checkout.OutcomeLimitReached, Code: "ITEM_LIMIT", Reason: "no", UserBarcode: "ann", ItemBarcode: "1",
			UserID: "77477611-ab44-4082-a0d8-42f7acdfde11", ServicePointID: "3a40852d-49fd-4df2-a1f9-6e2641a6e91f",
			Wait: new(time.Duration), Took: 1234567 * time.Microsecond, Repeats: 2,
		})
		<-time.After(200 * time.Millisecond)
		b.lend(okapi.NewContext(ctx, okapi.Call{RequestID: "r-2", Token: "new", UserID: "staff", Permissions: []string{"p"}}), 2, 1)
		<-time.After(5 * time.Second)
		reports := b.heard()
		if len(reports) != 1 || reports[0].at != 500*time.Millisecond || reports[0].tenant != "diku" || reports[0].Waiting != 0 {
			t.Fatalf("told %+v, want once, after half a second", reports)
		}
		if i := reports[0].info; i.Token != "new" || i.RequestID != "r-2" || i.UserID != "staff" || !i.HasPermission("p") {
			t.Errorf("told on behalf of %+v, want the newest call", i)
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
			TookMs: 1235, Repeats: 2, RequestID: "r-1",
		}
		if first != want {
			t.Errorf("told %+v\nwant %+v", first, want)
		}
		if second.AgoMs != 100 || second.WaitMs != nil || second.RequestID != "r-2" {
			t.Errorf("told %+v", second)
		}
	})
}

func TestManyEndingsAreToldInSeveralBatchesAtOnce(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *bench) {
		b.lend(inTenant(t, "diku"), 0, 1000)
		<-time.After(600 * time.Millisecond)
		reports := b.heard()
		if len(reports) != 2 || len(reports[0].CheckOuts) != 500 || !slices.Equal(items(reports), numbered(0, 1000)) {
			t.Errorf("%d reports, %d check-outs", len(reports), len(items(reports)))
		}
	})
}

func TestInventedTenantsFillNoMemory(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *bench) {
		b.script(always(errDown))
		for i := range 1200 {
			b.lend(inTenant(t, fmt.Sprintf("t%d", i)), 0, 1)
		}
		if n := b.Remembered(); n != 1000 || b.dropped != 200 {
			t.Errorf("%d tenants are remembered, %d check-outs dropped; want 1000 and 200", n, b.dropped)
		}
		b.script(nil)
		<-time.After(2 * time.Minute)
		if n := b.Remembered(); n != 0 {
			t.Errorf("%d tenants are remembered when all is told", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := &bench{}
		r := reporter.NewRecorder(b, b.drop, slog.New(slog.DiscardHandler))
		if r.Ended(t.Context(), checkout.Ending{}); r.Remembered() != 0 || b.dropped != 1 {
			t.Error("a check-out of no tenant is kept")
		}
	})
}

func TestAnOutageFillsNoMemoryHoweverManyTenantsThereAre(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *bench) {
		b.script(always(errDown))
		const tenants, each = 1000, 100
		for range 2 { // also of tenants that came when there were few
			for i := range tenants {
				b.lend(inTenant(t, fmt.Sprintf("t%d", i)), 0, each)
			}
		}
		if kept := 2*tenants*each - b.dropped; kept > 20_000 {
			t.Errorf("%d check-outs are kept, want at most 20000", kept)
		}
	})
}

// It looks at the memory of the whole process, so nothing runs beside it.
func TestABarcodeOfAMegabyteIsNotKept(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
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

func TestHowManyWaitIsToldWhenItChangesAndEverySecond(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *bench) {
		ctx := inTenant(t, "diku")
		b.Waiting(ctx, -1) // of one whose beginning found no room
		b.Waiting(ctx, 1)
		b.Waiting(ctx, -1) // between two looks
		<-time.After(900 * time.Millisecond)
		b.Waiting(ctx, 1)
		b.Waiting(ctx, 1)
		<-time.After(3 * time.Second) // told at 1 s, 2 s and 3 s
		b.Waiting(ctx, -1)            // told at 4 s
		<-time.After(500 * time.Millisecond)
		b.Waiting(ctx, -1) // told at 4.5 s
		<-time.After(time.Minute)
		var got []string
		for _, r := range b.heard() {
			got = append(got, fmt.Sprintf("%d at %s", r.Waiting, r.at))
			if r.CheckOuts == nil {
				t.Error("no check-outs are told as null, want an empty list")
			}
		}
		want := []string{"2 at 1s", "2 at 2s", "2 at 3s", "1 at 4s", "0 at 4.5s"}
		if !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
		if n := b.Remembered(); n != 0 {
			t.Errorf("%d tenants are remembered, want none", n)
		}
	})
}

func TestAStopTellsWhatIsLeft(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *bench) {
		ctx := inTenant(t, "diku")
		b.script(always(errDown))
		b.Waiting(ctx, 1)
		b.lend(ctx, 0, 700)
		<-time.After(3 * time.Second) // a pause is under way
		b.heard()
		b.script(nil)
		b.Waiting(ctx, -1)
		start := time.Now()
		b.end()
		reports := b.heard()
		if !slices.Equal(items(reports), numbered(0, 700)) || b.dropped != 0 || time.Since(start) != 0 {
			t.Errorf("told of %d check-outs, dropped %d, in %s", len(items(reports)), b.dropped, time.Since(start))
		}
		if last := reports[len(reports)-1]; last.Waiting != 0 {
			t.Errorf("%d wait after the stop", last.Waiting)
		}
	})
}

func TestAStopWaitsTwoSecondsForAStorageThatHangs(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *bench) {
		b.delay = time.Hour
		for i := range 10 { // more than are told at once
			b.lend(inTenant(t, fmt.Sprintf("t%d", i)), 0, 2)
		}
		<-time.After(time.Second)
		start := time.Now()
		b.end()
		if took := time.Since(start); took != 2*time.Second || b.dropped != 20 || !strings.Contains(b.log.String(), "check_outs=20") {
			t.Errorf("stopped after %s, dropped %d, logged %s; want 2 s and 20", took, b.dropped, b.log.String())
		}
	})
}
