package lock

import (
	"hash/maphash"
	"time"
)

const (
	// hintSlots is how many patrons heldHints remembers at most.
	hintSlots = 1024
	// hintLife is how long a hint counts. It is short, because a lock may be released
	// through another process, and then a hint costs a read in vain.
	hintLife = time.Second
)

// heldHints remembers whose locks were held a moment ago. A hint decides nothing: callers
// for such a lock read it before they try to take it, so that a refusal writes nothing.
//
// The memory is fixed. Patrons share slots, and the latest hint replaces the earlier one.
type heldHints struct {
	seed  maphash.Seed
	slots [hintSlots]struct {
		patron patron
		until  time.Time
	}
}

func (h *heldHints) slot(p patron) int { return int(maphash.Comparable(h.seed, p) % hintSlots) }

func (h *heldHints) add(p patron) {
	s := &h.slots[h.slot(p)]
	s.patron, s.until = p, time.Now().Add(hintLife)
}

func (h *heldHints) remove(p patron) {
	if s := &h.slots[h.slot(p)]; s.patron == p {
		s.until = time.Time{}
	}
}

func (h *heldHints) contains(p patron) bool {
	s := &h.slots[h.slot(p)]
	return s.patron == p && time.Now().Before(s.until)
}
