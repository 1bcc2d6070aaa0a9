package okapi

import (
	"errors"
	"fmt"
	"regexp"
)

// Tenant is a checked tenant id. The zero value is no tenant.
type Tenant struct{ id string }

// tenantPattern keeps the name of a tenant's PostgreSQL schema, which adds 24
// characters, below PostgreSQL's limit of 63 bytes, and safe to quote.
var tenantPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`)

// ErrNoTenant is a call that names no tenant.
var ErrNoTenant = errors.New("no tenant")

// ParseTenant checks a tenant id: a lower-case letter, then up to 30 lower-case
// letters, digits or underscores.
func ParseTenant(id string) (Tenant, error) {
	if !tenantPattern.MatchString(id) {
		return Tenant{}, fmt.Errorf("tenant id must match %s", tenantPattern)
	}
	return Tenant{id: id}, nil
}

// String returns the id as it was given.
func (t Tenant) String() string { return t.id }
