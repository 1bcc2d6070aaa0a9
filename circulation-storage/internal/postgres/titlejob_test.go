package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

// addTitleJob stores a job of title level requests and returns its id.
func (l harness) addTitleJob(status, created string) uuid.UUID {
	l.t.Helper()
	id := uuid.New()
	l.exec(`INSERT INTO {schema}.tlr_feature_toggle_job (id, jsonb) VALUES ($1, $2)`, id,
		fmt.Sprintf(`{"id":%q,"status":%q,"metadata":{"createdDate":%q}}`, id, status, created))
	return id
}

// job is a job's status, number and errors.
func (l harness) job(id uuid.UUID) (state string) {
	l.t.Helper()
	err := l.db.Pool().QueryRow(l.ctx(), l.sql(`SELECT concat_ws(' ', jsonb->>'status', jsonb->>'numberOfUpdatedRequests',
		jsonb->>'errors') FROM {schema}.tlr_feature_toggle_job WHERE id = $1`), id).Scan(&state)
	if err != nil {
		l.t.Fatal(err)
	}
	return state
}

func (l harness) runTitleJob() {
	l.t.Helper()
	if err := l.commits.RunTitleJob(l.ctx()); err != nil {
		l.t.Fatal(err)
	}
}

// places are the positions of requests as stored.
func (l harness) places(requests ...request) string {
	l.t.Helper()
	var all []string
	for _, r := range requests {
		all = append(all, strings.TrimPrefix(l.waiting(r), "Open - Not yet filled "))
	}
	return strings.Join(all, " ")
}

// twoQueues stores a title whose two copies have queues: 1 2 3 and 1 2. The second was asked for first.
func (l harness) twoQueues() []request {
	l.t.Helper()
	of := l.addTitle(2)
	first := l.queue(of, of.copies[0], uuid.New(), uuid.New(), uuid.New())
	second := l.queue(of, of.copies[1], uuid.New(), uuid.New())
	l.exec(`UPDATE {schema}.request SET jsonb = jsonb || '{"requestDate":"2025-12-31T00:00:00Z"}' WHERE item_id = $1`,
		of.copies[1])
	return append(first, second...)
}

const jobDay = "2026-03-01T10:00:00.000+00:00"

