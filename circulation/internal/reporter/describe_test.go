package reporter_test

import (
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
)

// A machine may send anything; storage refuses a whole batch for one entry.
func TestRecorder_ReportsOnlyWhatStorageAccepts(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, b *harness) {
		long := strings.Repeat("é", 2000)
		wait := 100 * time.Hour
		call := okapi.Call{Machine: long}
		b.Ended(okapi.NewContext(inTenant(t, "diku"), call), checkout.Ending{
			Outcome: checkout.OutcomeRefused, Code: long, Reason: long + "\x00", UserBarcode: "a\x00b\xffc", ItemBarcode: long,
			UserID: "u", LoanID: "l", ServicePointID: "desk\x00", Wait: &wait, Took: wait,
		})
		b.WaitBegan(inTenant(t, "diku"), checkout.Wait{Began: time.Now().Add(-wait)}) // the process was frozen
		<-time.After(time.Second)
		report := b.takeReports()[0]
		e := report.CheckOuts[0]
		if e.Code != strings.Repeat("é", 255) || e.Reason != strings.Repeat("é", 1000) ||
			e.ItemBarcode != strings.Repeat("é", 255) || e.UserBarcode != "abc" {
			t.Errorf("reported %d, %d, %d and %q", len(e.Code), len(e.Reason), len(e.ItemBarcode), e.UserBarcode)
		}
		if e.Machine != strings.Repeat("é", schemas.MaxMachineName) {
			t.Errorf("reported %d characters of the machine", len(e.Machine)/2)
		}
		if e.UserID+e.LoanID+e.ServicePointID != "" {
			t.Errorf("reported the ids %q, %q, %q", e.UserID, e.LoanID, e.ServicePointID)
		}
		if *e.WaitMs != 3_600_000 || e.TookMs != 3_600_000 {
			t.Errorf("reported a wait of %d and %d ms in all, want an hour", *e.WaitMs, e.TookMs)
		}
		if ms := report.Waits[0].WaitedMs; ms != 3_600_000 {
			t.Errorf("reported that one waits for %d ms, want an hour", ms)
		}
	})
}
