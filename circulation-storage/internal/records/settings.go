package records

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// SettingsEntry is one setting of a tenant, or of one of its users
// (mod-settings, which answers 403 to a duplicate).
var SettingsEntry = Type{
	Name: "settings entry", Path: "/settings/entries", Collection: "items", Table: "settings_entry", Schema: "settings-entry",
	Permission: "mod-settings.entries", Interface: "settings 1.2", Prepare: prepareSettingsEntry,
	Indexes: newIndexes(fields{Text: {"scope", "key", "value"}, UUID: {"userId"}}),
	Unique: []Unique{
		{
			Constraint: "settings_entry_scope_key_user_id_key", Fields: []string{"scope", "key", "userId"}, Code: fault.Forbidden,
			Message: "There is an entry with this scope, key and userId already",
		},
		{Constraint: "settings_entry_pkey", Fields: []string{"id"}, Code: fault.Forbidden},
	},
}

// IsLockSettings reports whether a settings entry holds the tenant's settings of the
// check-out lock.
func IsLockSettings(entry Record) bool {
	return entry.Text("scope") == schemas.LockSettingsScope && entry.Text("key") == schemas.LockSettingsKey &&
		entry.Text("userId") == ""
}

// DecidesLock reports whether a settings entry turns the lock on or off, so that the
// environments of instances do not count.
func DecidesLock(entry Record) bool {
	if !IsLockSettings(entry) {
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

// prepareSettingsEntry refuses invalid lock settings. FOLIO stores them, and its
// circulation then treats the feature as switched off.
func prepareSettingsEntry(_ context.Context, _ Reader, w Write) error {
	entry := w.Record
	entry.Set("userId", strings.ToLower(entry.Text("userId"))) // unique as text
	if !IsLockSettings(entry) {
		return nil
	}
	if _, err := parseLockSettings(entry); err != nil {
		return fault.StorageRefusal("value is no valid setting of the check-out lock: "+strings.ReplaceAll(err.Error(), "\n", "; "),
			fault.Param("value", fault.Shown(entry["value"])))
	}
	return nil
}
