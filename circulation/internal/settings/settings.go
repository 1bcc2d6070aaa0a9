// Package settings knows the check-out lock's settings: the environment's, the
// tenant's on top of them, and which of the two decides each. Whether the lock is on
// may also be decided by the environment of another instance.
package settings

import (
	"time"
)

// Source says where a value comes from.
type Source string

// The sources of a setting.
const (
	FromTenant      Source = "tenant"
	FromEnvironment Source = "environment"
	// FromOtherInstance is the environment of another instance, which turns the lock
	// on while this one's turns it off.
	FromOtherInstance Source = "otherInstance"
)

// Settings are the lock settings in force for a tenant. They are values: nobody
// may change Waits.
type Settings struct {
	// Enabled tells whether check-outs take the patron's lock.
	Enabled bool
	// TTL is how long the lock lives when its holder dies.
	TTL time.Duration
	// Waits are the waits between tries, in order: tries = len(Waits)+1.
	Waits []time.Duration

	// Where each of the three comes from.
	EnabledSource, TTLSource, WaitsSource Source

	// MachinePatience is the environment's.
	MachinePatience time.Duration

	// Version is storage's version of the settings; a commit without a lock shows it.
	// Empty when storage could not be asked yet.
	Version string
	// Announced means that the lock is on because storage heard it from an instance's
	// environment. That can end, so a commit under the lock shows Version too.
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
