package events_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/events"
)

// stalling is a sink that returns at the end of ctx if its memory refuses a message, as Kafka's client
// does for a partition without a leader.
type stalling struct{ *memory }

func (s stalling) Send(ctx context.Context, messages []events.Message) []error {
	errs := s.memory.Send(ctx, messages)
	if errors.Join(errs...) != nil {
		<-ctx.Done()
	}
	return errs
}

// Each batch takes the whole time of a turn. The next turn begins anew while the reader receives something,
// and else goes on behind the batch. It sends none of a patron who waits.
func TestDeliverer_GoesOnBehindManyThatFailSlowly(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.brief = 2 * time.Second
	const failing = 450 // more than two batches
	poor, slow, other := uuid.New(), uuid.New(), uuid.New()
	h.add(poor, "before")
	h.add(slow, "1")
	h.add(slow, "2") // for which the first turn has no time
	h.addMany("bad", failing)
	h.add(poor, "behind")
	h.add(slow, "3")
	h.add(other, "other")
	h.sink.refuse = func(n string) bool { return n == "before" || n == "bad" }
	h.start(stalling{h.sink})
	if got := h.await(4); !slices.Equal(got, []string{"1", "2", "3", "other"}) {
		t.Errorf("got %q, want what is not behind another event", got)
	}
	h.sink.set(func() { h.sink.refuse = nil })
	got := slices.DeleteFunc(h.await(failing+6), func(n string) bool { return n == "bad" || n == "other" })
	if slices.Index(got, "before") > slices.Index(got, "behind") {
		t.Errorf("got %q, want each patron's events in order", got)
	}
	got = slices.DeleteFunc(got, func(n string) bool { return n == "before" || n == "behind" })
	if !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("got %q, want each patron's events in order", got)
	}
	h.awaitNone()
}

// One event fails slowly, and its patron's others fill almost a batch. Each turn would send the one row that is
// left of the batch.
func TestDeliverer_GoesOnBehindAPatronWhoseEventFailsSlowly(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.brief = 2 * time.Second
	const behind = 197
	poor, slow := uuid.New(), uuid.New()
	h.add(poor, "0")
	h.add(slow, "slow 1")
	h.exec(`INSERT INTO {schema}.outbox (event_type, topic, record_id, patron_id, new)
		SELECT 'CREATED', 'loan', gen_random_uuid(), $1, jsonb_build_object('n', i::text)
		  FROM generate_series(1, $2) i`, poor, behind)
	h.add(slow, "slow 2") // for which the first turn has no time
	h.add(slow, "slow 3")
	for i := range 5 {
		h.add(uuid.New(), fmt.Sprint("other ", i))
	}
	turns := 0
	h.sink.refuse = func(n string) bool {
		if n == "0" {
			turns++
		}
		return n == "0"
	}
	h.start(stalling{h.sink})
	got := h.await(6)
	h.sink.set(func() {
		if turns != 1 {
			t.Errorf("%q were sent in %d turns, want one", got, turns)
		}
		h.sink.refuse = nil
	})
	h.awaitNone()
	want := []string{"slow 1", "slow 2", "slow 3"}
	for n := range behind + 1 {
		want = append(want, fmt.Sprint(n))
	}
	got = slices.DeleteFunc(h.sink.all(), func(n string) bool { return strings.HasPrefix(n, "other") })
	slices.SortStableFunc(got, func(a, b string) int {
		return cmp.Compare(strings.Count(b, "slow"), strings.Count(a, "slow"))
	})
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want each patron's events in order", got)
	}
}

// slowly is a sink that takes its time for each message, and gives up at the end of ctx, after the first one.
type slowly struct{ *memory }

func (s slowly) Send(ctx context.Context, messages []events.Message) []error {
	errs := make([]error, len(messages))
	for i := range messages {
		<-time.After(50 * time.Millisecond)
		if errs[i] = ctx.Err(); i == 0 || errs[i] == nil {
			errs[i] = s.memory.Send(ctx, messages[i:i+1])[0]
		}
	}
	return errs
}

// A slow reader gets all events, batch after batch, and is not taken for one that is away.
func TestDeliverer_GoesOnWithASlowReader(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.brief = 2 * time.Second
	const count = 50 // they take longer than the time for a batch
	for n := range count {
		h.add(uuid.New(), fmt.Sprint(n))
	}
	h.start(slowly{h.sink})
	h.awaitNone()
	if got := h.sink.all(); len(got) != count || h.sink.pings > 0 {
		t.Errorf("got %d events and %d pings, want %d and none", len(got), h.sink.pings, count)
	}
}
