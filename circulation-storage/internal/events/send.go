package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/okapi"
)

// OtherEvents is the kind of events that are not of a record.
const OtherEvents = "event"

// pending is a row whose messages are to be sent.
type pending struct {
	Event
	groups   []string
	messages []Message // of a row in a wave
	err      error     // why there are none
}

// sent is what became of rows.
type sent struct {
	received []int64
	kinds    map[string]int  // how many of each kind were received
	refused  map[int64]error // rows that ErrRefused is of
	failed   int             // how many rows err, or another error, kept back
	behind   int             // how many rows wait for one that failed
	err      error           // the first one
}

// send sends rows in waves. A wave has the oldest row of each group that is left, so the next event of a
// patron or a record is sent only after the last one was received or refused. After another error the
// groups of the row are stuck. Rows in a stuck group are not sent, and their other groups are stuck too. So
// are those of the rows for which no time is left.
func (d *Deliverer) send(ctx context.Context, id okapi.Tenant, rows []Event, stuck map[string]bool) sent {
	s := sent{kinds: map[string]int{}, refused: map[int64]error{}}
	waiting := convert.All(rows, func(e Event) pending { return pending{Event: e, groups: groupsOf(e)} })
	for len(waiting) > 0 {
		var wave, later []pending
		taken := map[string]bool{}
		for _, p := range waiting {
			switch {
			case slices.ContainsFunc(p.groups, func(g string) bool { return stuck[g] }):
				p.join(stuck)
				s.behind++
			case p.join(taken):
				later = append(later, p)
			default:
				wave = append(wave, d.addMessages(id, p))
			}
		}
		if ctx.Err() != nil {
			break
		}
		for p, err := range d.sendWave(ctx, wave) {
			switch {
			case errors.Is(err, ErrRefused):
				s.refused[p.ID] = err
			case err != nil:
				p.join(stuck)
				s.failed++
				s.err = cmp.Or(s.err, err)
			default:
				s.received = append(s.received, p.ID)
				if len(p.messages) > 0 {
					s.kinds[cmp.Or(p.Topic, OtherEvents)]++
				}
			}
		}
		waiting = later
	}
	for _, p := range waiting {
		p.join(stuck)
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

// addMessages returns the row with its messages. One that has none for an error keeps back its own groups
// alone.
func (d *Deliverer) addMessages(id okapi.Tenant, p pending) pending {
	messages, err := d.names.messagesOf(id, p.Event)
	if err != nil {
		p.err = fmt.Errorf("making the messages of event %d: %w", p.ID, err)
		return p
	}
	p.messages = messages
	return p
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
	return []string{strings.ToLower(cmp.Or(of.UserID, of.ItemID, record))} // a stored id may have capitals
}
