// Package schemas is the wire contract between circulation and
// circulation-storage and with FOLIO's clients: Go structs, JSON Schemas and the
// rules for values that both services must judge alike.
package schemas

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Headers beside those of package okapi.
const (
	HolderHeader = "X-Lock-Holder" // ours: the instance that asks for a lock; operators see it

	IdempotencyKeyHeader = "Idempotency-Key" // makes a check-out repeatable; draft-ietf-httpapi-idempotency-key-header
)

// MaxInstanceName is how many characters HolderHeader may have, all of them
// printable.
const MaxInstanceName = 100

// CirculationRules is the body of GET and PUT /circulation-rules-storage: the
// tenant's one text of rules (FOLIO's circulation-rules.json).
type CirculationRules struct {
	ID          string `json:"id,omitempty"` // of the record; ignored in a PUT
	RulesAsText string `json:"rulesAsText"`
	// Metadata has the dates and users of the first and the last PUT; a PUT ignores it.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// PoliciesExist makes a PUT refuse rules that name a missing policy (ours).
	PoliciesExist bool `json:"policiesExist,omitempty"`
}

// FolioUUID is the strict pattern of FOLIO's ids (raml-util, uuid.schema): versions 1
// to 5.
const FolioUUID = `^[a-fA-F0-9]{8}-[a-fA-F0-9]{4}-[1-5][a-fA-F0-9]{3}-[89abAB][a-fA-F0-9]{3}-[a-fA-F0-9]{12}$`

const uuidLength = 36

// IsFolioUUID reports whether id matches FolioUUID, as a patron's and a lock's must.
func IsFolioUUID(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && len(id) == uuidLength && parsed.Version() >= 1 && parsed.Version() <= 5 && parsed.Variant() == uuid.RFC4122
}

// IsUUID reports whether id is a UUID of 36 characters with hyphens, in either case. All
// ids on the wire are. uuid.Parse also accepts braces, a prefix and a form without
// hyphens, which fit into no path or query.
func IsUUID(id string) bool {
	return len(id) == uuidLength && uuid.Validate(id) == nil
}

// Milliseconds returns d as logs and answers have it.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// IsPrintable reports whether text is valid UTF-8 and has at most most characters, all of them
// printable.
func IsPrintable(text string, most int) bool {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	return utf8.ValidString(text) && utf8.RuneCountInString(text) <= most && !strings.ContainsFunc(text, unprintable)
}
