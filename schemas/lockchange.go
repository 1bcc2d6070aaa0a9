package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of the changes that people make.
const (
	MaxChangeReason = 500 // characters of a reason
	MaxChangeName   = 100 // characters of who makes it, all of them printable
	MaxChangePage   = 200 // changes in one GET
)

// The kinds of changes that people make to the check-out lock.
const (
	ChangeSettings = "settings" // its settings
	ChangeRelease  = "release"  // a lock was released by force
)

// LockChange is a change of the check-out lock (ours): who made it, when and why. Storage writes it
// in the transaction of the change.
type LockChange struct {
	ID   string `json:"id"`
	Date string `json:"date"` // by the database's clock
	Kind string `json:"kind"`
	// By is who made the change, if the call names that person.
	By ChangedBy `json:"by"`
	// Reason is empty for a change through an endpoint that asks for none.
	Reason    string `json:"reason,omitempty"`
	RequestID string `json:"requestId,omitempty"`

	// Before and After are the values of the tenant's settings entry; absent where
	// there was none. Only of ChangeSettings.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`

	// Lock is the lock as it was when it was released. Only of ChangeRelease; its
	// userId goes when the history of check-outs does.
	Lock *CheckoutLock `json:"lock,omitempty"`
}

// ChangedBy is a member of staff: FOLIO's user id, a name, both or neither.
type ChangedBy struct {
	UserID string `json:"userId,omitempty"`
	Name   string `json:"name,omitempty"`
}

// LockChanges is a page of the changes, newest first.
type LockChanges struct {
	Changes      []LockChange `json:"changes"`
	TotalRecords int          `json:"totalRecords"`
}

// ForcedRelease is the body of POST /check-out-lock-storage/{id}/forced-release
// (ours). Who does it is the user in X-Okapi-User-Id and this name.
type ForcedRelease struct {
	Reason string `json:"reason"`           // 1 to MaxChangeReason characters
	ByName string `json:"byName,omitempty"` // at most MaxChangeName characters
}

// ParseChangeReason reads the reason for a change as people write it: without the
// white space around it, and with \n for each line break. It may be empty. The
// error says what a reason must be, without naming it.
func ParseChangeReason(s string) (string, error) {
	s = strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n"))
	unfit := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	switch n := utf8.RuneCountInString(s); {
	case n > MaxChangeReason:
		return "", fmt.Errorf("must have at most %d characters, not %d", MaxChangeReason, n)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unfit):
		return "", errors.New("must have no control characters but line breaks and tabs")
	}
	return s, nil
}
