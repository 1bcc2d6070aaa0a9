package schemas

// Headers beside those of package okapi.
const (
	HolderHeader = "X-Lock-Holder" // ours: the instance that asks for a lock; operators see it

	IdempotencyKeyHeader = "Idempotency-Key" // makes a check-out repeatable; draft-ietf-httpapi-idempotency-key-header
)

// MaxInstanceName is how many characters HolderHeader may have, all of them
// printable.
const MaxInstanceName = 100
