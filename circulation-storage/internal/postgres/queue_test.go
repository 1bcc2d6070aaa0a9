package postgres_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// title is an instance with copies.
type title struct {
	instance, holdings uuid.UUID
	copies             []uuid.UUID
}

// addTitle stores an instance with available copies, each at version 1.
func (l harness) addTitle(copies int) title {
	l.t.Helper()
	v := title{instance: uuid.New(), holdings: uuid.New()}
	l.exec(`INSERT INTO {schema}.instance (id, jsonb) VALUES ($1::uuid, jsonb_build_object('id', $1::uuid))`, v.instance)
	l.exec(`INSERT INTO {schema}.holdings_record (id, jsonb)
		VALUES ($1::uuid, jsonb_build_object('id', $1::uuid, 'instanceId', $2::uuid))`, v.holdings, v.instance)
	for range copies {
		v.copies = append(v.copies, l.addItem("Available", fmt.Sprintf(`,"holdingsRecordId":%q`, v.holdings)))
	}
	return v
}

// request is an open request to store.
type request struct {
	id, by   uuid.UUID
	of       title
	item     uuid.UUID // Nil is a request for the title
	position int
}

func (r request) doc() string {
	level, item := "Title", ""
	if r.item != uuid.Nil {
		level, item = "Item", fmt.Sprintf(`"itemId":%q,"holdingsRecordId":%q,`, r.item, r.of.holdings)
	}
	return fmt.Sprintf(`{"id":%q,"instanceId":%q,"requesterId":%q,"requestLevel":%q,%s"requestType":"Hold","position":%d,
		"requestDate":"2026-01-01T00:00:00Z","fulfillmentPreference":"Hold Shelf","status":"Open - Not yet filled",
		"future":{"a":1.50}}`,
		r.id, r.of.instance, r.by, level, item, r.position)
}

// queue stores requests for an item, or with the Nil item for the title, one by
// each patron, at the positions 1, 2, ….
func (l harness) queue(of title, item uuid.UUID, patrons ...uuid.UUID) []request {
	l.t.Helper()
	requests := make([]request, len(patrons))
	for i, by := range patrons {
		requests[i] = request{id: uuid.New(), by: by, of: of, item: item, position: i + 1}
		l.exec(`INSERT INTO {schema}.request (id, jsonb) VALUES ($1, $2)`, requests[i].id, requests[i].doc())
	}
	return requests
}

// waiting is a request's status and position as stored, "Open - Not yet filled 2".
func (l harness) waiting(r request) (state string) {
	l.t.Helper()
	err := l.db.Pool().QueryRow(l.ctx(),
		l.sql(`SELECT concat_ws(' ', jsonb->>'status', jsonb->>'position') FROM {schema}.request WHERE id = $1`),
		r.id).Scan(&state)
	if err != nil {
		l.t.Fatal(err)
	}
	return state
}

func (l harness) wantStates(requests []request, want ...string) {
	l.t.Helper()
	for i, r := range requests {
		if got := l.waiting(r); got != want[i] {
			l.t.Errorf("request %d: got %q, want %q", i+1, got, want[i])
		}
	}
}

const (
	notYet = "Open - Not yet filled "
	filled = "Closed - Filled"
)

func TestCheckOut_FillsTheBorrowersRequest(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(t *testing.T, l harness, titles bool) {
		of := l.addTitle(1)
		wished := of.copies[0]
		if titles {
			wished = uuid.Nil
		}
		patron := uuid.New()
		queue := l.queue(of, wished, patron, uuid.New(), uuid.New())
		c := l.withLock(patron, of.copies[0])
		c.request, c.titles, c.session = queue[0].id, titles, uuid.New()
		l.lend(c)
		l.wantStates(queue, filled, notYet+"1", notYet+"2")
		if n := l.count(`SELECT count(*) FROM {schema}.request WHERE item_id = $1 AND id = $2 AND jsonb->'future'->>'a' = `+
			`'1.50'`, of.copies[0], queue[0].id); n != 1 {
			t.Error("the request does not name the item that filled it, or lost an unknown property")
		}
		if n := l.count(`SELECT count(*) FROM {schema}.patron_action_session WHERE patron_id = $1 AND loan_id = $2
			AND jsonb->>'actionType' = 'Check-out' AND jsonb->>'sessionId' = $3::text
			AND jsonb->>'id' = id::text`, patron, c.loan, c.session.String()); n != 1 {
			t.Errorf("got %d sessions, want 1", n)
		}
		if _, outcome, err := l.send(c); err != nil || outcome != commit.Repeated {
			t.Errorf("the same again: got %s, %v, want %s", outcome, err, commit.Repeated)
		}
		l.wantStates(queue, filled, notYet+"1", notYet+"2")
	})
}

