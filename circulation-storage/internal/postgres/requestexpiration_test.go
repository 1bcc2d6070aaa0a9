package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas/fault"
)

// expire makes a request one that ends in that many minutes; waiting ones end on the shelf.
func (l harness) expire(r request, status string, minutes int) {
	l.t.Helper()
	field := "requestExpirationDate"
	if status == "Open - Awaiting pickup" {
		field = "holdShelfExpirationDate"
	}
	l.exec(`UPDATE {schema}.request SET jsonb = jsonb || jsonb_build_object('status', $2::text, $3::text,
		to_char(clock_timestamp() AT TIME ZONE 'UTC' + make_interval(mins => $4::int),
		'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')) WHERE id = $1`,
		r.id, status, field, minutes)
}

func (l harness) expireAll(want int) {
	l.t.Helper()
	if n, err := l.commits.ExpireRequests(l.ctx(), 500); err != nil || n != want {
		l.t.Errorf("got %d closed, %v, want %d", n, err, want)
	}
}

// eachLevel runs a test for queues of items, and for queues of titles, each with a tenant of its own.
func eachLevel(t *testing.T, test func(t *testing.T, l harness, titles bool)) {
	t.Helper()
	for name, titles := range map[string]bool{"item level": false, "title level": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHarness(t)
			l.setTitles(titles)
			test(t, l, titles)
		})
	}
}

// setTitles turns requests for titles on or off.
func (l harness) setTitles(on bool) {
	l.t.Helper()
	l.exec(`DELETE FROM {schema}.circulation_settings`)
	l.exec(setTitlesSQL, on)
}

const setTitlesSQL = `INSERT INTO {schema}.circulation_settings (id, jsonb) VALUES (gen_random_uuid(),
	jsonb_build_object('name', 'generalTLR', 'value', jsonb_build_object('titleLevelRequestsFeatureEnabled',
	$1::boolean)))`

func TestExpireRequests(t *testing.T) {
	t.Parallel()
	const waits = "Open - Awaiting pickup"
	eachLevel(t, func(t *testing.T, l harness, titles bool) {
		of, other := l.addTitle(2), l.addTitle(1)
		queue := l.queue(of, of.copies[0], uuid.New(), uuid.New(), uuid.New(), uuid.New())
		l.exec(`UPDATE {schema}.item SET jsonb = jsonb || '{"status":{"name":"Paged"}}' WHERE id = $1`, other.copies[0])
		page := l.queue(other, other.copies[0], uuid.New())
		l.expire(queue[0], waits, -1)
		l.expire(queue[1], "Open - Not yet filled", 60)
		l.expire(queue[2], "Open - Not yet filled", -1)
		l.expire(page[0], "Open - Not yet filled", -1)
		shared := l.addTitle(1)
		mixed := l.queue(shared, shared.copies[0], uuid.New(), uuid.New(), uuid.New(), uuid.New())
		l.exec(`UPDATE {schema}.request SET jsonb = jsonb - 'itemId' - 'holdingsRecordId' ||
			'{"requestLevel":"Title"}' WHERE id IN ($1, $2)`, mixed[1].id, mixed[3].id)
		l.expire(mixed[0], "Open - Not yet filled", -1)
		l.expire(mixed[3], "Open - Not yet filled", -1)
		l.expireAll(5)
		third := map[bool]string{true: notYet + "2", false: notYet + "1"}[titles] // behind the title's request
		l.wantStates(mixed, "Closed - Unfilled", notYet+"1", third, "Closed - Unfilled")
		l.wantStates(queue, "Closed - Pickup expired", notYet+"1", "Closed - Unfilled", notYet+"2")
		l.wantStates(page, "Closed - Unfilled")
		if got := l.status(other.copies[0]); got != "Available" {
			t.Errorf("the paged item is %s", got)
		}
		if n := l.count(`SELECT count(*) FROM {schema}.request WHERE jsonb ? 'awaitingPickupRequestClosedDate' AND id = $1`,
			queue[0].id); n != 1 {
			t.Error("the clearance of the shelf is not noted")
		}
		l.expireAll(0)
		l.wantStates(queue, "Closed - Pickup expired", notYet+"1", "Closed - Unfilled", notYet+"2")
	})
}

// Requests that name no instance are the queue of their item, whatever the setting for titles is.
func TestExpireRequests_WithoutAnInstance(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(t *testing.T, l harness, titles bool) {
		of, last := l.addTitle(2), l.addTitle(1)
		queue := l.queue(of, of.copies[0], uuid.New(), uuid.New())
		other := l.queue(of, of.copies[1], uuid.New(), uuid.New())
		titled := l.queue(last, last.copies[0], uuid.New())
		for _, r := range []request{queue[0], other[0], titled[0]} {
			l.expire(r, "Open - Not yet filled", -1)
		}
		for _, r := range slices.Concat(queue, other) {
			l.exec(`UPDATE {schema}.request SET jsonb = jsonb - 'instanceId' WHERE id = $1`, r.id)
		}
		l.expireAll(3)
		l.wantStates(queue, "Closed - Unfilled", notYet+"1")
		l.wantStates(other, "Closed - Unfilled", notYet+"1")
		l.wantStates(titled, "Closed - Unfilled")
		l.expireAll(0)
	})
}

