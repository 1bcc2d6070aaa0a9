package reporter_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestRecorder_KeepsTheNewestEndingsDuringAnOutage(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *harness) {
		ctx := inTenant(t, "diku")
		b.script(always(errDown))
		b.Waiting(ctx, 1) // so that the tenant is never idle
		b.lend(ctx, 0, 400)
		<-time.After(time.Minute)
		b.lend(ctx, 400, 700)
		<-time.After(5 * time.Minute)
		tries := b.takeReports()
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
		reports := b.takeReports()
		if !slices.Equal(items(reports), numbered(100, 1000)) || b.dropped != 100 {
			t.Errorf("reported %d check-outs, dropped %d; want the newest 1000", len(items(reports)), b.dropped)
		}
		if ago := reports[0].CheckOuts[0].AgoMs; ago < 6*60_000 || ago > 8*60_000 {
			t.Errorf("the first ended %d ms ago, want what it is when it is sent", ago)
		}
		b.script(always(errDown))
		b.lend(ctx, 0, 1)
		<-time.After(4 * time.Second) // the longest of the first pauses make the third try after 3 s
		if n := len(b.takeReports()); n < 3 {
			t.Errorf("%d tries in the first seconds of the next outage, want short pauses again", n)
		}
		if n := strings.Count(b.log.String(), "\n"); n < 10 || n > 36 {
			t.Errorf("logged %d lines in 6 minutes, want at most one in 10 s", n)
		}
	})
}

func TestRecorder_ReportsEndingsDuringAReportOnce(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *harness) {
		ctx := inTenant(t, "diku")
		b.delay = 3 * time.Second
		b.lend(ctx, 0, 10)
		<-time.After(time.Second) // the batch is on its way
		b.lend(ctx, 10, 1000)     // pushes all ten out, but storage has them already
		<-time.After(20 * time.Second)
		if got := items(b.takeReports()); !slices.Equal(got, numbered(0, 1010)) {
			t.Errorf("reported %d check-outs, want each once", len(got))
		}
	})
}

func TestRecorder_DropsWhatStorageRefuses(t *testing.T) {
	t.Parallel()
	for code, tt := range map[fault.Code]struct {
		dropped int
		logged  string
	}{
		fault.Invalid:   {dropped: 3, logged: "check_outs=3"},
		fault.Malformed: {dropped: 3, logged: "check_outs=3"},
		// Any client may name a library that is not there. Its history misses nothing.
		fault.UnknownTenant: {dropped: 0, logged: ""},
	} {
		run(t, func(t *testing.T, b *harness) {
			b.script(always(fault.New(code, "no")))
			b.lend(inTenant(t, "unknown"), 0, 3)
			<-time.After(time.Minute)
			if n := len(b.takeReports()); n != 1 || b.dropped != tt.dropped {
				t.Errorf("%s: %d tries, dropped %d, want one and %d", code, n, b.dropped, tt.dropped)
			}
			log := b.log.String()
			if (log == "") != (tt.logged == "") || !strings.Contains(log, tt.logged) {
				t.Errorf("%s: logged %q, want %q", code, log, tt.logged)
			}
			if n := b.Remembered(); n != 0 {
				t.Errorf("%s: %d tenants are remembered, want none", code, n)
			}
		})
	}
}

func TestRecorder_SplitsAReportThatIsTooLarge(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *harness) {
		b.script(func(r sent) error {
			if len(r.CheckOuts) > 100 || slices.ContainsFunc(r.CheckOuts,
				func(c schemas.PastCheckOut) bool { return c.ItemBarcode == "7" }) {
				return fault.New(fault.TooLarge, "no")
			}
			return nil
		})
		b.lend(inTenant(t, "diku"), 0, 300)
		<-time.After(time.Second)
		reports, kept := b.takeReports(), []sent(nil)
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
			t.Errorf("reported %d check-outs, dropped %d; want all but the one that is too large alone", len(got), b.dropped)
		}
	})
}

func TestRecorder_ReportsTenantsIndependently(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *harness) {
		b.script(func(r sent) error {
			if r.tenant == "broken" {
				return errDown
			}
			return nil
		})
		b.lend(inTenant(t, "broken"), 0, 5)
		<-time.After(time.Minute)
		b.takeReports()
		b.lend(inTenant(t, "diku"), 10, 5)
		<-time.After(600 * time.Millisecond)
		for _, r := range b.takeReports() {
			if r.tenant == "diku" && !slices.Equal(items([]sent{r}), numbered(10, 5)) || r.tenant == "broken" &&
				items([]sent{r})[0] != "0" {
				t.Errorf("%s was sent %v", r.tenant, items([]sent{r}))
			}
			if r.tenant == "diku" {
				return
			}
		}
		t.Error("the working tenant got no report at once")
	})
}

func TestRecorder_RepeatsAReportThatHangs(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *harness) {
		b.delay = time.Hour
		b.lend(inTenant(t, "diku"), 0, 2)
		<-time.After(4 * time.Second)
		b.mu.Lock()
		b.delay = 0
		b.mu.Unlock()
		<-time.After(10 * time.Second)
		if got := items(b.takeReports()); !slices.Equal(got, numbered(0, 2)) || b.dropped != 0 {
			t.Errorf("reported %q, dropped %d", got, b.dropped)
		}
	})
}

func TestRecorder_RepeatsAReportAfterAPanic(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *harness) {
		b.script(func(sent) error { panic("a bug") })
		b.lend(inTenant(t, "diku"), 0, 2)
		<-time.After(time.Second)
		b.takeReports()
		b.script(nil)
		<-time.After(10 * time.Second)
		if got := items(b.takeReports()); !slices.Equal(got, numbered(0, 2)) || b.dropped != 0 {
			t.Errorf("reported %q, dropped %d", got, b.dropped)
		}
		if log := b.log.String(); !strings.Contains(log, "a bug") {
			t.Errorf("the log lacks the panic: %s", log)
		}
	})
}

func TestRecorder_DropsOutdatedEndings(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *harness) {
		ctx := inTenant(t, "diku")
		b.script(always(errors.New("down")))
		b.lend(ctx, 0, 1)
		<-time.After(59 * time.Minute)
		b.lend(ctx, 1, 1)
		<-time.After(2 * time.Minute)
		b.script(nil)
		b.takeReports()
		<-time.After(time.Minute)
		if got := items(b.takeReports()); !slices.Equal(got, numbered(1, 1)) || b.dropped != 1 {
			t.Errorf("reported %q, dropped %d; want the one of two minutes ago", got, b.dropped)
		}
	})
}
