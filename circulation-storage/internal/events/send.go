package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"checkoutlock/schemas/okapi"
)

// OtherEvents is the kind of events that are not of a record.
const OtherEvents = "event"

// pending is a row whose messages are to be sent.
type pending struct {
	row      int64
	kind     string // for metrics
	groups   []string
	messages []Message
	err      error // why there are none
}

// sent is what became of rows.
type sent struct {
	received []int64
	kinds    map[string]int  // how many of each kind were received
	refused  map[int64]error // rows that ErrRefused is of
	failed   int             // how many rows err, or another error, kept back
	err      error           // the first one
}

// send sends rows in waves. A wave has the oldest row of each group that is left, so a patron's next
// event is sent only after the last one was received or refused, and so is a record's. After another error
// the groups of the row are stuck. Rows of those that are stuck are not sent, and neither is what follows
// in another group of such a row.
func (d *Deliverer) send(ctx context.Context, id okapi.Tenant, rows []Event, stuck map[string]bool) sent {
	s := sent{kinds: map[string]int{}, refused: map[int64]error{}}
	waiting := d.makeMessages(id, rows)
	for len(waiting) > 0 {
		var wave, later []pending
		taken := map[string]bool{}
		for _, p := range waiting {
			switch {
			case slices.ContainsFunc(p.groups, func(g string) bool { return stuck[g] }):
				p.join(stuck)
			case p.join(taken):
				later = append(later, p)
			default:
				wave = append(wave, p)
			}
		}
		if ctx.Err() != nil {
			break
		}
		for p, err := range d.sendWave(ctx, wave) {
			switch {
			case errors.Is(err, ErrRefused):
				s.refused[p.row] = err
			case err != nil:
				p.join(stuck)
				s.failed++
				if s.err == nil {
					s.err = err
				}
			default:
				s.received = append(s.received, p.row)
				if len(p.messages) > 0 {
					s.kinds[p.kind]++
				}
			}
		}
		waiting = later
	}
	return s
}

// join adds the groups of the row to a set, and reports whether one of them was there.
func (p pending) join(groups map[string]bool) (known bool) {
	for _, g := range p.groups {
		known = known || groups[g]
		groups[g] = true
	}
	return known
}

// makeMessages returns the rows. One that has no messages for an error keeps back its own groups alone.
func (d *Deliverer) makeMessages(id okapi.Tenant, rows []Event) (waiting []pending) {
	for _, e := range rows {
		p := pending{row: e.ID, kind: cmp.Or(e.Topic, OtherEvents), groups: groupsOf(e)}
		messages, err := d.names.messagesOf(id, e)
		if err != nil {
			p.err = fmt.Errorf("making the messages of event %d: %w", e.ID, err)
		} else {
			p.messages = messages
		}
		waiting = append(waiting, p)
	}
	return waiting
}

// sendWave sends the messages of rows at once, and yields the error of each row.
func (d *Deliverer) sendWave(ctx context.Context, wave []pending) func(yield func(pending, error) bool) {
	var all []Message
	for _, p := range wave {
		all = append(all, p.messages...)
	}
	errs := d.sink.Send(ctx, all)
	return func(yield func(pending, error) bool) {
		next := 0
		for _, p := range wave {
			failed := p.err
			for range p.messages {
				if failed == nil || errors.Is(failed, ErrRefused) && errs[next] != nil { // a repeat comes first
					failed = errs[next]
				}
				next++
			}
			if !yield(p, failed) {
				return
			}
		}
	}
}

// groupsOf returns what an event keeps its order with: its patron's events, and those of its record, which
// may lose its patron or get another one.
func groupsOf(e Event) []string {
	record := e.RecordID.String()
	if e.PatronID != uuid.Nil && e.RecordID != uuid.Nil {
		return []string{e.PatronID.String(), record}
	}
	var of struct{ UserID, ItemID string }
	_ = json.Unmarshal(e.Payload, &of) // of the events without a topic; others have none
	if e.PatronID != uuid.Nil {
		of.UserID = e.PatronID.String()
	}
	return []string{cmp.Or(of.UserID, of.ItemID, record)}
}
