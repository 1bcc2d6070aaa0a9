package schemas

// Outcomes that more than one service knows.
const (
	OutcomeLent            = "lent" // of a check-out that was done, and no other's
	OutcomeLimitReached    = "limit_reached"
	OutcomeLockNotAcquired = "lock_not_acquired"
)

// Bounds of the history of check-outs.
const (
	MaxHistoryBatch  = 500    // check-outs in one POST
	MaxHistoryPage   = 200    // check-outs in one GET
	MaxHistoryOffset = 10_000 // check-outs before a page
	MaxHistoryReason = 1000   // characters of a reason
	MaxHistoryText   = 255    // characters of any other text
	MaxMachineName   = 64     // characters of a machine's name
	// MaxHistoryMs is the longest time of an entry in milliseconds: an hour.
	MaxHistoryMs     = 3_600_000
	MaxReportedWaits = 100
	MaxSlowest       = 10
	SlowestMinutes   = 5
	MaxOverLimit     = 100
	MaxUnknownPlaces = 50
	LimitCheckDays   = 30
	// MaxFigureMinutes is the longest time that figures are made of: a day.
	MaxFigureMinutes = 24 * 60
	// MaxFigureSpan is the longest time of figures by buckets, in minutes: 30 days. MaxFigureMinutes is
	// the largest number of buckets.
	MaxFigureSpan = 30 * 24 * 60
	// MaxFigureBucket is the longest bucket in minutes.
	MaxFigureBucket = 240
)

