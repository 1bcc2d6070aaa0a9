package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// orderQueue sends an order of requests that were at the positions of saw. It may be called from any
// goroutine.
func (l harness) orderQueue(of string, requests []request, saw ...int) (schemas.OrderedQueue, error) {
	return l.commits.OrderQueue(l.ctx(), l.parseOrder(of, requests, saw...))
}

// parseOrder returns an order without an id.
func (l harness) parseOrder(of string, requests []request, saw ...int) commit.QueueOrder {
	var places []string
	for i, r := range requests {
		places = append(places, fmt.Sprintf(`{"id":%q,"position":%d,"newPosition":%d}`, r.id, saw[i], i+1))
	}
	o, err := commit.ParseQueueOrder(fmt.Appendf(nil, `{%s,"reorderedQueue":[%s]}`, of, strings.Join(places, ",")))
	if err != nil {
		l.t.Error(err)
	}
	return o
}

func TestOrderQueue(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(t *testing.T, l harness, titles bool) {
		of := l.addTitle(1)
		queue := l.queue(of, of.copies[0], uuid.New(), uuid.New(), uuid.New())
		which := fmt.Sprintf(`"itemId":%q`, of.copies[0])
		if titles {
			which = fmt.Sprintf(`"instanceId":%q`, of.instance)
		}
		turned := []request{queue[2], queue[0], queue[1]}
		for range 2 { // the second time is a repeat
			got, err := l.orderQueue(which, turned, 3, 1, 2)
			if err != nil || len(got.Requests) != 3 || field(t, got.Requests[0], "id") != queue[2].id.String() ||
				field(t, got.Requests[2], "position") != 3.0 {
				t.Fatalf("got %s, %v", got.Requests, err)
			}
			l.wantStates(queue, notYet+"2", notYet+"3", notYet+"1")
		}
		if _, err := l.orderQueue(which, queue, 1, 2, 3); !fault.Is(err, fault.RequestChanged) {
			t.Errorf("an order of what was read before: got %v", err)
		}
		l.wantStates(queue, notYet+"2", notYet+"3", notYet+"1")
	})
}

// The answer to an order is lost, and others order the queue before the order is sent again. Both saw
// the same positions as stored.
func TestOrderQueue_RepeatedAfterAnotherOrder(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(t *testing.T, l harness, titles bool) {
		of := l.addTitle(1)
		queue := l.queue(of, of.copies[0], uuid.New(), uuid.New())
		which := fmt.Sprintf(`"itemId":%q`, of.copies[0])
		if titles {
			which = fmt.Sprintf(`"instanceId":%q`, of.instance)
		}
		o, back := l.parseOrder(which, []request{queue[1], queue[0]}, 2, 1), l.parseOrder(which, queue, 2, 1)
		o.ID, back.ID = uuid.New(), uuid.New()
		send := func(o commit.QueueOrder, first request) {
			t.Helper()
			got, err := l.commits.OrderQueue(l.ctx(), o)
			if err != nil || len(got.Requests) != 2 || field(t, got.Requests[0], "id") != first.id.String() {
				t.Fatalf("got %s, %v, want %s first", got.Requests, err, first.id)
			}
		}
		send(o, queue[1])
		send(back, queue[0])
		send(o, queue[0])
		l.wantStates(queue, notYet+"1", notYet+"2")
		for _, r := range queue {
			if err := l.cancel(r, titles); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := l.commits.OrderQueue(l.ctx(), o); !fault.Is(err, fault.NotFound) {
			t.Errorf("of an empty queue: got %s, %v, want %s", got.Requests, err, fault.NotFound)
		}
	})
}

// Librarians read the same queue and order it at once, each in another way. One of them wins.
func TestOrderQueue_OneOfManyOrdersWins(t *testing.T) {
	t.Parallel()
	l := newHarness(t).withoutDeadlocks()
	orders := [][]int{{1, 0, 2}, {2, 1, 0}, {0, 2, 1}, {1, 2, 0}, {2, 0, 1}}
	for range 10 {
		of := l.addTitle(1)
		queue := l.queue(of, of.copies[0], uuid.New(), uuid.New(), uuid.New())
		got := race(len(orders), func(i int) error {
			o := orders[i]
			_, err := l.orderQueue(fmt.Sprintf(`"itemId":%q`, of.copies[0]), []request{queue[o[0]], queue[o[1]], queue[o[2]]},
				o[0]+1, o[1]+1, o[2]+1)
			return err
		})
		if got[""] != 1 || got[fault.RequestChanged] != len(orders)-1 {
			t.Errorf("got %v, want one winner", got)
		}
		l.wantNoGaps(of, false)
	}
}