// A queue that was found before the setting changed is left to the next turn.
func TestExpireRequests_WhileTitlesAreTurnedOnOrOff(t *testing.T) {
	t.Parallel()
	for name, titles := range map[string]bool{"turned on": false, "turned off": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHarness(t)
			l.setTitles(titles)
			of := l.addTitle(1)
			queue := l.queue(of, of.copies[0], uuid.New(), uuid.New())
			l.expire(queue[0], "Open - Not yet filled", -1)
			change := l.begin(`DELETE FROM {schema}.circulation_settings`)
			if _, err := change.Exec(l.ctx(), l.sql(setTitlesSQL), !titles); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() { defer close(done); l.expireAll(0) }()
			l.waitUntilBlocked(1)
			if err := change.Commit(l.ctx()); err != nil {
				t.Fatal(err)
			}
			<-done
			l.wantStates(queue, notYet+"1", notYet+"2")
			l.expireAll(1)
			l.wantStates(queue, "Closed - Unfilled", notYet+"1")
		})
	}
}

// Several instances close the same requests at once, while others are cancelled, placed and filled.
func TestExpireRequests_BesideOtherCommits(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(t *testing.T, l harness, titles bool) {
		for range 5 {
			of, patron := l.addTitle(2), uuid.New()
			queue := l.queue(of, of.copies[0], patron, uuid.New(), uuid.New(), uuid.New(), uuid.New())
			for _, i := range []int{1, 3} {
				l.expire(queue[i], "Open - Not yet filled", -1)
			}
			c := l.withLock(patron, of.copies[0])
			c.request, c.titles = queue[0].id, titles
			got := race(7, func(i int) error {
				switch i {
				case 0:
					_, _, err := l.send(c)
					return err
				case 1:
					return l.cancel(queue[2], titles)
				case 2:
					_, err := l.place(request{
						id: uuid.New(), by: uuid.New(), of: of, item: of.copies[0], position: 1,
					}, "Hold", titles)
					return err
				default:
					_, err := l.commits.ExpireRequests(l.ctx(), 500)
					return err
				}
			})
			if got[""] < 6 || got[""]+got[fault.ItemChanged] != 7 { // the new request may judge the item too late
				t.Errorf("got %v", got)
			}
			l.wantNoGaps(of, titles)
			l.wantStates(queue, filled, "Closed - Unfilled", "Closed - Cancelled", "Closed - Unfilled", notYet+"1")
		}
	})
}

// One queue cannot be written. The others are.
func TestExpireRequests_AQueueThatFailsStopsNoOther(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	var queues [][]request
	for range 3 {
		of := l.addTitle(1)
		queues = append(queues, l.queue(of, of.copies[0], uuid.New()))
		l.expire(queues[len(queues)-1][0], "Open - Not yet filled", -1)
	}
	l.exec(fmt.Sprintf(`ALTER TABLE {schema}.request ADD CONSTRAINT stuck CHECK (id <> '%s' OR status LIKE 'Open%%')`,
		queues[1][0].id))
	if n, err := l.commits.ExpireRequests(l.ctx(), 500); err == nil || n != 2 {
		t.Errorf("got %d closed, %v, want 2 and an error", n, err)
	}
	l.wantStates(queues[0], "Closed - Unfilled")
	l.wantStates(queues[1], notYet+"1")
	l.wantStates(queues[2], "Closed - Unfilled")
}

// More queues than a call finds at once cannot be written, or have nothing to close for the commit. A
// later one is closed in the same call.
func TestExpireRequests_PassesOverQueuesThatAreStuck(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	var last []request
	for i := range 6 {
		of := l.addTitle(1)
		last = l.queue(of, of.copies[0], uuid.New())
		l.expire(last[0], "Open - Not yet filled", i-60)
		switch {
		case i < 2:
			l.exec(fmt.Sprintf(`ALTER TABLE {schema}.request ADD CONSTRAINT stuck%d CHECK (id <> '%s' OR status LIKE 'Open%%')`,
				i, last[0].id))
		case i < 4: // a date that only PostgreSQL can read
			l.exec(`UPDATE {schema}.request SET jsonb = jsonb || '{"requestExpirationDate":"2020-01-01T00:00:00 UTC"}' WHERE `+
				`id = $1`, last[0].id)
		}
	}
	if n, err := l.commits.ExpireRequests(l.ctx(), 2); err == nil || n != 2 {
		t.Errorf("got %d closed, %v, want 2 and an error", n, err)
	}
	l.wantStates(last, "Closed - Unfilled")
}

func TestExpireRequests_FindsThemByAnIndex(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.exec(`INSERT INTO {schema}.request (id, jsonb) SELECT id, jsonb_build_object('id', id, 'instanceId', id, 'status',
		'Open - Not yet filled',
		'requestExpirationDate', '2999-01-01T00:00:00.000+00:00') FROM (SELECT gen_random_uuid() AS id
		FROM generate_series(1, 5000)) g`)
	l.exec(`ANALYZE {schema}.request`)
	rows, err := l.db.Pool().Query(l.ctx(), "EXPLAIN "+l.sql(postgres.ExpiredQueuesSQL), 500, []string{})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if plan := strings.Join(lines, "\n"); err != nil || !strings.Contains(plan, "request_expiration_idx") {
		t.Errorf("got %v, no use of the index:\n%s", err, plan)
	}
}
