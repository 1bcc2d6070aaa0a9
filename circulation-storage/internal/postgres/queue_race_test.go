package postgres_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// A commit waits for a transaction that changes a request of its queue, and judges the
// request as changed.
func TestCheckOut_WaitsForAChangeOfItsQueue(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change string // of the first of two requests, which is the borrower's
		want   fault.Code
		states []string
	}{
		"cancelled": {
			change: `UPDATE {schema}.request SET jsonb = jsonb - 'position' || '{"status":"Closed - Cancelled"}' WHERE id = $1`,
			want:   fault.RequestChanged, states: []string{"Closed - Cancelled", notYet + "2"},
		},
		"moved back": {
			change: `UPDATE {schema}.request SET jsonb = jsonb || '{"position":3}' WHERE id = $1`, want: fault.RequestChanged,
			states: []string{notYet + "3", notYet + "2"},
		},
		"another's now": {
			change: `UPDATE {schema}.request SET jsonb = jsonb || jsonb_build_object('requesterId', id) WHERE id = $1`,
			want:   fault.RequestChanged, states: []string{notYet + "1", notYet + "2"},
		},
		"comment": {
			change: `UPDATE {schema}.request SET jsonb = jsonb || '{"patronComments":"please"}' WHERE id = $1`, want: "",
			states: []string{filled, notYet + "1"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHarness(t)
			of, patron := l.addTitle(1), uuid.New()
			queue := l.queue(of, of.copies[0], patron, uuid.New())
			c := l.withLock(patron, of.copies[0])
			c.request = queue[0].id
			change := l.begin(tt.change, queue[0].id)
			done := l.start(c)
			l.waitUntilBlocked(1)
			if err := change.Commit(l.ctx()); err != nil {
				t.Fatal(err)
			}
			if got := <-done; fault.CodeOf(got.err) != tt.want {
				t.Errorf("got %s, %v, want %q", got.outcome, got.err, tt.want)
			}
			l.wantStates(queue, tt.states...)
			if comments := l.count(`SELECT count(*) FROM {schema}.request WHERE jsonb ? 'patronComments'`); name == "comment" &&
				comments != 1 {
				t.Error("the comment written meanwhile is lost")
			}
		})
	}
}

// FOLIO's modules write requests without locking the item. One of those gets a position
// that the commit is about to give to another request. The commit then runs again and
// sees it.
func TestCheckOut_BesideANewRequestAtTheSamePosition(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		positions []int // the borrower's, two others', and the new one's
		want      fault.Code
		states    []string
	}{
		"behind the borrower's": {
			positions: []int{1, 3, 4, 2}, want: "", states: []string{filled, notYet + "2", notYet + "3", notYet + "1"},
		},
		"before it": {
			positions: []int{2, 3, 4, 1}, want: fault.RequestChanged,
			states: []string{notYet + "2", notYet + "3", notYet + "4", notYet + "1"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHarness(t)
			of, patron := l.addTitle(1), uuid.New()
			queue := make([]request, len(tt.positions))
			for i, position := range tt.positions {
				queue[i] = request{id: uuid.New(), by: uuid.New(), of: of, item: of.copies[0], position: position}
			}
			queue[0].by = patron
			const insert = `INSERT INTO {schema}.request (id, jsonb) VALUES ($1, $2)`
			for _, r := range queue[:3] {
				l.exec(insert, r.id, r.doc())
			}
			c := l.withLock(patron, of.copies[0])
			c.request = queue[0].id
			late := l.begin(insert, queue[3].id, queue[3].doc())
			done := l.start(c)
			l.waitUntilBlocked(1)
			if err := late.Commit(l.ctx()); err != nil {
				t.Fatal(err)
			}
			if got := <-done; fault.CodeOf(got.err) != tt.want {
				t.Errorf("got %s, %v, want %q", got.outcome, got.err, tt.want)
			}
			l.wantStates(queue, tt.states...)
		})
	}
}

