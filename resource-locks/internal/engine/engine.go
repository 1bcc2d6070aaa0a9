// Package engine grants locks on named resources. It knows no protocol: the fronts
// translate their protocols' words into its types.
//
// Flat locks have one owner and a time to live. Claims take several paths of a tree at
// once, wait in line, and are bound to a connection. The clock of the store alone
// judges both.
package engine

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

// Limits of what a store keeps, in characters unless said otherwise.
const (
	MaxNamespace = 255
	MaxName      = 255   // of a lock's name, an owner and an asker
	MaxValue     = 65536 // bytes
	MaxRequests  = 20    // requests that one lock keeps; a newer one replaces the oldest
	MaxMessage   = 1000
	MaxReason    = 500
	// MaxTTL is the longest time to live. A longer one counts as MaxTTL.
	MaxTTL = 100 * 365 * 24 * time.Hour
)

// Key names one lock. Names are compared exactly. An empty Name is a valid name.
type Key struct {
	Namespace string // separates the fronts, such as "locket"; not empty
	Name      string
}

// Lock is one grant of a key. Its times are those of the store's clock.
type Lock struct {
	Key
	// ID is new with each grant, and stays when the owner renews.
	ID uuid.UUID
	// Fence grows with each grant of a key, for as long as the store exists. Holders show
	// it to the systems that they write to.
	Fence     int64
	Owner     string
	Kind      string // the front's word, such as "presence"; it filters lists
	Value     string // the front's, opaque to the engine
	GrantedAt time.Time
	RenewedAt time.Time // GrantedAt until the first renewal
	ExpiresAt time.Time // the lock is outdated from this moment on
	// Requests are those that Ask stored since the grant, oldest first.
	Requests []AskedFor
}

// AskedFor is a request for a held lock by another user. It ends with the lock.
type AskedFor struct {
	By      string    `json:"by"`
	Name    string    `json:"name,omitempty"` // of the asker, to be shown
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"` // the store's clock
}

// Note is who forces a release, and why.
type Note struct {
	By     string
	Reason string
}

// Release is a forced release as it is kept.
type Release struct {
	Note
	Namespace string
	Name      string // of the flat lock, or the paths of the claim
	Owner     string
	Fence     int64 // of the flat lock, or the number of the claim
	At        time.Time
}

// Check refuses a blank reason, an empty name, and texts that are too long. Fault: Invalid.
func (n Note) Check() error {
	if strings.TrimSpace(n.Reason) == "" || n.By == "" {
		return fault.New(fault.Invalid, "A forced release needs a reason and the name of who forces it")
	}
	return cmp.Or(checkText("the reason", n.Reason, MaxReason), checkText("the name", n.By, MaxName))
}

// checkText refuses what PostgreSQL cannot store as text, and text that is too long.
// Fault: Invalid.
func checkText(what, text string, longest int) error {
	switch {
	case !utf8.ValidString(text):
		return fault.New(fault.Invalid, "%s is not valid UTF-8", what)
	case strings.ContainsRune(text, 0):
		return fault.New(fault.Invalid, "%s has a NUL character", what)
	case utf8.RuneCountInString(text) > longest:
		return fault.New(fault.Invalid, "%s has more than %d characters", what, longest)
	}
	return nil
}
