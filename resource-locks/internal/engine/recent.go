package engine

import "sync"

// Recent keeps the latest events of this instance. It is safe for concurrent use. Its
// zero value keeps none; see NewRecent.
type Recent struct {
	mu     sync.Mutex
	events []Event // a ring
	count  int     // of all events so far
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
	r.events[r.count%len(r.events)] = e
	r.count++
}

// List returns the events, newest first.
func (r *Recent) List() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Event, min(r.count, len(r.events)))
	for i := range list {
		list[i] = r.events[(r.count-1-i)%len(r.events)]
	}
	return list
}
