package reporter

import (
	"math"
	"strings"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library"
	"checkoutlock/schemas"
	"checkoutlock/schemas/redact"
)

// describeEnding returns an ending as storage accepts it. A machine may send anything, and storage
// refuses a whole report for one bad entry.
func describeEnding(e checkout.Ending) schemas.PastCheckOut {
	past := schemas.PastCheckOut{
		Outcome:        e.Outcome,
		Code:           cutText(e.Code, schemas.MaxHistoryText),
		Reason:         cutText(e.Reason, schemas.MaxHistoryReason),
		UserBarcode:    cutText(e.UserBarcode, schemas.MaxHistoryText),
		ItemBarcode:    cutText(e.ItemBarcode, schemas.MaxHistoryText),
		UserID:         library.KeepUUID(e.UserID),
		LoanID:         library.KeepUUID(e.LoanID),
		ServicePointID: library.KeepUUID(e.ServicePointID),
		TookMs:         milliseconds(e.Took),
		Repeats:        e.Repeats,
	}
	if e.Wait != nil {
		past.WaitMs = new(milliseconds(*e.Wait))
	}
	return past
}

// cutText cuts a text to a number of characters, and removes what PostgreSQL cannot keep. It
// copies the beginning of a cut text, so that a barcode of a megabyte does not stay in memory.
func cutText(s string, most int) string {
	s, length := redact.Cut(strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", ""), most)
	if length > 0 {
		return strings.Clone(s)
	}
	return s
}

// milliseconds rounds to the nearest one, up to the most that storage accepts.
func milliseconds(d time.Duration) int {
	return int(min(schemas.MaxHistoryMs, math.Round(d.Seconds()*1000)))
}
