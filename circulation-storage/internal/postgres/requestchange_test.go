package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas/fault"
)

// changeRequest sends a change; old and new replace a part of the request's JSON. It may be called
// from any goroutine.
func (l harness) changeRequest(r request, more, old, replacement string) error {
	c, err := commit.ParseRequestChange(fmt.Appendf(nil, `{"request":%s%s}`, strings.Replace(r.doc(), old, replacement, 1),
		more))
	if err != nil {
		l.t.Error(err)
	}
	return l.commits.ChangeRequest(l.ctx(), c)
}

func (l harness) cancel(r request, titles bool) error {
	return l.changeRequest(r, fmt.Sprintf(`,"titleLevelRequests":%t`, titles), `"Open - Not yet filled"`,
		`"Closed - Cancelled"`)
}

// wantNoGaps checks that the open requests of a title, or of each of its copies, have the positions
// 1, 2, ….
func (l harness) wantNoGaps(of title, titles bool) {
	l.t.Helper()
	partition := "item_id"
	if titles {
		partition = "instance_id"
	}
	if n := l.count(`SELECT count(*) FROM (SELECT position, row_number() OVER (PARTITION BY `+partition+
		` ORDER BY position) n
		FROM {schema}.request WHERE instance_id = $1 AND is_open) q WHERE position IS DISTINCT FROM n`, of.instance); n != 0 {
		l.t.Errorf("%d requests are at a wrong position", n)
	}
}

func (l harness) status(item uuid.UUID) (status string) {
	l.t.Helper()
	if err := l.db.Pool().QueryRow(l.ctx(), l.sql(`SELECT jsonb->'status'->>'name' FROM {schema}.item WHERE id = $1`),
		item).Scan(&status); err != nil {
		l.t.Fatal(err)
	}
	return status
}

func TestChangeRequest_CancelsAndMovesTheQueueUp(t *testing.T) {
	t.Parallel()
	const cancelled = "Closed - Cancelled"
	eachLevel(t, func(t *testing.T, l harness, titles bool) {
		of := l.addTitle(2)
		item := of.copies[0]
		if _, err := l.place(request{
			id: uuid.New(), by: uuid.New(), of: of, item: item, position: 1,
		}, "Page", titles); err != nil {
			t.Fatal(err)
		}
		l.exec(`DELETE FROM {schema}.request`)
		queue := l.queue(of, item, uuid.New(), uuid.New(), uuid.New())
		other := request{id: uuid.New(), by: uuid.New(), of: of, item: of.copies[1], position: 4}
		l.exec(`INSERT INTO {schema}.request (id, jsonb) VALUES ($1, $2)`, other.id, other.doc())
		if err := l.changeRequest(queue[2], fmt.Sprintf(`,"titleLevelRequests":%t`, titles), `"future"`,
			`"patronComments":"soon","future"`); err != nil {
			t.Fatal(err)
		}
		if err := l.cancel(queue[0], titles); err != nil {
			t.Fatal(err)
		}
		l.wantStates(queue, cancelled, notYet+"1", notYet+"2")
		if titles { // the copies share the queue
			l.wantStates([]request{other}, notYet+"3")
		}
		l.exec(`DELETE FROM {schema}.request WHERE id = $1`, other.id)
		if err := l.cancel(queue[0], titles); err != nil {
			t.Errorf("the same again: got %v", err)
		}
		if err := l.changeRequest(queue[0], "", notYet[:len(notYet)-1], "Closed - Unfilled"); !fault.Is(err,
			fault.Invalid) || !strings.Contains(err.Error(), "already been closed") {
			t.Errorf("another end: got %v", err)
		}
		if n := l.count(`SELECT count(*) FROM {schema}.request WHERE jsonb->>'patronComments' = 'soon'`); n != 1 {
			t.Error("the edit is lost")
		}
		if got := l.status(item); got != "Paged" {
			t.Errorf("the item is %s while others wait for it", got)
		}
		if err := l.changeRequest(queue[1], fmt.Sprintf(`,"delete":true,"titleLevelRequests":%t`, titles), "",
			""); err != nil {
			t.Fatal(err)
		}
		l.wantStates(queue[2:], notYet+"1")
		if err := l.cancel(queue[2], titles); err != nil || l.status(item) != "Available" {
			t.Errorf("the last one: %v, the item is %s", err, l.status(item))
		}
		if n := l.count(`SELECT count(*) FROM {schema}.request WHERE id = $1`, queue[1].id); n != 0 {
			t.Error("the deleted request is there")
		}
	})
}

