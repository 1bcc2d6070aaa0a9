package reporter_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/reporter"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

var errDown = fault.New(fault.Unavailable, "down")

// sent is one report as storage received it.
type sent struct {
	schemas.CheckOutReport
	at     time.Duration // since the test began
	tenant string
	info   okapi.Call
}

// harness is a recorder with a storage that answers by a script.
type harness struct {
	*reporter.Recorder
	start time.Time
	began int // waits
	over  int // of them
	stop  context.CancelFunc
	ended chan struct{}

	mu      sync.Mutex
	log     strings.Builder
	reports []sent
	answer  func(sent) error // nil accepts every report
	delay   time.Duration    // of each answer
	dropped int
}

// run calls test with a recorder that runs, and stops it afterwards.
func run(t *testing.T, test func(t *testing.T, b *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &harness{start: time.Now(), ended: make(chan struct{})}
		b.Recorder = reporter.NewRecorder(b, "1.0.0", b.drop, slog.New(slog.NewTextHandler(b, nil)))
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

// Waiting begins n waits, or ends the oldest -n. Without any it ends an unknown one.
func (b *harness) Waiting(ctx context.Context, n int) {
	for range n {
		b.began++
		b.WaitBegan(ctx, checkout.Wait{
			AcquisitionID: fmt.Sprint(b.began), UserID: patronID(b.began), ServicePointID: "desk", Began: time.Now(),
		})
	}
	for range -n {
		b.WaitEnded(ctx, checkout.Wait{AcquisitionID: fmt.Sprint(b.over + 1)})
		b.over = min(b.began, b.over+1)
	}
}

// patronID is the id of the patron of the nth wait.
func patronID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// end stops the recorder and waits for it.
func (b *harness) end() {
	b.stop()
	<-b.ended
}

func (b *harness) Report(ctx context.Context, r schemas.CheckOutReport) error {
	b.mu.Lock()
	answer, delay := b.answer, b.delay
	b.mu.Unlock()
	id, _ := okapi.TenantFrom(ctx)
	got := sent{CheckOutReport: r, at: time.Since(b.start), tenant: id.String(), info: okapi.FromContext(ctx)}
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

func (b *harness) drop(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropped += n
}

// Write is the log's.
func (b *harness) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(line)
}

// script changes how storage answers.
func (b *harness) script(answer func(sent) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = answer
}

// takeReports returns the reports since its last call.
func (b *harness) takeReports() []sent {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.reports
	b.reports = nil
	return r
}

func always(err error) func(sent) error { return func(sent) error { return err } }

func inTenant(t *testing.T, name string) context.Context {
	t.Helper()
	id, err := okapi.ParseTenant(name)
	if err != nil {
		t.Fatal(err)
	}
	return okapi.WithTenant(t.Context(), id)
}

// lend ends n check-outs, with the items first, first+1 and so on.
func (b *harness) lend(ctx context.Context, first, n int) {
	for i := range n {
		b.Ended(ctx, checkout.Ending{Outcome: checkout.OutcomeLent, ItemBarcode: fmt.Sprint(first + i)})
	}
}

// items are the barcodes of the check-outs of all reports.
func items(reports []sent) (barcodes []string) {
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
