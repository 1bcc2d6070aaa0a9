package settings

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"checkoutlock/schemas"
)

// Environment holds the settings of a tenant that has set none of its own.
type Environment struct {
	Enabled bool
	TTL     time.Duration
	Waits   []time.Duration
	// MachinePatience is how long self-check machines wait for an answer. Nothing is
	// done by it: it is for whoever chooses the others.
	MachinePatience time.Duration
}

// Settings returns the environment's settings as those in force.
func (e Environment) Settings() Settings { return e.merge(schemas.LockSettings{}) }

// merge puts the tenant's settings over the environment's, field by field.
func (e Environment) merge(own schemas.LockSettings) Settings {
	s := Settings{
		Enabled: e.Enabled, EnabledSource: FromEnvironment,
		TTL: e.TTL, TTLSource: FromEnvironment,
		Waits: slices.Clone(e.Waits), WaitsSource: FromEnvironment,
		MachinePatience: e.MachinePatience,
	}
	if own.Enabled != nil {
		s.Enabled, s.EnabledSource = *own.Enabled, FromTenant
	}
	if own.TTL != nil {
		s.TTL, s.TTLSource = *own.TTL, FromTenant
	}
	if own.Waits != nil {
		s.Waits, s.WaitsSource = own.Waits, FromTenant
	}
	return s
}

// parseEntry reads the tenant's entry. No entry, or one without a value, sets
// nothing.
func parseEntry(entry json.RawMessage) (schemas.LockSettings, error) {
	if isNull(entry) {
		return schemas.LockSettings{}, nil
	}
	var e struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(entry, &e); err != nil {
		return schemas.LockSettings{}, fmt.Errorf("the settings entry cannot be read: %w", err)
	}
	own, err := schemas.ParseLockSettings(e.Value)
	if err != nil {
		return schemas.LockSettings{}, fmt.Errorf("the settings entry %s/%s cannot be used: %w",
			schemas.LockSettingsScope, schemas.LockSettingsKey, err)
	}
	return own, nil
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