// The copies of a title have one queue. Each of the patrons in it checks out at once, and
// each gets one copy, in order; no other patron gets any.
func TestCheckOut_ManyOfOneQueue(t *testing.T) {
	t.Parallel()
	const copies = 8
	l := newHarness(t)
	of := l.addTitle(copies)
	patrons := make([]uuid.UUID, copies)
	for i := range patrons {
		patrons[i] = uuid.New()
	}
	queue := l.queue(of, uuid.Nil, patrons...)
	tries := make([]lending, copies)
	for i := range tries {
		tries[i] = l.withLock(patrons[i], of.copies[i])
		tries[i].request, tries[i].titles = queue[i].id, true
	}
	var wg sync.WaitGroup
	for i := range tries {
		wg.Go(func() { // as often as others come first
			for {
				switch _, _, err := l.send(tries[i]); {
				case err == nil:
					return
				case !fault.Is(err, fault.RequestChanged):
					t.Errorf("check-out %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	// Events are numbered as they are written; a transaction has its number before its turn.
	if n := l.count(`SELECT count(*) FROM (SELECT payload->>'userId' AS patron, row_number() OVER (ORDER BY id) AS place
		FROM {schema}.outbox WHERE event_type = 'ITEM_CHECKED_OUT') e
		WHERE array_position($1::uuid[], patron::uuid) = place`, patrons); n != copies {
		t.Errorf("%d of %d patrons got their copies in their turn", n, copies)
	}
	for i := range queue {
		if got := l.waiting(queue[i]); got != filled {
			t.Errorf("request %d is %q, want %q", i+1, got, filled)
		}
	}
}

// Check-outs, check-ins and the endpoints of requests lock each other's rows. Each waits
// or is refused as outdated, and no answer is a server error.
func TestCommits_NoDeadlockReachesTheCaller(t *testing.T) {
	t.Parallel()
	const rounds, waiting = 12, 5
	l := newHarness(t)
	store := postgres.NewRecordStore(l.db, func() {})
	for range rounds {
		of := l.addTitle(2)
		patrons := make([]uuid.UUID, waiting)
		for i := range patrons {
			patrons[i] = uuid.New()
		}
		queue := l.queue(of, of.copies[0], patrons...)
		behind := queue[1:]
		c := l.withLock(patrons[0], of.copies[0])
		c.request, c.titles = queue[0].id, true
		lent := make(chan error, 1)
		got := race(8, func(i int) error {
			switch i % 4 {
			case 0:
				return l.putRequest(behind[i%len(behind)])
			case 1: // in an order of their own
				var batch []records.Record
				for _, j := range rand.Perm(len(behind)) {
					batch = append(batch, l.parsed(behind[j].doc()))
				}
				return store.PutRequests(l.ctx(), batch)
			case 2:
				_, err := l.takeBack(of.copies[1], 1)
				return err
			default:
				_, outcome, err := l.send(c)
				if outcome == commit.Committed {
					lent <- err
				}
				return err
			}
		})
		wantOnly(t, got, fault.Invalid, fault.ItemChanged, fault.RequestChanged)
		if len(lent) != 1 {
			t.Errorf("the item was lent %d times, want once", len(lent))
		}
		if state := l.waiting(queue[0]); state != filled {
			t.Errorf("the borrower's request is %q, want %q", state, filled)
		}
	}
}

// Another transaction uses the id for something else, and commits after the commit has read.
func TestCommits_SeeAnIDThatIsTakenMeanwhile(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	id, item, lent := uuid.New(), l.addItem("Available", ""), l.lent()
	of, other := l.addTitle(1), l.addTitle(1)
	taken := request{id: id, by: uuid.New(), of: other, item: other.copies[0], position: 1}
	for what, tt := range map[string]struct {
		insert string
		args   []any
		send   func() error
	}{
		"a check-in of another item": {
			insert: `INSERT INTO {schema}.check_in (id, item_id, item) VALUES ($1, $2, '{}')`, args: []any{id, uuid.New()},
			send: func() error { _, _, err := l.takeBackAs(id, item, 1); return err },
		},
		"a change of another loan": {
			insert: `INSERT INTO {schema}.loan_change (id, loan_id) VALUES ($1, $2)`, args: []any{id, uuid.New()},
			send: func() error { return l.changeLoan(id, lent.loan, "claimedReturned", when) },
		},
		"another request": {
			insert: `INSERT INTO {schema}.request (id, jsonb) VALUES ($1, $2)`, args: []any{id, taken.doc()},
			send: func() error {
				_, err := l.place(request{id: id, by: uuid.New(), of: of, item: of.copies[0], position: 1}, "Hold", false)
				return err
			},
		},
	} {
		late := l.begin(tt.insert, tt.args...)
		done := make(chan error, 1)
		go func() { done <- tt.send() }()
		l.waitUntilBlocked(1)
		if err := late.Commit(l.ctx()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "is already that of "+what) {
			t.Errorf("%s: got %v, want %s", what, err, fault.Invalid)
		}
	}
}