func TestCheckOut_OfARequestedItemIsRefused(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	patron, other := uuid.New(), uuid.New()
	tests := map[string]struct {
		waiting []uuid.UUID // patrons, in order
		names   int         // which of their requests the check-out names, from 1; 0 is none, -1 one that is not there
		ends    string      // the status that the first request gets before, "" for none
	}{
		"another patron waits":          {waiting: []uuid.UUID{other}, names: 0, ends: ""},
		"the borrower waits, not named": {waiting: []uuid.UUID{patron}, names: 0, ends: ""},
		"another patron's request":      {waiting: []uuid.UUID{other}, names: 1, ends: ""},
		"not first":                     {waiting: []uuid.UUID{other, patron}, names: 2, ends: ""},
		"cancelled":                     {waiting: []uuid.UUID{patron}, names: 1, ends: "Closed - Cancelled"},
		"not there":                     {waiting: nil, names: -1, ends: ""},
	}
	for name, tt := range tests {
		of := l.addTitle(1)
		item := of.copies[0]
		queue := l.queue(of, item, tt.waiting...)
		c := lending{loan: uuid.New(), user: patron, item: item, lock: l.lock(patron), version: 1}
		switch {
		case tt.names < 0:
			c.request = uuid.New()
		case tt.names > 0:
			c.request = queue[tt.names-1].id
		}
		if tt.ends != "" {
			l.exec(`UPDATE {schema}.request SET jsonb = jsonb || jsonb_build_object('status', $2::text) WHERE id = $1`,
				queue[0].id, tt.ends)
		}
		var before []string
		for _, r := range queue {
			before = append(before, l.waiting(r))
		}
		if _, _, err := l.send(c); !fault.Is(err, fault.RequestChanged) {
			t.Errorf("%s: got %v, want %s", name, err, fault.RequestChanged)
		}
		l.wantUntouched(item)
		l.wantStates(queue, before...)
		if n := l.count(`SELECT count(*) FROM {schema}.patron_action_session WHERE loan_id = $1`, c.loan); n != 0 {
			t.Errorf("%s: a session was written", name)
		}
		if err := l.release(c.lock); err != nil {
			t.Fatal(err)
		}
	}
}

func (l harness) release(lock uuid.UUID) error {
	_, err := l.locks.Release(l.ctx(), lock)
	return err
}

// A write that fails at the very end leaves the queue as it was.
func TestCheckOut_FailureLeavesTheQueue(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	of, patron := l.addTitle(1), uuid.New()
	queue := l.queue(of, of.copies[0], patron, uuid.New())
	l.exec(`ALTER TABLE {schema}.outbox ADD CONSTRAINT refused CHECK (event_type <> 'ITEM_CHECKED_OUT')`)
	c := l.withLock(patron, of.copies[0])
	c.request = queue[0].id
	if _, _, err := l.send(c); !fault.Is(err, fault.Internal) {
		t.Errorf("got %v, want %s", err, fault.Internal)
	}
	l.wantUntouched(of.copies[0])
	l.wantStates(queue, notYet+"1", notYet+"2")
	if n := l.count(`SELECT count(*) FROM {schema}.patron_action_session`); n != 0 {
		t.Errorf("got %d sessions, want none", n)
	}
}

