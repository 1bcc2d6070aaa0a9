// Package readiness knows which tenants this build can serve, by the migrations
// that their database schemas have.
package readiness

import (
	"fmt"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// State is how a tenant's schema stands to the migrations of this build.
type State string

// The states of a schema.
const (
	Current      State = "current"
	Behind       State = "lacks_migrations"
	Dirty        State = "dirty"
	NotInstalled State = "not_installed"
)

// installedStates returns the states that a schema with our table of versions has.
func installedStates() []State { return []State{Current, Behind, Dirty} }

// Schema is what one tenant's database schema has.
type Schema struct {
	Tenant okapi.Tenant
	// Installed says that the schema has our table of versions. An empty schema has
	// none, and neither has the schema that another module keeps under this name.
	Installed bool
	// Version is the last migration that ran; 0 is none.
	Version uint
	// Dirty says that this migration did not end.
	Dirty bool
	// Needed is the version that this build needs.
	Needed uint
}

// State judges the schema. A schema of a newer build is current, because
// migrations leave working what older builds use.
func (s Schema) State() State {
	switch {
	case !s.Installed:
		return NotInstalled
	case s.Dirty:
		return Dirty
	case s.Version < s.Needed:
		return Behind
	}
	return Current
}

// Problem says why the tenant is not served and which command helps; "" for a
// schema that is current.
func (s Schema) Problem() string {
	switch s.State() {
	case NotInstalled:
		return fmt.Sprintf("Unknown tenant %[1]s: install it with circulation-storage migrate -tenant %[1]s, or with POST /_/tenant", s.Tenant)
	case Dirty:
		return fmt.Sprintf("Migration %d of tenant %[2]s did not end and left the schema dirty, this build needs migration %[3]d: "+
			"repair it with circulation-storage migrate -repair -tenant %[2]s", s.Version, s.Tenant, s.Needed)
	case Behind:
		return fmt.Sprintf("Tenant %[1]s has migration %[2]d, this build needs migration %[3]d: "+
			"upgrade it with circulation-storage migrate -tenant %[1]s, or with POST /_/tenant", s.Tenant, s.Version, s.Needed)
	case Current:
	}
	return ""
}

// Fault returns the fault for requests of the tenant, nil for a schema that is
// current.
func (s Schema) Fault() error {
	switch s.State() {
	case NotInstalled:
		return fault.New(fault.UnknownTenant, "%s", s.Problem())
	case Dirty, Behind:
		return fault.New(fault.TenantNotReady, "%s", s.Problem())
	case Current:
	}
	return nil
}
