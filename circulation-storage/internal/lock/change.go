package lock

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// Change is something that somebody did to the check-out lock.
type Change struct {
	ID     uuid.UUID
	Date   time.Time // by the store's clock
	Kind   string    // schemas.ChangeSettings or schemas.ChangeRelease
	UserID uuid.UUID // who did it, as package call carried it; Nil means it named nobody
	Note
	RequestID string // correlation id of the call; may be empty

	// Before and After are the values of the tenant's settings entry, nil where there
	// was none.
	Before, After json.RawMessage
	// Lock is the one that was released, as it was then; nil for a change of the
	// settings. Its UserID is Nil once it is too old to be kept.
	Lock *Lock
}

// Note is what whoever makes a change says about it. Both parts may be empty.
type Note struct {
	Reason string
	By     string // a name, for those who have no user id
}

// NewNote returns a note of texts that somebody typed: without white space around
// them, and with plain line feeds where a form sent carriage returns too.
func NewNote(reason, by string) Note {
	if parsed, err := schemas.ParseChangeReason(reason); err == nil { // else Check says what is wrong
		reason = parsed
	}
	return Note{Reason: reason, By: strings.TrimSpace(by)}
}

// Check returns an Invalid fault with a detail for each text that cannot be kept:
// a reason that schemas.ParseChangeReason refuses, a name of more than
// schemas.MaxChangeName characters or with any that cannot be printed.
func (n Note) Check() error { return n.wrong().Err() }

// CheckWithReason is Check for a change that needs a reason.
func (n Note) CheckWithReason() error {
	wrong := n.wrong()
	if n.Reason == "" {
		wrong.Add("reason", fmt.Sprintf("is required: say why, in 1 to %d characters", schemas.MaxChangeReason), n.Reason)
	}
	return wrong.Err()
}

func (n Note) wrong() (wrong fault.List) {
	if _, err := schemas.ParseChangeReason(n.Reason); err != nil {
		wrong.Add("reason", err.Error(), n.Reason)
	}
	if utf8.RuneCountInString(n.By) > schemas.MaxChangeName || !utf8.ValidString(n.By) || strings.ContainsFunc(n.By, func(r rune) bool { return !unicode.IsPrint(r) }) {
		wrong.Add("byName", fmt.Sprintf("must have at most %d characters, all of them printable", schemas.MaxChangeName), n.By)
	}
	return wrong
}
