// Package okapi carries what a caller's X-Okapi headers said, from the HTTP server to
// the log, the database and outgoing calls. Its types hold one call of one tenant.
package okapi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"checkoutlock/schemas/fault"
)

// Headers of the FOLIO platform.
const (
	TenantHeader      = "X-Okapi-Tenant"      // names the tenant; mandatory on every business call
	UserIDHeader      = "X-Okapi-User-Id"     // the acting user; absent for system calls
	RequestIDHeader   = "X-Okapi-Request-Id"  // correlation id, passed on and logged
	PermissionsHeader = "X-Okapi-Permissions" // JSON array of granted permissions
	TokenHeader       = "X-Okapi-Token"       //nolint:gosec // a header's name; passed on unchanged
)

// Call is what one call said about itself. Empty fields were not sent.
type Call struct {
	Tenant      Tenant   // the library whose records the call is about
	RequestID   string   // correlation id; the HTTP server makes one if none was sent
	UserID      string   // the acting user, a UUID
	UserName    string   // the name that the acting user signed in with; no header has it
	Token       string   // passed on unchanged, never logged
	Permissions []string // granted to the acting user, as the gateway says
	// Machine names the caller for people: a terminal's login, or an address. A caller may lie about it.
	Machine string
}

// HasPermission reports whether the acting user was granted permission.
func (c Call) HasPermission(permission string) bool {
	return slices.Contains(c.Permissions, permission)
}

type contextKey struct{}

// NewContext returns a context that carries c. A zero Tenant keeps that of ctx.
func NewContext(ctx context.Context, c Call) context.Context {
	if c.Tenant == (Tenant{}) {
		c.Tenant = FromContext(ctx).Tenant
	}
	return Carry(ctx, &c)
}

// Carry is NewContext for a call that is still being read: the caller may add to c until
// it passes the context on. So a request needs one context only.
func Carry(ctx context.Context, c *Call) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// Carried returns the call of the nearest Carry, nil for none.
func Carried(ctx context.Context) *Call {
	c, _ := ctx.Value(contextKey{}).(*Call)
	return c
}

// FromContext returns the call that ctx carries, or the zero Call.
func FromContext(ctx context.Context) Call {
	if c := Carried(ctx); c != nil {
		return *c
	}
	return Call{}
}

// WithTenant returns a context whose call is about tenant and else that of ctx.
func WithTenant(ctx context.Context, tenant Tenant) context.Context {
	c := FromContext(ctx)
	c.Tenant = tenant
	return Carry(ctx, &c)
}

// TenantFrom returns the tenant of the call that ctx carries, or ErrNoTenant.
func TenantFrom(ctx context.Context) (Tenant, error) {
	tenant := FromContext(ctx).Tenant
	if tenant == (Tenant{}) {
		return Tenant{}, ErrNoTenant
	}
	return tenant, nil
}

// Tenant is a checked tenant id. The zero value is no tenant.
type Tenant struct{ id string }

// DrillTenant is the library of drills, which circulation installs. No other library may have this name.
const DrillTenant = "lock_drill"

// tenantPattern keeps the name of a tenant's PostgreSQL schema, which adds 24
// characters, below PostgreSQL's limit of 63 bytes, and safe to quote. PostgreSQL keeps pg_ for itself.
const tenantPattern = `^[a-z][a-z0-9_]{0,30}$`

// ErrNoTenant is a call that names no tenant (FOLIO's text).
var ErrNoTenant = fault.New(fault.Malformed, "Unable to process request Tenant must be set")

// ParseTenant checks a tenant id: a lower-case letter, then up to 30 lower-case
// letters, digits or underscores, and no pg_ at the begin.
func ParseTenant(id string) (Tenant, error) {
	odd := func(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }
	if len(id) < 1 || len(id) > 31 || id[0] < 'a' || strings.ContainsFunc(id, odd) || strings.HasPrefix(id, "pg_") {
		return Tenant{}, fmt.Errorf("tenant id must match %s and not begin with pg_", tenantPattern)
	}
	return Tenant{id: id}, nil
}

// String returns the id as it was given.
func (t Tenant) String() string { return t.id }