func TestCheckIn_ServesTheFirstRequest(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	of := l.addTitle(2)
	item := of.copies[0]
	lent := l.withLock(uuid.New(), item)
	l.lend(lent)
	forOther := request{id: uuid.New(), by: uuid.New(), of: of, item: of.copies[1], position: 1}
	forTitle := request{id: uuid.New(), by: uuid.New(), of: of, position: 2}
	for _, r := range []request{forOther, forTitle} {
		l.exec(`INSERT INTO {schema}.request (id, jsonb) VALUES ($1, $2)`, r.id, r.doc())
	}
	body := func(more string) []byte {
		return fmt.Appendf(nil, `{"itemId":%q,"servicePointId":%q,"checkInDate":"2026-03-10T00:00:00Z","itemVersion":2,
			"itemStatus":"Awaiting pickup","titleLevelRequests":true%s}`, item, uuid.New(), more)
	}
	checkIn := func(more string) error {
		parsed, err := commit.ParseCheckIn(body(more))
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.commits.CheckIn(l.ctx(), parsed)
		return err
	}
	if err := checkIn(""); !fault.Is(err, fault.RequestChanged) {
		t.Errorf("no request named: got %v, want %s", err, fault.RequestChanged)
	}
	const serve = `,"requestId":%q,"requestStatus":"Open - Awaiting pickup",` +
		`"holdShelfExpirationDate":"2026-03-20T00:00:00Z"`
	if err := checkIn(fmt.Sprintf(serve, forOther.id)); !fault.Is(err, fault.RequestChanged) {
		t.Errorf("a request for another copy: got %v, want %s", err, fault.RequestChanged)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.loan WHERE is_open`); n != 1 {
		t.Fatal("a refused check-in closed the loan")
	}
	if err := checkIn(fmt.Sprintf(serve, forTitle.id)); err != nil {
		t.Fatal(err)
	}
	l.wantStates([]request{forTitle, forOther}, "Open - Awaiting pickup 1", notYet+"2")
	if n := l.count(`SELECT count(*) FROM {schema}.request WHERE id = $1 AND item_id = $2 AND `+
		`jsonb->>'holdShelfExpirationDate' = '2026-03-20T00:00:00Z'`, forTitle.id, item); n != 1 {
		t.Error("the request does not say which item waits and until when")
	}
	if n := l.count(`SELECT count(*) FROM {schema}.patron_action_session WHERE loan_id = $1 AND jsonb->>'actionType' = `+
		`'Check-in'`, lent.loan); n != 1 {
		t.Errorf("got %d sessions, want 1", n)
	}
}

// A request that was copied from FOLIO's tables breaks a rule of new requests. It keeps no others waiting.
func TestQueue_WithARequestThatBreaksALaterRule(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(harness, []request) error{
		"another one is cancelled": func(l harness, queue []request) error { return l.cancel(queue[0], false) },
		"another one is filled": func(l harness, queue []request) error {
			c := l.withLock(queue[0].by, queue[0].item)
			c.request = queue[0].id
			_, _, err := l.send(c)
			return err
		},
		"another one expires": func(l harness, queue []request) error {
			l.expire(queue[0], "Open - Not yet filled", -1)
			_, err := l.commits.ExpireRequests(l.ctx(), 500)
			return err
		},
		"the queue is ordered": func(l harness, queue []request) error {
			_, err := l.orderQueue(fmt.Sprintf(`"itemId":%q`, queue[0].item), []request{queue[1], queue[0]}, 2, 1)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHarness(t)
			of := l.addTitle(1)
			queue := l.queue(of, of.copies[0], uuid.New(), uuid.New())
			l.exec(`UPDATE {schema}.request SET jsonb = jsonb - 'holdingsRecordId' WHERE id = $1`, queue[1].id)
			if err := change(l, queue); err != nil {
				t.Error(err)
			}
			l.wantStates(queue[1:], notYet+"1")
		})
	}
}

// How FOLIO's circulation writes requests: one by one, or several at once.
func (l harness) putRequest(r request) error {
	return postgres.NewRecordStore(l.db, func() {}).Update(l.ctx(), records.Request, l.parsed(r.doc()))
}

func (l harness) parsed(doc string) records.Record {
	parsed, err := records.Request.Parse(json.RawMessage(doc), "")
	if err != nil {
		l.t.Error(err)
	}
	return parsed
}

func wantOnly(t *testing.T, got map[fault.Code]int, allowed ...fault.Code) {
	t.Helper()
	for code, n := range got {
		if !strings.Contains(fmt.Sprint(allowed), string(code)) && code != "" {
			t.Errorf("got %d times %q, want success or one of %q", n, code, allowed)
		}
	}
}
