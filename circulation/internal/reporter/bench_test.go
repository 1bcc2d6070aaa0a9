package reporter_test

import (
	"context"
	"log/slog"
	"testing"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/reporter"
	"checkoutlock/schemas/okapi"
)

// BenchmarkCheckOut measures the cost of the history for a check-out: two calls about waiting
// and the ending. Storage is unreachable, so the backlog is full.
func BenchmarkCheckOut(b *testing.B) {
	id, err := okapi.ParseTenant("diku")
	if err != nil {
		b.Fatal(err)
	}
	ctx := okapi.WithTenant(context.Background(), id)
	r := reporter.NewRecorder(nil, "1.0.0", func(int) {}, slog.New(slog.DiscardHandler))
	e := checkout.Ending{Outcome: checkout.OutcomeLent, UserBarcode: "ann", ItemBarcode: "book"}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r.WaitBegan(ctx, checkout.Wait{AcquisitionID: "a"})
			r.WaitEnded(ctx, checkout.Wait{AcquisitionID: "a"})
			r.Ended(ctx, e)
		}
	})
}
