package history_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/history"
	"checkoutlock/schemas"
	"checkoutlock/schemas/call"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/tenant"
)

var errDown = fault.New(fault.Unavailable, "down")

// told is one report as storage got it.
type told struct {
	schemas.CheckOutReport
	at     time.Duration // since the test began
	tenant string
	info   call.Info
}

// bench is a recorder with a storage that answers by a script.
type bench struct {
	*history.Recorder
	start time.Time
	stop  context.CancelFunc
	ended chan struct{}

	mu      sync.Mutex
	log     strings.Builder
	reports []told
	answer  func(told) error // nil takes everything
	delay   time.Duration    // of each answer
	dropped int
}

// run calls test with a recorder that runs, and stops it afterwards.
func run(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{start: time.Now(), ended: make(chan struct{})}
		b.Recorder = history.NewRecorder(b, b.drop, slog.New(slog.NewTextHandler(b, nil)))
		var ctx context.Context
		ctx, b.stop = context.WithCancel(t.Context())
		go func() {
			defer close(b.ended)
			b.Run(ctx)
		}()
		test(t, b)
		b.end()
	})
}

// end stops the recorder and waits for it.
func (b *bench) end() {
	b.stop()
	<-b.ended
}

func (b *bench) Report(ctx context.Context, r schemas.CheckOutReport) error {
	b.mu.Lock()
	answer, delay := b.answer, b.delay
	b.mu.Unlock()
	id, _ := tenant.FromContext(ctx)
	got := told{CheckOutReport: r, at: time.Since(b.start), tenant: id.String(), info: call.FromContext(ctx)}
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reports = append(b.reports, got)
	if answer != nil {
		return answer(got)
	}
	return nil
}

func (b *bench) drop(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropped += n
}

// Write is the log's.
func (b *bench) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(line)
}

// script changes how storage answers.
func (b *bench) script(answer func(told) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = answer
}

// heard returns the reports since it was asked last.
func (b *bench) heard() []told {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.reports
	b.reports = nil
	return r
}

func always(err error) func(told) error { return func(told) error { return err } }

func inTenant(t *testing.T, name string) context.Context {
	t.Helper()
	id, err := tenant.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return tenant.NewContext(t.Context(), id)
}

// lend ends n check-outs, with the items first, first+1 and so on.
func (b *bench) lend(ctx context.Context, first, n int) {
	for i := range n {
		b.Ended(ctx, checkout.Ending{Outcome: checkout.OutcomeLent, ItemBarcode: fmt.Sprint(first + i)})
	}
}

// items are the barcodes of the check-outs of all reports.
func items(reports []told) (barcodes []string) {
	for _, r := range reports {
		for _, c := range r.CheckOuts {
			barcodes = append(barcodes, c.ItemBarcode)
		}
	}
	return barcodes
}

// numbered are the barcodes that lend gave.
func numbered(first, n int) (barcodes []string) {
	for i := range n {
		barcodes = append(barcodes, fmt.Sprint(first+i))
	}
	return barcodes
}

func TestEndingsAreToldInBatchesAndOnce(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *bench) {
		ctx := inTenant(t, "diku")
		<-time.After(200 * time.Millisecond)
		b.Ended(call.NewContext(ctx, call.Info{RequestID: "r-1", Token: "old"}), checkout.Ending{
			Outcome: checkout.OutcomeLimitReached, Code: "ITEM_LIMIT", Reason: "no", UserBarcode: "ann", ItemBarcode: "1",
			UserID: "77477611-ab44-4082-a0d8-42f7acdfde11", ServicePointID: "3a40852d-49fd-4df2-a1f9-6e2641a6e91f",
			Wait: new(time.Duration), Took: 1234567 * time.Microsecond, Repeats: 2,
		})
		<-time.After(200 * time.Millisecond)
		b.lend(call.NewContext(ctx, call.Info{RequestID: "r-2", Token: "new", UserID: "staff", Permissions: []string{"p"}}), 2, 1)
		<-time.After(5 * time.Second)
		reports := b.heard()
		if len(reports) != 1 || reports[0].at != 500*time.Millisecond || reports[0].tenant != "diku" || reports[0].Waiting != 0 {
			t.Fatalf("told %+v, want once, after half a second", reports)
		}
		if i := reports[0].info; i.Token != "new" || i.RequestID != "r-2" || i.UserID != "staff" || !i.Has("p") {
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

func TestAnOutageLosesNothingButTheOldestOfTooMany(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *bench) {
		ctx := inTenant(t, "diku")
		b.script(always(errDown))
		b.Waiting(ctx, 1) // all the time, so that the tenant is not forgotten
		b.lend(ctx, 0, 400)
		<-time.After(time.Minute)
		b.lend(ctx, 400, 700)
		<-time.After(5 * time.Minute)
		tries := b.heard()
		for i := 1; i < len(tries); i++ {
			if pause := tries[i].at - tries[i-1].at; pause > 31*time.Second {
				t.Errorf("a pause of %s, want at most 30 s", pause)
			}
		}
		if len(tries) < 12 || len(tries) > 40 {
			t.Errorf("%d tries in 6 minutes, want growing pauses up to 30 s", len(tries))
		}
		if tries[0].CheckOuts[0].ID != tries[1].CheckOuts[0].ID {
			t.Error("a repeat has another id, so storage would keep it twice")
		}
		b.script(nil)
		<-time.After(31 * time.Second)
		reports := b.heard()
		if !slices.Equal(items(reports), numbered(100, 1000)) || b.dropped != 100 {
			t.Errorf("told of %d check-outs, dropped %d; want the newest 1000", len(items(reports)), b.dropped)
		}
		if ago := reports[0].CheckOuts[0].AgoMs; ago < 6*60_000 || ago > 8*60_000 {
			t.Errorf("the first ended %d ms ago, want what it is when it is sent", ago)
		}
		b.script(always(errDown))
		b.lend(ctx, 0, 1)
		<-time.After(3 * time.Second)
		if n := len(b.heard()); n < 3 {
			t.Errorf("%d tries in the first seconds of the next outage, want short pauses again", n)
		}
		if n := strings.Count(b.log.String(), "\n"); n < 10 || n > 36 {
			t.Errorf("logged %d lines in 6 minutes, want at most one in 10 s", n)
		}
	})
}