// A queue is ordered while its first patron borrows the item and others join it. No request loses
// its place.
func TestOrderQueue_BesideOtherCommits(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(t *testing.T, l harness, titles bool) {
		l = l.withoutDeadlocks()
		for range 8 {
			of, patron := l.addTitle(1), uuid.New()
			queue := l.queue(of, of.copies[0], patron, uuid.New(), uuid.New())
			which := fmt.Sprintf(`"itemId":%q`, of.copies[0])
			if titles {
				which = fmt.Sprintf(`"instanceId":%q`, of.instance)
			}
			c := l.withLock(patron, of.copies[0])
			c.request, c.titles = queue[0].id, titles
			got := race(4, func(i int) error {
				switch i {
				case 0:
					_, _, err := l.send(c)
					return err
				case 1:
					_, err := l.place(request{
						id: uuid.New(), by: uuid.New(), of: of, item: of.copies[0], position: 1,
					}, "Hold", titles)
					return err
				case 2:
					return l.cancel(queue[2], titles)
				default:
					_, err := l.orderQueue(which, []request{queue[0], queue[2], queue[1]}, 1, 3, 2)
					return err
				}
			})
			wantOnly(t, got, fault.Invalid, fault.ItemChanged, fault.RequestChanged)
			l.wantNoGaps(of, titles)
			l.wantStates(queue[:1], filled)
		}
	})
}

// VACUUM and ANALYZE hold this lock for as long as they work on a table.
func TestRequests_DoNotWaitForVacuum(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(t *testing.T, l harness, titles bool) {
		of := l.addTitle(2)
		queue := l.queue(of, of.copies[0], uuid.New(), uuid.New())
		which := fmt.Sprintf(`"itemId":%q`, of.copies[0])
		if titles {
			which = fmt.Sprintf(`"instanceId":%q`, of.instance)
		}
		l.begin(`LOCK TABLE {schema}.circulation_settings IN SHARE UPDATE EXCLUSIVE MODE`)
		l.begin(`LOCK TABLE {schema}.title_setting_fence IN SHARE UPDATE EXCLUSIVE MODE`)
		if _, err := l.orderQueue(which, []request{queue[1], queue[0]}, 2, 1); err != nil {
			t.Errorf("an order: %v", err)
		}
		added := request{id: uuid.New(), by: uuid.New(), of: of, item: of.copies[1], position: 1}
		if _, err := l.place(added, "Hold", titles); err != nil {
			t.Errorf("a new request: %v", err)
		}
		if _, err := l.move(queue[1], of.copies[1], "Hold", titles); err != nil {
			t.Errorf("a move: %v", err)
		}
		if err := l.cancel(queue[0], titles); err != nil {
			t.Errorf("a cancellation: %v", err)
		}
		if _, err := l.commits.ExpireRequests(l.ctx(), 500); err != nil {
			t.Errorf("the end of expired requests: %v", err)
		}
	})
}

// A build of an earlier version shares the settings' table.
func TestRequests_FencedForCommitsOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	commit := l.begin(`LOCK TABLE {schema}.circulation_settings IN SHARE MODE`)
	done := make(chan error, 1)
	go func() {
		_, err := l.db.Pool().Exec(l.ctx(), l.sql(setTitlesSQL), true)
		done <- err
	}()
	l.waitUntilBlocked(1)
	if err := commit.Commit(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Each commit of requests waits for a change of the setting, and is refused if it judged another queue.
func TestRequests_JudgedBeforeTitlesWereTurnedOnOrOff(t *testing.T) {
	t.Parallel()
	for name, titles := range map[string]bool{"turned on": false, "turned off": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHarness(t)
			l.setTitles(titles)
			of := l.addTitle(2)
			queue := l.queue(of, of.copies[0], uuid.New(), uuid.New())
			which := fmt.Sprintf(`"itemId":%q`, of.copies[0])
			if titles {
				which = fmt.Sprintf(`"instanceId":%q`, of.instance)
			}
			change := l.begin(`DELETE FROM {schema}.circulation_settings`)
			if _, err := change.Exec(l.ctx(), l.sql(setTitlesSQL), !titles); err != nil {
				t.Fatal(err)
			}
			commits := []func() error{
				func() error { _, err := l.orderQueue(which, []request{queue[1], queue[0]}, 2, 1); return err },
				func() error {
					_, err := l.place(request{id: uuid.New(), by: uuid.New(), of: of, item: of.copies[1], position: 1}, "Hold", titles)
					return err
				},
				func() error { _, err := l.move(queue[1], of.copies[1], "Hold", titles); return err },
				func() error { return l.cancel(queue[0], titles) },
			}
			done := make(chan error, len(commits))
			for _, commit := range commits {
				go func() { done <- commit() }()
			}
			l.waitUntilBlocked(len(commits))
			if err := change.Commit(l.ctx()); err != nil {
				t.Fatal(err)
			}
			for range commits {
				if err := <-done; !fault.Is(err, fault.RequestChanged) {
					t.Errorf("got %v, want %s", err, fault.RequestChanged)
				}
			}
			l.wantStates(queue, notYet+"1", notYet+"2")
		})
	}
}
