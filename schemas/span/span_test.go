package span_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"checkoutlock/schemas/span"
)

func TestStart_CostsNothingWithoutATrace(t *testing.T) {
	ctx, header := context.WithValue(t.Context(), http.NoBody, "any"), http.Header{}
	var err error
	allocated := testing.AllocsPerRun(100, func() {
		inner, end := span.Start(ctx, "wait for the lock")
		span.Inject(inner, header)
		end(&err)
	})
	span.Add(ctx, "INSERT loan", time.Now(), err)
	if allocated > 0 || len(header) > 0 || span.IsRecorded(ctx) {
		t.Errorf("got %v allocations and the headers %v, want none", allocated, header)
	}
}
