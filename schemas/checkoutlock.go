package schemas

// Bounds of the lock API, in milliseconds.
const (
	MaxLockTTLMs  = 600_000 // ttlMs: 0 to this; 0 takes over at once
	MaxLockWaitMs = 10_000  // waitMs: 0 to this
)

// MaxLockPage is the most locks in one GET.
const MaxLockPage = 1000

// CheckoutLockRequest is the body of POST /check-out-lock-storage. FOLIO knows
// userId and ttlMs; requestId and waitMs are ours and optional.
type CheckoutLockRequest struct {
	UserID string `json:"userId"`
	// TTLMs is the lock's time to live in milliseconds; absent means the
	// storage's LOCK_TTL_MS.
	TTLMs *int `json:"ttlMs,omitempty"`
	// AcquisitionID makes the request repeatable: while its lock lives, the same id
	// gets the same lock again, renewed.
	AcquisitionID string `json:"requestId,omitempty"`
	// WaitMs is how long storage waits for the lock before it answers "held".
	WaitMs int `json:"waitMs,omitempty"`
}

// CheckoutLock is a lock as POST and GET answer it. FOLIO knows the first three
// fields. Dates have milliseconds and a numeric offset, as FOLIO writes them.
type CheckoutLock struct {
	ID             string `json:"id"`
	UserID         string `json:"userId"`
	CreationDate   string `json:"creationDate"`
	TTLMs          int    `json:"ttlMs"`
	ExpirationDate string `json:"expirationDate"`
	Outdated       bool   `json:"outdated"`
	AgeMs          int64  `json:"ageMs"` // since CreationDate, by the database's clock
	AcquisitionID  string `json:"requestId,omitempty"`
	// OkapiRequestID is the X-Okapi-Request-Id of the call that got or renewed the
	// lock, so of the check-out that holds it. Locks of older versions have none.
	OkapiRequestID string `json:"okapiRequestId,omitempty"`
	Holder         string `json:"holder,omitempty"`
}

// CheckoutLocks is the list of locks. The key's lower-case "o" is FOLIO's.
type CheckoutLocks struct {
	CheckoutLocks []CheckoutLock `json:"checkoutLocks"`
	TotalRecords  int            `json:"totalRecords"`
}

// FolioTime is the layout of dates that FOLIO's services write.
const FolioTime = "2006-01-02T15:04:05.000-07:00"
