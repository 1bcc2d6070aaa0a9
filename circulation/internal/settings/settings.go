// Package settings knows the check-out lock's settings: the environment's, the
// tenant's on top of them, and which of the two decides each.
package settings

import (
	"time"
)

// Source says where a value comes from.
type Source string

// The two sources of a setting.
const (
	FromTenant      Source = "tenant"
	FromEnvironment Source = "environment"
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

	// Version is storage's version of the tenant's entry; a commit without a lock
	// shows it. Empty when storage could not be asked yet.
	Version string
}

// WaitBudget is the longest that a check-out waits for the lock.
func (s Settings) WaitBudget() time.Duration {
	var sum time.Duration
	for _, w := range s.Waits {
		sum += w
	}
	return sum
}