func TestRunTitleJob_JoinsAndDividesQueues(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	all := l.twoQueues()
	l.setTitles(true)
	l.runTitleJob()
	if got := l.places(all...); got != "1 2 3 1 2" {
		t.Errorf("without a job the positions became %s", got)
	}
	l.recordEvents()
	older, newer := l.addTitleJob("open", jobDay), l.addTitleJob("open", "2026-03-02T10:00:00.000+00:00")
	l.runTitleJob()
	if got, want := l.places(all...), "2 4 5 1 3"; got != want {
		t.Errorf("joined: got %s, want %s", got, want)
	}
	if got, want := l.job(newer)+", "+l.job(older), "done 5 [], open"; got != want {
		t.Errorf("got %s, want %s: one job at a time, the newest first", got, want)
	}
	l.setTitles(false)
	l.runTitleJob()
	if got, want := l.places(all...), "1 2 3 1 2"; got != want {
		t.Errorf("divided: got %s, want %s", got, want)
	}
	if got, want := l.job(older), "done 5 []"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.outbox WHERE topic = 'request'`); n != 8 {
		t.Errorf("%d events for 4 and then 4 requests that changed", n)
	}
}

// A process may die, or its client may leave, after it took the job.
func TestRunTitleJob_FinishesAJobInProgress(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.setTitles(true)
	all := l.twoQueues()
	gap := l.addTitle(2) // as many positions as requests, one of them twice
	l.queue(gap, gap.copies[0], uuid.New(), uuid.New())
	l.queue(gap, gap.copies[1], uuid.New())
	l.exec(`UPDATE {schema}.request SET jsonb = jsonb || '{"position":3}' WHERE item_id = $1 AND position = 2`,
		gap.copies[0])
	open, begun := l.addTitleJob("open", "2026-03-02T10:00:00.000+00:00"), l.addTitleJob("in-progress", jobDay)
	left, cancel := context.WithCancel(l.ctx())
	cancel()
	if err := l.commits.RunTitleJob(left); err == nil || l.job(begun) != "in-progress" {
		t.Errorf("got %v, and the job is %s", err, l.job(begun))
	}
	l.runTitleJob()
	if got, want := l.job(begun)+", "+l.job(open)+", "+l.places(all...), "done 8 [], open, 2 4 5 1 3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := l.count(`SELECT count(DISTINCT position) FROM {schema}.request WHERE instance_id = $1`, gap.instance); n != 3 {
		t.Errorf("3 requests of a title have %d positions", n)
	}
}

func TestRunTitleJob_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	all := l.twoQueues()
	id := l.addTitleJob("open", jobDay)
	l.runTitleJob()
	if got, want := l.job(id)+", "+l.places(all...), `failed 5 ["TLR settings not found"], 1 2 3 1 2`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	l.setTitles(false)
	l.exec(`UPDATE {schema}.request SET jsonb = jsonb || '{"position":9}' WHERE id = $1`, all[0].id)
	unnamed := l.queue(l.addTitle(0), uuid.Nil, uuid.New())[0]
	id = l.addTitleJob("open", jobDay)
	l.runTitleJob()
	if got, want := l.job(id)+", "+l.places(all...), fmt.Sprintf(
		`failed 6 ["The request %s names no item, and requests for titles are off"], 3 1 2 1 2`, unnamed.id,
	); got != want {
		t.Errorf("got %s, want %s: the other queues are numbered", got, want)
	}
}

// FOLIO's older setting counts while there is no newer one.
func TestRunTitleJob_ObeysTheOlderSetting(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	all := l.twoQueues()
	l.setTitles(true)
	l.exec(`UPDATE {schema}.circulation_settings SET jsonb = jsonb || '{"name":"TLR"}'`)
	run := func(want string) {
		id := l.addTitleJob("open", jobDay)
		l.runTitleJob()
		if got := l.job(id) + ", " + l.places(all...); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	run("done 5 [], 2 4 5 1 3")
	l.exec(setTitlesSQL, false) // the newer one
	run("done 5 [], 1 2 3 1 2")
}

// A failover ends sessions. What the job could not renumber for that is done by the next call.
func TestRunTitleJob_GoesOnAfterAnOutage(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.setTitles(true)
	all := l.twoQueues()
	l.exec(`CREATE SEQUENCE {schema}.tries;
		CREATE FUNCTION {schema}.end_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('{schema}.tries') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
			RETURN NULL;
		END $$;
		CREATE TRIGGER end_once BEFORE UPDATE ON {schema}.request EXECUTE FUNCTION {schema}.end_once()`)
	id := l.addTitleJob("open", jobDay)
	if err := l.commits.RunTitleJob(l.ctx()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want %s, and the job is %s", err, fault.Unavailable, l.job(id))
	}
	l.runTitleJob()
	if got, want := l.job(id)+", "+l.places(all...), "done 5 [], 2 4 5 1 3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Requests come and go while the job runs, and two timers may start it.
func TestRunTitleJob_BesideOthers(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.setTitles(true)
	var all []request
	for range 10 {
		all = append(all, l.twoQueues()...)
	}
	l.expire(all[7], "Open - Not yet filled", -1)
	id := l.addTitleJob("open", jobDay)
	var both sync.WaitGroup
	for range 2 {
		both.Go(l.runTitleJob)
		both.Go(func() {
			if _, err := l.commits.ExpireRequests(l.ctx(), 500); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if got := l.job(id); !strings.HasPrefix(got, "done ") {
		t.Errorf("the job is %s", got)
	}
	if n := l.count(`SELECT count(*) FROM (SELECT FROM {schema}.request WHERE is_open GROUP BY instance_id
		HAVING max(position) <> count(*) OR count(DISTINCT position) <> count(*)) AS wrong`); n != 0 {
		t.Errorf("%d queues have gaps or repeats", n)
	}
}
