package schemas

import "encoding/json"

// LockSettingsState is the answer of GET and PUT
// /check-out-lock-settings-storage (ours): the tenant's entry, if there is one,
// and the version that every change of it raises, also its removal.
type LockSettingsState struct {
	Version string          `json:"version"`
	Entry   json.RawMessage `json:"entry,omitempty"` // FOLIO's settings entry
	// EnvironmentOnMs is present while the lock is on because the environment of an
	// instance says so: how long its announcement still counts, by the database's clock.
	// At 0 an instance whose environment says off may end it.
	EnvironmentOnMs *int64 `json:"environmentOnMs,omitempty"`
}

// LockEnvironmentLeaseMs is how long an announcement counts that an environment turns
// the lock on.
const LockEnvironmentLeaseMs int64 = 60_000

// LockEnvironment is the body of POST /check-out-lock-settings-storage/environment
// (ours): what the environment of an instance says, for a tenant whose entry does
// not decide. The answer is a LockSettingsState.
type LockEnvironment struct {
	Enabled bool `json:"enabled"`
	// Version is the version of the settings that the instance read; required if
	// Enabled.
	Version string `json:"version,omitempty"`
}

// LockSettingsChange is the body of PUT /check-out-lock-settings-storage (ours).
type LockSettingsChange struct {
	// Value is the new entry's value; ParseLockSettings must accept it.
	Value json.RawMessage `json:"value"`
	// Version, if given, is the version that the change is based on. If storage has
	// another one, that is a conflict.
	Version string `json:"version,omitempty"`
	// Reason and ByName go into the history of changes, beside the user in
	// X-Okapi-User-Id; both may be empty. At most MaxChangeReason and 100 characters.
	Reason string `json:"reason,omitempty"`
	ByName string `json:"byName,omitempty"`
}
