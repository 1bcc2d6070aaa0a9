package reporter

import (
	"math"
	"strings"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/schemas"
)

// describe is an ending as storage keeps it: what came from a machine may be
// anything, and one entry that storage refuses would take the others with it.
func describe(e checkout.Ending) schemas.PastCheckOut {
	past := schemas.PastCheckOut{
		Outcome:        e.Outcome,
		Code:           fit(e.Code, schemas.MaxHistoryText),
		Reason:         fit(e.Reason, schemas.MaxHistoryReason),
		UserBarcode:    fit(e.UserBarcode, schemas.MaxHistoryText),
		ItemBarcode:    fit(e.ItemBarcode, schemas.MaxHistoryText),
		UserID:         onlyUUID(e.UserID),
		LoanID:         onlyUUID(e.LoanID),
		ServicePointID: onlyUUID(e.ServicePointID),
		TookMs:         milliseconds(e.Took),
		Repeats:        e.Repeats,
	}
	if e.Wait != nil {
		ms := milliseconds(*e.Wait)
		past.WaitMs = &ms
	}
	return past
}

// fit cuts a text to so many characters, and leaves out what PostgreSQL cannot
// keep. What is cut is copied: a barcode of a megabyte must not stay for the sake
// of its beginning.
func fit(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")
	if len(s) <= most {
		return s
	}
	n := 0
	for i := range s {
		if n == most {
			return strings.Clone(s[:i])
		}
		n++
	}
	return s
}

func onlyUUID(id string) string {
	if !schemas.IsUUID(id) {
		return ""
	}
	return id
}

// milliseconds rounds to the nearest.
func milliseconds(d time.Duration) int {
	return int(min(schemas.MaxHistoryMs, math.Round(d.Seconds()*1000)))
}
