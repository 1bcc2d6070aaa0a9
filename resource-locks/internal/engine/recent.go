package engine

import "sync"

// Recent keeps the latest events of this instance. It is safe for concurrent use. Its
// zero value keeps none; see NewRecent.
type Recent struct {
	mu     sync.Mutex
	events []Event // a ring
	next   int     // where the next event goes
	full   bool
}

// NewRecent returns a list of the latest size events.
func NewRecent(size int) *Recent { return &Recent{events: make([]Event, size)} }

// Observe implements Observer. It leaves out renewals, which would displace all others.
func (r *Recent) Observe(e Event) {
	if e.Kind == EventRenewed || len(r.events) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events[r.next] = e
	r.next++
	if r.next == len(r.events) {
		r.next, r.full = 0, true
	}
}

// List returns the events, newest first.
func (r *Recent) List() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := r.next
	if r.full {
		count = len(r.events)
	}
	list := make([]Event, 0, count)
	for i := range count {
		list = append(list, r.events[(r.next-1-i+len(r.events))%len(r.events)])
	}
	return list
}
