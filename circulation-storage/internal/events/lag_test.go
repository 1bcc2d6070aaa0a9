package events_test

import (
	"context"
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/events"
)

// lastMoment is a sink that receives its messages at the end of their time.
type lastMoment struct{ *memory }

func (l lastMoment) Send(ctx context.Context, messages []events.Message) []error {
	<-ctx.Done()
	return l.memory.Send(ctx, messages)
}

// A turn whose time ends between two batches has not read all events, though the reader got all that it read.
func TestDeliverer_LagOfEventsThatATurnDidNotReach(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.brief = time.Second
	h.addMany("old", 201) // more than a batch
	h.exec(`UPDATE {schema}.outbox SET creation_date = now() - interval '1 hour'`)
	h.start(lastMoment{h.sink})
	h.awaitNone()
	h.sink.set(func() {
		if first := h.sink.lags[0]; first < time.Hour {
			t.Errorf("the lag was %s while an event of an hour ago waited", first)
		}
	})
}