// Requests are cancelled, deleted and placed at once, while the first patron borrows the item. Each
// call succeeds or is refused, and the rest of the queue keeps its order.
func TestChangeRequest_BesideOtherCommits(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(t *testing.T, l harness, titles bool) {
		for range 5 {
			of, patron := l.addTitle(1), uuid.New()
			item := of.copies[0]
			queue := l.queue(of, item, patron, uuid.New(), uuid.New(), uuid.New(), uuid.New())
			c := l.withLock(patron, item)
			c.request, c.titles = queue[0].id, titles
			got := race(6, func(i int) error {
				switch i {
				case 0:
					_, _, err := l.send(c)
					return err
				case 1:
					_, err := l.place(request{id: uuid.New(), by: uuid.New(), of: of, item: item, position: 1}, "Hold", titles)
					return err
				case 2:
					return l.changeRequest(queue[2], fmt.Sprintf(`,"delete":true,"titleLevelRequests":%t`, titles), "", "")
				default:
					return l.changeRequest(queue[3], fmt.Sprintf(`,"titleLevelRequests":%t`, titles), // one of three
						`"Open - Not yet filled"`, fmt.Sprintf(`"Closed - Cancelled","cancelledByUserId":%q`, uuid.New()))
				}
			})
			// The new request judges the item before or after it is lent.
			if got[""] < 3 || got[fault.Invalid] != 2 || got[""]+got[fault.Invalid]+got[fault.ItemChanged] != 6 {
				t.Errorf("got %v, want one of three cancellations and all else", got)
			}
			l.wantNoGaps(of, titles)
			l.wantStates(queue[:2], filled, notYet+"1")
			l.wantStates(queue[3:], "Closed - Cancelled", notYet+"2")
		}
	})
}

// A cancellation and the check-in that sets the item aside for the request come at once. The request
// ends as cancelled, and never open again.
func TestChangeRequest_BesideACheckInOfTheItem(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	for range rivals {
		of := l.addTitle(1)
		queue := l.queue(of, of.copies[0], uuid.New(), uuid.New())
		got := race(2, func(i int) error {
			if i == 0 {
				return l.cancel(queue[0], false)
			}
			in, err := commit.ParseCheckIn(fmt.Appendf(nil, `{"id":%q,"itemId":%q,"servicePointId":%q,
				"checkInDate":"2026-03-10T00:00:00Z","itemVersion":1,
				"itemStatus":"Awaiting pickup","requestId":%q,
				"requestStatus":"Open - Awaiting pickup"}`, uuid.New(), of.copies[0], uuid.New(), queue[0].id))
			if err != nil {
				t.Error(err)
			}
			_, err = l.commits.CheckIn(l.ctx(), in)
			return err
		})
		if got[""]+got[fault.RequestChanged] != 2 {
			t.Errorf("got %v", got)
		}
		l.wantStates(queue, "Closed - Cancelled", notYet+"1")
	}
}

// Each request that is placed, changed, deleted or closed as expired has an event, and a repeat none.
func TestRequests_HaveEvents(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.recordEvents()
	of := l.addTitle(1)
	r := request{id: uuid.New(), by: uuid.New(), of: of, item: of.copies[0], position: 1}
	want := func(what string, events ...string) {
		t.Helper()
		var got []string
		if err := l.db.Pool().QueryRow(l.ctx(), l.sql(`SELECT
			coalesce(array_agg(event_type || ' ' || (coalesce(new, old)->>'status') || ' ' ||
				(coalesce(new, old)->>'itemId' = $1::text) ORDER BY id), '{}')
			FROM {schema}.outbox
			WHERE topic = 'request' AND record_id = $2::uuid AND
				(patron_id = (coalesce(new, old)->>'requesterId')::uuid) AND
				(old IS NULL) = (event_type = 'CREATED') AND (new IS NULL) = (event_type = 'DELETED')`),
			r.item.String(), r.id.String()).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, events) {
			t.Errorf("%s: got %q, want %q", what, got, events)
		}
		l.exec(`DELETE FROM {schema}.outbox`)
	}
	queued := l.queue(of, of.copies[0], uuid.New())
	for range 2 {
		if _, err := l.place(r, "Hold", false); err != nil {
			t.Fatal(err)
		}
	}
	want("placed", "CREATED Open - Not yet filled true")
	if err := l.cancel(queued[0], false); err != nil {
		t.Fatal(err)
	}
	want("moved up", "UPDATED Open - Not yet filled true")
	l.expire(r, "Open - Not yet filled", -1)
	l.expireAll(1)
	want("expired", "UPDATED Open - Not yet filled true", "UPDATED Closed - Unfilled true")
	if err := l.changeRequest(r, `,"delete":true`, "", ""); err != nil {
		t.Fatal(err)
	}
	want("deleted", "DELETED Closed - Unfilled true")
	r.id = uuid.New()
	if _, err := l.place(r, "Hold", false); err != nil {
		t.Fatal(err)
	}
	if err := l.changeRequest(r, `,"delete":true`, "", ""); err != nil {
		t.Fatal(err)
	}
	want("deleted while it was open", "CREATED Open - Not yet filled true",
		"DELETED Open - Not yet filled true")
}

