package postgres

import (
	"hash/maphash"
	"sync/atomic"

	"checkoutlock/resource-locks/internal/engine"
)

// hint is how the last acquire of an owner for a key ended.
type hint uint64

const (
	hintNone    hint = iota
	hintHeld         // the owner got the lock, and will renew it
	hintRefused      // another owner had the lock, and the owner will try again
	hintBits    = 3
)

// hints remembers how acquires of this process ended, in a table of fixed size. A hint
// only chooses the statement that is tried first: it may be outdated, or of other names.
type hints struct {
	seed maphash.Seed
	seen []atomic.Uint64 // a sum of the names, with the hint in its last bits
}

// maxHints is how many fit, a power of 2. They take 512 KiB.
const maxHints = 1 << 16

func newHints() hints {
	return hints{seed: maphash.MakeSeed(), seen: make([]atomic.Uint64, maxHints)}
}

// place returns where the hint of an owner and a key stands, and their sum.
func (h *hints) place(a engine.Acquire) (place *atomic.Uint64, sum uint64) {
	sum = maphash.Comparable(h.seed, [3]string{a.Namespace, a.Name, a.Owner}) &^ hintBits
	return &h.seen[sum>>2%maxHints], sum
}

func (h *hints) find(a engine.Acquire) hint {
	place, sum := h.place(a)
	seen := place.Load()
	if seen&^hintBits != sum {
		return hintNone
	}
	return hint(seen & hintBits)
}

func (h *hints) note(a engine.Acquire, o engine.Outcome) {
	place, sum := h.place(a)
	switch o { //nolint:exhaustive // the others say nothing of the next acquire
	case engine.Granted, engine.Renewed:
		place.Store(sum | uint64(hintHeld))
	case engine.Held:
		place.Store(sum | uint64(hintRefused))
	}
}