// PastCheckOut is a check-out that ended, as the history keeps it (ours). The
// history answers questions; it is no ledger: entries may be lost with the process
// that has not sent them yet.
type PastCheckOut struct {
	// ID is chosen by circulation, so that an entry that is sent twice is kept once.
	ID string `json:"id"`
	// Date is when it ended, by the database's clock. Storage sets it.
	Date string `json:"date,omitempty"`
	// AgoMs is how long ago it ended when the entry was sent, at most MaxHistoryMs.
	// Storage turns it into Date, so that no other clock counts.
	AgoMs int64 `json:"agoMs,omitempty"`
	// Outcome is one of few words, such as OutcomeLent or limit_reached: lower-case
	// letters and underscores, at most 40.
	Outcome string `json:"outcome"`
	// Code is that of the first error that has one. An error whose message names a
	// title, a barcode or an id has a code of circulation's own. Reason has all
	// messages, and why a lock was not obtained; at most MaxHistoryReason characters.
	// Both are empty for a loan.
	Code   string `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`

	UserBarcode    string `json:"userBarcode,omitempty"`
	ItemBarcode    string `json:"itemBarcode,omitempty"`
	UserID         string `json:"userId,omitempty"` // absent when no such patron was found
	LoanID         string `json:"loanId,omitempty"` // of a loan that was made
	ServicePointID string `json:"servicePointId,omitempty"`
	// Machine is the login of a self-check machine, or else the caller's address; at most MaxMachineName.
	Machine string `json:"machine,omitempty"`
	// StaffID is the user who called. FOLIO's circulation log names it; the history does not keep it.
	StaffID string `json:"staffId,omitempty"`

	// WaitMs is how long it waited for the patron's lock in all; absent when it asked
	// for none.
	WaitMs *int `json:"waitMs,omitempty"`
	TookMs int  `json:"tookMs"`
	// Repeats is how often its commit was sent again, for a lost lock say.
	Repeats   int    `json:"repeats,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	// Instance is the circulation instance that did it. Storage sets it, from the
	// header X-Lock-Holder.
	Instance string `json:"instance,omitempty"`
}

// CheckOutReport is the body of POST /check-out-history-storage/check-outs: how
// check-outs of one tenant ended in one instance of circulation.
type CheckOutReport struct {
	// Waiting is how many of its check-outs wait for a patron's lock now. A report
	// counts for 5 s.
	Waiting int `json:"waiting"`
	// Waits are those check-outs, longest first, at most MaxReportedWaits.
	Waits     []LockWait     `json:"waits,omitempty"`
	Version   string         `json:"version,omitempty"` // of the instance
	CheckOuts []PastCheckOut `json:"checkOuts"`         // at most MaxHistoryBatch
}

// LockWait is a check-out that waits for a patron's lock now.
type LockWait struct {
	UserID         string `json:"userId,omitempty"`
	RequestID      string `json:"requestId,omitempty"`
	ServicePointID string `json:"servicePointId,omitempty"`
	Machine        string `json:"machine,omitempty"` // as in PastCheckOut
	WaitedMs       int64  `json:"waitedMs"`
	Instance       string `json:"instance,omitempty"` // storage sets it
}

// LockWaits are the check-outs that wait now, longest first, and the ended ones that waited longest
// in the last SlowestMinutes.
type LockWaits struct {
	Waiting []LockWait     `json:"waiting"`
	Slowest []PastCheckOut `json:"slowest"` // at most MaxSlowest
}

// LimitCheck is whether the limit held.
type LimitCheck struct {
	Date string `json:"date"`
	// LimitReached counts the check-outs that were refused at the limit since the time asked for.
	LimitReached int `json:"limitReached"`
	// OverLimit are the ids of patrons with a loan beyond a limit that its check-out counted, at most
	// MaxOverLimit. It counts the newest 10,000 check-outs of the last LimitCheckDays days.
	OverLimit []string `json:"overLimit"`
	// Instances of circulation that reported in the last day, by name.
	Instances []ReportingInstance `json:"instances"`
	// UnknownPlaces are the machines that sent a service point that does not exist, in the last day, at
	// most MaxUnknownPlaces. The newest comes first.
	UnknownPlaces []UnknownPlace `json:"unknownPlaces"`
}

// UnknownPlace is a service point that does not exist, as a machine sent it. FOLIO lends there too.
type UnknownPlace struct {
	ServicePointID string `json:"servicePointId"`
	Machine        string `json:"machine,omitempty"` // as in PastCheckOut; absent for one of an earlier build
	CheckOuts      int    `json:"checkOuts"`         // of the last day, lent or refused
	Date           string `json:"date"`              // of the last one
}

// ReportingInstance is an instance of circulation. It reports while it lends in the library.
type ReportingInstance struct {
	Instance string `json:"instance"`
	Version  string `json:"version,omitempty"` // absent for one of an earlier build
	Date     string `json:"date"`              // of its last report
}

// PastCheckOuts is a page of the history, newest first.
type PastCheckOuts struct {
	CheckOuts []PastCheckOut `json:"checkOuts"`
	// More says that the history goes on after this page. They are not counted, since
	// that would read them all.
	More bool `json:"more"`
}

// HistoryFilter selects past check-outs; its zero value is the newest of all.
type HistoryFilter struct {
	UserBarcode string // equal, regardless of case
	ItemBarcode string // likewise
	// ServicePointID is a UUID.
	ServicePointID string
	Outcome        string
	Code           string // exactly; empty is any
	From, Until    string // RFC 3339, both inclusive
	Offset         int    // at most 10000
	Limit          int    // 1 to MaxHistoryPage
}

// FigureFilter selects figures.
type FigureFilter struct {
	Minutes        int    // how far back, a multiple of Bucket; 1 to MaxFigureSpan
	Bucket         int    // minutes of a bucket, 1 to MaxFigureBucket; 0 is 1
	ServicePointID string // a UUID; empty is any. Waiting and Held are of all
}

// Figures are computed from the history of the last minutes, by the database's clock.
type Figures struct {
	Date    string `json:"date"`
	Waiting int    `json:"waiting"` // check-outs that wait for a lock now, on all instances
	Held    int    `json:"held"`    // locks held now, outdated ones not counted
	// Minutes are the last ones without gaps, oldest first; the last is under way. With longer buckets, each
	// is a bucket, which begins at a multiple of its length since 1970 in UTC.
	Minutes []FigureMinute `json:"minutes"`
	// Total is about all minutes together.
	Total FigureTotal `json:"total"`
	// Causes are why check-outs were not lent, most frequent first. After 10 of them
	// what is left is one more, with neither outcome, code nor reason.
	Causes []FigureCause `json:"causes"`
}

// FigureTotal counts check-outs. The waits are of those that asked for a lock, also
// of those that got it at once; absent when there were none.
type FigureTotal struct {
	CheckOuts int  `json:"checkOuts"`
	Lent      int  `json:"lent"`
	Locked    int  `json:"locked"` // asked for a lock
	WaitP50Ms *int `json:"waitP50Ms,omitempty"`
	WaitP95Ms *int `json:"waitP95Ms,omitempty"`
	WaitMaxMs *int `json:"waitMaxMs,omitempty"`
}

// FigureMinute is the FigureTotal of one minute, or of one bucket.
type FigureMinute struct {
	Date string `json:"date"` // its beginning
	FigureTotal
}

// FigureCause is how often a cause occurred. Check-outs without a code are
// distinguished by their reason. Reasons hide the barcodes of patron and item, as package
// redact does.
type FigureCause struct {
	Outcome string `json:"outcome,omitempty"`
	Code    string `json:"code,omitempty"`
	Reason  string `json:"reason,omitempty"` // an example when there is a code
	Count   int    `json:"count"`
}