// The instance and the item of a closed request may be gone, so that no row of them is locked.
func TestRequests_DeletedAtOnceHaveOneEvent(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.recordEvents()
	r := request{id: uuid.New(), by: uuid.New(), of: title{instance: uuid.New()}}
	l.exec(`INSERT INTO {schema}.request (id, jsonb) VALUES ($1, $2)`, r.id,
		strings.Replace(r.doc(), "Open - Not yet filled", "Closed - Cancelled", 1))
	held := l.begin(`SELECT FROM {schema}.request WHERE id = $1 FOR UPDATE`, r.id)
	done := make(chan error, 2)
	for range cap(done) {
		go func() { done <- l.changeRequest(r, `,"delete":true`, "", "") }()
	}
	l.waitUntilBlocked(cap(done))
	if err := held.Rollback(l.ctx()); err != nil {
		t.Fatal(err)
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := l.count(`SELECT count(*) FROM {schema}.outbox WHERE record_id = $1 AND event_type = 'DELETED'`, r.id); n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
}

// A change that is sent again changes nothing, also after others changed the request.
func TestChangeRequest_OnceForEachID(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	of := l.addTitle(1)
	queue := l.queue(of, of.copies[0], uuid.New(), uuid.New())
	edit := func(id uuid.UUID, r request, comment string) error {
		return l.changeRequest(r, fmt.Sprintf(`,"id":%q`, id), `"future"`, `"patronComments":"`+comment+`","future"`)
	}
	first := uuid.New()
	for _, change := range []error{
		edit(first, queue[0], "first"), edit(uuid.New(), queue[0], "second"), edit(first, queue[0], "first"),
	} {
		if change != nil {
			t.Fatal(change)
		}
	}
	if n := l.count(`SELECT count(*) FROM {schema}.request WHERE jsonb->>'patronComments' = 'second'`); n != 1 {
		t.Error("the repeat replaced a later edit")
	}
	if err := edit(first, queue[1], "x"); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), "change of another request") {
		t.Errorf("another request with the id: got %v", err)
	}
	id := uuid.New()
	if got := race(rivals, func(int) error {
		return l.changeRequest(queue[0], fmt.Sprintf(`,"id":%q,"delete":true`, id),
			"", "")
	}); got[""] != rivals {
		t.Errorf("one deletion sent %d times: got %v, want success each time", rivals, got)
	}
	l.wantStates(queue[1:], notYet+"1")
	if err := l.changeRequest(queue[0], `,"delete":true`, "", ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("another deletion: got %v", err)
	}
}

// Nothing locks a request without an instance and an item. Its deletions meet at the id of the change.
func TestChangeRequest_DeletesARequestForNothing(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	r := request{id: uuid.New(), by: uuid.New()}
	l.exec(`INSERT INTO {schema}.request (id, jsonb) VALUES ($1::uuid, jsonb_build_object('id', $1::text, 'status', `+
		`'Open - Not yet filled'))`, r.id)
	id := uuid.New()
	got := race(rivals, func(int) error {
		c, err := commit.ParseRequestChange(fmt.Appendf(nil,
			`{"id":%q,"request":{"id":%q},"titleLevelRequests":true,"delete":true}`, id, r.id))
		if err != nil {
			return err
		}
		return l.commits.ChangeRequest(l.ctx(), c)
	})
	if got[""] != rivals {
		t.Errorf("got %v, want success each time", got)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.request`); n != 0 {
		t.Error("the request is there")
	}
}
