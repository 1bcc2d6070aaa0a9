// Package readiness decides which tenants this build can serve, by the migrations of their
// database schemas.
package readiness

import (
	"fmt"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

// State compares a tenant's schema with the migrations of this build.
type State string

// The states of a schema.
const (
	Current      State = "current"
	Behind       State = "lacks_migrations"
	Dirty        State = "dirty"
	NotInstalled State = "not_installed"
)

// Schema is the state of one tenant's database schema.
type Schema struct {
	Tenant okapi.Tenant
	// Installed means that the schema has our table of versions. An empty schema and that
	// of another module have none.
	Installed bool
	Version   uint // the last migration that ran; 0 is none
	Dirty     bool // the last migration did not end
	First     uint // the version that the first migration of this build gives a new schema
	Needed    uint // the version that this build needs
}

// State judges the schema. A schema of a newer build is current, because migrations do not
// break older builds.
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

// isTooOld returns whether the schema is below the first migration, so that this build cannot
// upgrade or repair it. A schema whose migrations were undone has version 0 and is not too old.
func (s Schema) isTooOld() bool { return s.Version > 0 && s.Version < s.First }

// Problem returns why the tenant is not served and what helps, "" for a current schema.
func (s Schema) Problem() string {
	if s.isTooOld() {
		return fmt.Sprintf("Tenant %s has migration %d, and this build begins with migration %d: "+
			"first upgrade it with a revision that still has the migrations up to %[3]d", s.Tenant, s.Version, s.First)
	}
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

// Fault returns the fault for requests of the tenant, nil for a current schema.
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