func TestCheckOutsThatEndWhileABatchIsOnItsWay(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *bench) {
		ctx := inTenant(t, "diku")
		b.delay = 3 * time.Second
		b.lend(ctx, 0, 10)
		<-time.After(time.Second) // the batch is on its way
		b.lend(ctx, 10, 1000)     // pushes all ten out, but they are told already
		<-time.After(20 * time.Second)
		if got := items(b.heard()); !slices.Equal(got, numbered(0, 1010)) {
			t.Errorf("told of %d check-outs, want each once", len(got))
		}
	})
}

func TestWhatStorageWillNeverTakeIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, code := range []fault.Code{fault.Invalid, fault.Malformed} {
		run(t, func(t *testing.T, b *bench) {
			b.script(always(fault.New(code, "no")))
			b.lend(inTenant(t, "nobody"), 0, 3)
			<-time.After(time.Minute)
			if n := len(b.heard()); n != 1 || b.dropped != 3 || !strings.Contains(b.log.String(), "check_outs=3") {
				t.Errorf("%s: %d tries, dropped %d, logged %s", code, n, b.dropped, b.log.String())
			}
			if n := b.Remembered(); n != 0 {
				t.Errorf("%s: %d tenants are remembered, want none", code, n)
			}
		})
	}
}

func TestAReportThatIsTooLargeIsToldInPieces(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *bench) {
		b.script(func(r told) error {
			if len(r.CheckOuts) > 100 || slices.ContainsFunc(r.CheckOuts, func(c schemas.PastCheckOut) bool { return c.ItemBarcode == "7" }) {
				return fault.New(fault.TooLarge, "no")
			}
			return nil
		})
		b.lend(inTenant(t, "diku"), 0, 300)
		<-time.After(time.Second)
		reports, kept := b.heard(), []told(nil)
		if len(reports) > 30 {
			t.Errorf("%d reports, want halves of halves", len(reports))
		}
		for _, r := range reports {
			if b.answer(r) == nil {
				kept = append(kept, r)
			}
		}
		want := slices.Delete(numbered(0, 300), 7, 8)
		if got := items(kept); !slices.Equal(got, want) || b.dropped != 1 {
			t.Errorf("told of %d check-outs, dropped %d; want all but the one that is too large alone", len(got), b.dropped)
		}
	})
}

func TestTenantsDoNotHinderEachOther(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *bench) {
		b.script(func(r told) error {
			if r.tenant == "broken" {
				return errDown
			}
			return nil
		})
		b.lend(inTenant(t, "broken"), 0, 5)
		<-time.After(time.Minute)
		b.heard()
		b.lend(inTenant(t, "diku"), 10, 5)
		<-time.After(600 * time.Millisecond)
		for _, r := range b.heard() {
			if r.tenant == "diku" && !slices.Equal(items([]told{r}), numbered(10, 5)) || r.tenant == "broken" && items([]told{r})[0] != "0" {
				t.Errorf("%s was told %v", r.tenant, items([]told{r}))
			}
			if r.tenant == "diku" {
				return
			}
		}
		t.Error("the working tenant was not told at once")
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
		r := history.NewRecorder(b, b.drop, slog.New(slog.DiscardHandler))
		if r.Ended(t.Context(), checkout.Ending{}); r.Remembered() != 0 || b.dropped != 1 {
			t.Error("a check-out of no tenant is kept")
		}
	})
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

func TestAReportThatHangsIsTriedAgain(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *bench) {
		b.delay = time.Hour
		b.lend(inTenant(t, "diku"), 0, 2)
		<-time.After(4 * time.Second)
		b.mu.Lock()
		b.delay = 0
		b.mu.Unlock()
		<-time.After(10 * time.Second)
		if got := items(b.heard()); !slices.Equal(got, numbered(0, 2)) || b.dropped != 0 {
			t.Errorf("told of %q, dropped %d", got, b.dropped)
		}
	})
}

func TestWhatIsOlderThanStorageTakesIsGivenUp(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *bench) {
		ctx := inTenant(t, "diku")
		b.script(always(errors.New("down")))
		b.lend(ctx, 0, 1)
		<-time.After(59 * time.Minute)
		b.lend(ctx, 1, 1)
		<-time.After(2 * time.Minute)
		b.script(nil)
		b.heard()
		<-time.After(time.Minute)
		if got := items(b.heard()); !slices.Equal(got, numbered(1, 1)) || b.dropped != 1 {
			t.Errorf("told of %q, dropped %d; want the one of two minutes ago", got, b.dropped)
		}
	})
}
