package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas"
)

// report adds a report of the instance.
func (p past) report(instance string, r schemas.CheckOutReport) {
	p.t.Helper()
	if err := p.Add(p.ctx(), instance, r); err != nil {
		p.t.Fatal(err)
	}
}

func TestHistoryStore_ListsWaitsOfAllInstances(t *testing.T) {
	t.Parallel()
	h := newPast(t)
	ann, ben := uuid.NewString(), uuid.NewString()
	h.report("two", schemas.CheckOutReport{Waiting: 1, Version: "1.2.2", Waits: []schemas.LockWait{
		{UserID: ann, WaitedMs: 7000},
	}})
	h.exec(`UPDATE {schema}.check_out_waiting SET reported_date = reported_date - interval '1 hour'`)
	h.report("one", schemas.CheckOutReport{Waiting: 1, Waits: []schemas.LockWait{
		{UserID: ann, RequestID: "r1", Machine: "kiosk-1", WaitedMs: 500},
	}})
	h.report("two", schemas.CheckOutReport{Waiting: 1, Version: "1.2.3", Waits: []schemas.LockWait{
		{UserID: ben, WaitedMs: 2000},
	}})
	h.report("gone", schemas.CheckOutReport{Waiting: 1, Waits: []schemas.LockWait{{UserID: ben, WaitedMs: 9000}}})
	h.exec(`UPDATE {schema}.check_out_waiting SET reported_date = reported_date - interval '6 s' WHERE holder = 'gone'`)
	h.exec(`UPDATE {schema}.check_out_waiting SET reported_date = statement_timestamp()
		WHERE holder <> 'gone' AND reported_date > statement_timestamp() - interval '30 min'`)
	w, err := h.Waits(h.ctx())
	if err != nil || len(w.Waiting) != 2 {
		t.Fatalf("got %+v, %v, want two waits", w, err)
	}
	first, second := w.Waiting[0], w.Waiting[1]
	if first.UserID != ben || first.Instance != "two" || first.WaitedMs < 2000 ||
		second.RequestID != "r1" || second.Machine != "kiosk-1" || second.Instance != "one" {
		t.Errorf("got %+v and %+v", first, second)
	}
	h.report("two", schemas.CheckOutReport{Version: "1.2.3"})
	if w, err = h.Waits(h.ctx()); err != nil || len(w.Waiting) != 1 {
		t.Errorf("got %+v, %v, want one wait", w, err)
	}
	c, err := h.CheckLimit(h.ctx(), time.Now().Add(-time.Hour))
	if err != nil || len(c.Instances) != 3 || c.Instances[2].Instance != "two" || c.Instances[2].Version != "1.2.3" ||
		c.Instances[1].Version != "" || !isOfNow(c.Instances[2].Date) {
		t.Errorf("got %+v, %v, want three instances", c, err)
	}
}

func TestHistoryStore_ListsTheSlowestWaits(t *testing.T) {
	t.Parallel()
	h := newPast(t)
	slow := func(request string, wait int, ago time.Duration) schemas.PastCheckOut {
		return schemas.PastCheckOut{
			ID: uuid.NewString(), Outcome: schemas.OutcomeLimitReached, WaitMs: &wait, RequestID: request,
			AgoMs: ago.Milliseconds(),
		}
	}
	h.report("one", schemas.CheckOutReport{CheckOuts: []schemas.PastCheckOut{
		slow("short", 10, 0), slow("at once", 0, 0), slow("long", 900, time.Minute), slow("old", 5000, 6*time.Minute),
	}})
	w, err := h.Waits(h.ctx())
	if err != nil || len(w.Slowest) != 2 || w.Slowest[0].RequestID != "long" || w.Slowest[1].RequestID != "short" {
		t.Errorf("got %+v, %v", w.Slowest, err)
	}
	c, err := h.CheckLimit(h.ctx(), time.Now().Add(-3*time.Minute))
	if err != nil || c.LimitReached != 3 || len(c.OverLimit) != 0 {
		t.Errorf("got %+v, %v, want three refused since then", c, err)
	}
}

func TestHistoryStore_ListsMachinesWithUnknownServicePoints(t *testing.T) {
	t.Parallel()
	h := newPast(t)
	unknown, known, least := uuid.NewString(), uuid.NewString(), "00000000-0000-4000-8000-000000000000"
	addDesk := func(id string) {
		h.exec(`INSERT INTO {schema}.service_point (id, jsonb) VALUES ($1::uuid,
			jsonb_build_object('id', $1::text, 'name', $1::text, 'code', $1::text))`, id)
	}
	addDesk(known)
	from := func(machine, place string, ago time.Duration) schemas.PastCheckOut {
		return schemas.PastCheckOut{
			ID: uuid.NewString(), Outcome: schemas.OutcomeLent, Machine: machine, ServicePointID: place,
			AgoMs: ago.Milliseconds(),
		}
	}
	h.report("one", schemas.CheckOutReport{CheckOuts: []schemas.PastCheckOut{
		from("10.0.0.1", unknown, 2*time.Minute), from("10.0.0.1", unknown, 10*time.Minute), from("10.0.0.2", known, 0),
		from("10.0.0.3", "", 0), from("mended", unknown, time.Hour),
	}})
	h.report("two", schemas.CheckOutReport{CheckOuts: []schemas.PastCheckOut{from("kiosk-1", least, time.Minute)}})
	h.exec(`UPDATE {schema}.check_out_history SET ended_date = ended_date - interval '1 day' WHERE machine = 'mended'`)
	list := func() []schemas.UnknownPlace {
		c, err := h.CheckLimit(h.ctx(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return c.UnknownPlaces
	}
	got := list()
	if len(got) != 2 || got[0].Machine != "kiosk-1" || got[1].Machine != "10.0.0.1" || got[1].CheckOuts != 2 ||
		got[1].ServicePointID != unknown {
		t.Errorf("got %+v, want the machines of both instances, the newest first", got)
	}
	if at, err := time.Parse(schemas.FolioTime, got[0].Date); err != nil || time.Since(at) > 2*time.Minute {
		t.Errorf("got the date %q, %v", got[0].Date, err)
	}
	n, machine, place, err := h.CountUnknownPlaces(h.ctx(), 5*time.Minute)
	if err != nil || n != 2 || machine != "kiosk-1" || place != least {
		t.Errorf("got %d with %s at %s, %v, want two of 5 minutes, and what the last one sent", n, machine, place, err)
	}
	addDesk(unknown)
	addDesk(least)
	if got := list(); len(got) != 0 {
		t.Errorf("got %+v after the service points were made, want none", got)
	}
}
