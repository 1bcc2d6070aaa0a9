// Package tenant names the library whose records a request is about.
package tenant

import (
	"context"
	"errors"
	"fmt"
	"regexp"
)

// ID is a checked tenant id. The zero value is no tenant.
type ID struct{ name string }

// The pattern keeps `<tenant>_mod_circulation_storage` below PostgreSQL's 63
// bytes for identifiers, and safe to quote.
var pattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`)

const schemaSuffix = "_mod_circulation_storage"

// ErrMissing is a request that names no tenant.
var ErrMissing = errors.New("no tenant")

// Parse checks a tenant id: a lower-case letter, then up to 30 lower-case
// letters, digits or underscores.
func Parse(s string) (ID, error) {
	if !pattern.MatchString(s) {
		return ID{}, fmt.Errorf("tenant id must match %s", pattern)
	}
	return ID{name: s}, nil
}

// FromSchema is the way back from a schema's name; false for any other schema.
func FromSchema(schema string) (ID, bool) {
	n := len(schema) - len(schemaSuffix)
	if n <= 0 || schema[n:] != schemaSuffix {
		return ID{}, false
	}
	id, err := Parse(schema[:n])
	return id, err == nil
}

// String returns the id as it was given.
func (id ID) String() string { return id.name }

// Schema returns the name of the tenant's database schema (FOLIO's form:
// tenant and module name joined by an underscore).
func (id ID) Schema() string { return id.name + schemaSuffix }

type key struct{}

// NewContext returns a context that carries id.
func NewContext(ctx context.Context, id ID) context.Context {
	return context.WithValue(ctx, key{}, id)
}

// FromContext returns the tenant that NewContext put there, or ErrMissing.
func FromContext(ctx context.Context) (ID, error) {
	id, ok := ctx.Value(key{}).(ID)
	if !ok || id == (ID{}) {
		return ID{}, ErrMissing
	}
	return id, nil
}
