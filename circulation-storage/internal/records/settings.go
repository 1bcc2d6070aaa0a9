package records

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// LockSettings reports whether a settings entry is the tenant's own settings of
// the check-out lock.
func LockSettings(entry Record) bool {
	return entry.Text("scope") == schemas.LockSettingsScope && entry.Text("key") == schemas.LockSettingsKey &&
		entry.Text("userId") == ""
}

// DecidesLock reports whether a settings entry says itself whether check-outs take
// the lock, so that no environment does.
func DecidesLock(entry Record) bool {
	if !LockSettings(entry) {
		return false
	}
	own, err := parseLockSettings(entry)
	return err == nil && own.Enabled != nil
}

func parseLockSettings(entry Record) (schemas.LockSettings, error) {
	value, err := json.Marshal(entry["value"])
	if err != nil {
		return schemas.LockSettings{}, fmt.Errorf("writing the value of a settings entry: %w", err)
	}
	return schemas.ParseLockSettings(value)
}

// prepareSettingsEntry refuses lock settings that nobody could act on. FOLIO
// stores them, and its circulation then takes the feature for switched off.
func prepareSettingsEntry(_ context.Context, _ Reader, w Write) error {
	entry := w.Record
	if id := entry.Text("userId"); id != "" {
		entry["userId"] = strings.ToLower(id) // unique as text
	}
	if !LockSettings(entry) {
		return nil
	}
	if _, err := parseLockSettings(entry); err != nil {
		return fault.StorageRefusal("value is no valid setting of the check-out lock: "+strings.ReplaceAll(err.Error(), "\n", "; "),
			fault.Param("value", fault.Shown(entry["value"])))
	}
	return nil
}
