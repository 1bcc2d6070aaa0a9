// Package settings keeps the check-out lock's settings. The tenant's override the
// environment's, field by field. The environment of another instance may turn the lock on too.
package settings

import (
	"encoding/json"
	"slices"
	"time"

	"checkoutlock/schemas"
)

// Source is where a value comes from.
type Source string

// The sources of a setting.
const (
	FromTenant      Source = "tenant"
	FromEnvironment Source = "environment"
	// FromOtherInstance is the environment of another instance, which turns the lock
	// on while this one's turns it off.
	FromOtherInstance Source = "otherInstance"
)

// Settings are the lock settings in force for a tenant. Callers share Waits, so no caller
// may change it.
type Settings struct {
	// Enabled means that check-outs acquire the patron's lock.
	Enabled bool
	// TTL is how long the lock outlives a dead holder.
	TTL time.Duration
	// Waits are the waits between tries, in order: tries = len(Waits)+1.
	Waits []time.Duration

	// The sources of the three values above.
	EnabledSource, TTLSource, WaitsSource Source

	// These are the environment's.
	MachinePatience, LongestAnswer time.Duration

	// Version is storage's version of the settings; a commit without a lock shows it.
	// It is empty until storage was read.
	Version string
	// Announced means that the lock is on because an instance announced its environment to
	// storage. That can end, so a commit under the lock shows Version too.
	Announced bool
}

// WaitBudget is the longest that a check-out waits for the lock.
func (s Settings) WaitBudget() time.Duration {
	var sum time.Duration
	for _, w := range s.Waits {
		sum += w
	}
	return sum
}

// Environment holds the settings of a tenant that has set none of its own.
type Environment struct {
	Enabled bool
	TTL     time.Duration
	Waits   []time.Duration
	// MachinePatience is how long self-check machines wait for an answer. It changes no
	// behaviour: it helps staff to choose the other settings.
	MachinePatience time.Duration
	// LongestAnswer is the time after which no check-out is answered any more.
	LongestAnswer time.Duration
}

// Settings returns the environment's settings as those in force.
func (e Environment) Settings() Settings { return e.Merge(schemas.LockSettings{}) }

// Merge puts the tenant's settings over the environment's, field by field.
func (e Environment) Merge(own schemas.LockSettings) Settings {
	s := Settings{
		Enabled: e.Enabled, EnabledSource: FromEnvironment,
		TTL: e.TTL, TTLSource: FromEnvironment,
		Waits: slices.Clone(e.Waits), WaitsSource: FromEnvironment,
		MachinePatience: e.MachinePatience, LongestAnswer: e.LongestAnswer,
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

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
