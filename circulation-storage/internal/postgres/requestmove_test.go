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

// move sends a move of a request to a copy at version 1. It may be called from any goroutine.
func (l harness) move(r request, to uuid.UUID, kind string, titles bool) (schemas.PlacedRequest, error) {
	return l.commits.MoveRequest(l.ctx(), l.parseMove(r, to, kind, titles))
}

// parseMove returns a move without an id.
func (l harness) parseMove(r request, to uuid.UUID, kind string, titles bool) commit.RequestMove {
	from := r.item
	r.item = to
	doc := strings.Replace(r.doc(), `"requestType":"Hold"`, fmt.Sprintf(`"requestType":%q`, kind), 1)
	m, err := commit.ParseRequestMove(fmt.Appendf(nil,
		`{"request":%s,"itemVersion":1,"fromItemId":%q,"titleLevelRequests":%t}`, doc, from, titles))
	if err != nil {
		l.t.Error(err)
	}
	return m
}

func TestMoveRequest(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(t *testing.T, l harness, titles bool) {
		of := l.addTitle(2)
		queue := l.queue(of, of.copies[0], uuid.New(), uuid.New())
		l.exec(`UPDATE {schema}.item SET jsonb = jsonb || '{"status":{"name":"Paged"}}' WHERE id = $1`, of.copies[0])
		for range 2 { // the second time is a repeat
			got, err := l.move(queue[0], of.copies[1], "Page", titles)
			if err != nil || field(t, got.Request, "itemId") != of.copies[1].String() ||
				field(t, got.Item, "status", "name") != "Paged" {
				t.Fatalf("got %s, %s, %v", got.Request, got.Item, err)
			}
		}
		states := []string{notYet + "1", notYet + "1"}
		if titles {
			states[0] = notYet + "2"
		}
		l.wantStates(queue, states...)
		if n := l.count(`SELECT count(*) FROM {schema}.request WHERE jsonb->>'requestType' = 'Page' AND item_id = $1 AND `+
			`jsonb->'future'->>'a' = '1.50'`, of.copies[1]); n != 1 {
			t.Error("the request lost its type or a property")
		}
		if l.status(of.copies[0]) != "Paged" {
			t.Error("the first copy is free while a request waits for it")
		}
		l.exec(`UPDATE {schema}.item SET jsonb = jsonb || '{"_version":1}' WHERE id = $1`, of.copies[1])
		if _, err := l.move(queue[1], of.copies[1], "Hold", titles); err != nil {
			t.Fatal(err)
		}
		l.wantNoGaps(of, titles)
		if got := l.status(of.copies[0]); got != "Available" {
			t.Errorf("the first copy is %s", got)
		}
	})
}

// The answer to a move is lost, and others move the request back before the move is sent again.
func TestMoveRequest_RepeatedAfterAnotherMove(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(t *testing.T, l harness, titles bool) {
		l.recordEvents()
		of := l.addTitle(2)
		r := l.queue(of, of.copies[0], uuid.New(), uuid.New())[0]
		moved := r
		moved.item = of.copies[1]
		m, back := l.parseMove(r, of.copies[1], "Hold", titles), l.parseMove(moved, of.copies[0], "Hold", titles)
		m.To.ID, back.To.ID = uuid.New(), uuid.New()
		repeat := func(move commit.RequestMove, want uuid.UUID) schemas.PlacedRequest {
			t.Helper()
			got, err := l.commits.MoveRequest(l.ctx(), move)
			if err != nil || field(t, got.Request, "itemId") != want.String() || field(t, got.Item, "id") != want.String() {
				t.Fatalf("got %s, %s, %v, want the request at %s", got.Request, got.Item, err, want)
			}
			return got
		}
		repeat(m, of.copies[1])
		repeat(back, of.copies[0])
		repeat(m, of.copies[0])
		l.wantStates([]request{r}, notYet+"2")
		l.wantNoGaps(of, titles)
		if n := l.count(`SELECT count(*) FROM {schema}.outbox
			WHERE payload->>'logEventType' = 'REQUEST_MOVED_EVENT'`); n != 2 {
			t.Errorf("got %d events of moves, want 2", n)
		}
		if err := l.cancel(r, titles); err != nil {
			t.Fatal(err)
		}
		if got := repeat(m, of.copies[0]); field(t, got.Request, "status") != "Closed - Cancelled" {
			t.Errorf("got %s, want the cancelled request", got.Request)
		}
		if err := l.changeRequest(r, `,"delete":true`, "", ""); err != nil {
			t.Fatal(err)
		}
		if _, err := l.commits.MoveRequest(l.ctx(), m); !fault.Is(err, fault.NotFound) {
			t.Errorf("of a deleted request: got %v, want %s", err, fault.NotFound)
		}
	})
}

// Requests for two copies change places all at once, while the copies are lent and requests are
// cancelled. No queue gets a gap, and no call fails.
func TestMoveRequest_BesideOtherCommits(t *testing.T) {
	t.Parallel()
	eachLevel(t, func(t *testing.T, l harness, titles bool) {
		l = l.withoutDeadlocks()
		for range 8 {
			of, patron := l.addTitle(2), uuid.New()
			first := l.queue(of, of.copies[0], patron, uuid.New(), uuid.New())
			var second []request
			for i := range 3 {
				r := request{id: uuid.New(), by: uuid.New(), of: of, item: of.copies[1], position: i + 1}
				if titles {
					r.position += len(first)
				}
				l.exec(`INSERT INTO {schema}.request (id, jsonb) VALUES ($1, $2)`, r.id, r.doc())
				second = append(second, r)
			}
			c := l.withLock(patron, of.copies[0])
			c.request, c.titles = first[0].id, titles
			got := race(6, func(i int) error {
				switch i {
				case 0:
					_, _, err := l.send(c)
					return err
				case 1:
					return l.cancel(first[1], titles)
				case 2:
					return l.cancel(second[0], titles)
				case 3:
					_, err := l.move(first[2], of.copies[1], "Hold", titles)
					return err
				case 4:
					_, err := l.move(second[1], of.copies[0], "Hold", titles)
					return err
				default:
					_, err := l.commits.ExpireRequests(l.ctx(), 500)
					return err
				}
			})
			if got[""]+got[fault.ItemChanged] != 6 || got[""] < 5 {
				t.Errorf("got %v", got)
			}
			l.wantNoGaps(of, titles)
			l.wantStates([]request{first[0], first[1], second[0]}, filled, "Closed - Cancelled", "Closed - Cancelled")
		}
	})
}
