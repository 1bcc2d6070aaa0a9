package schemas

// Headers of the FOLIO platform, and ours.
const (
	TenantHeader      = "X-Okapi-Tenant"      // names the tenant; mandatory on every business call
	UserIDHeader      = "X-Okapi-User-Id"     // the acting user; absent for system calls
	RequestIDHeader   = "X-Okapi-Request-Id"  // correlation id, passed on and logged
	PermissionsHeader = "X-Okapi-Permissions" // JSON array of granted permissions
	TokenHeader       = "X-Okapi-Token"       //nolint:gosec // a header's name; passed on unchanged
	HolderHeader      = "X-Lock-Holder"       // ours: the instance that asks for a lock, for whoever looks at locks

	IdempotencyKeyHeader = "Idempotency-Key" // makes a check-out repeatable; draft-ietf-httpapi-idempotency-key-header
)

// MaxInstanceName is how many characters HolderHeader may have, all of them
// printable.
const MaxInstanceName = 100
