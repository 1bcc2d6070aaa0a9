package lock

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// Change is an entry of the audit log: a change of the lock settings or a forced release.
type Change struct {
	ID     uuid.UUID
	Date   time.Time // by the store's clock
	Kind   string    // schemas.ChangeSettings or schemas.ChangeRelease
	UserID uuid.UUID // the acting user; Nil if the call named none
	Note   Note

	RequestID string // correlation id of the call; may be empty

	// Before and After are the values of the tenant's settings entry, nil for no entry.
	Before, After json.RawMessage
	// Lock is the released lock as it was; nil for a change of the settings. Its UserID
	// is Nil after the retention time.
	Lock *Lock
}

// Note explains a change. Both parts may be empty.
type Note struct {
	Reason string
	By     string // a name, for persons without a user id
}

// NewNote returns a note from what a person typed. It removes white space around them, and the
// carriage returns of forms.
func NewNote(reason, by string) Note {
	if parsed, err := schemas.ParseChangeReason(reason); err == nil { // else Check reports it
		reason = parsed
	}
	return Note{Reason: reason, By: strings.TrimSpace(by)}
}

// Check returns an Invalid fault with a detail for each text that cannot be stored: a
// reason that schemas.ParseChangeReason refuses, or a name that is too long or not
// printable.
func (n Note) Check() error { return n.findFaults().Err() }

// CheckWithReason is Check for a change that requires a reason.
func (n Note) CheckWithReason() error {
	wrong := n.findFaults()
	if n.Reason == "" {
		wrong.Add("reason", fmt.Sprintf("is required: say why, in 1 to %d characters", schemas.MaxChangeReason), n.Reason)
	}
	return wrong.Err()
}

func (n Note) findFaults() (wrong fault.List) {
	if _, err := schemas.ParseChangeReason(n.Reason); err != nil {
		wrong.Add("reason", err.Error(), n.Reason)
	}
	if !schemas.IsPrintable(n.By, schemas.MaxChangeName) {
		wrong.Add("byName", fmt.Sprintf("must have at most %d characters, all of them printable", schemas.MaxChangeName), n.By)
	}
	return wrong
}
