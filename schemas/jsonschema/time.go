package jsonschema

import (
	"errors"
	"regexp"
	"time"
)

// timePattern is ParseTime's shape. time.Parse alone takes more than PostgreSQL
// does: hours of one digit, a comma before the fraction, offsets of a day.
var timePattern = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-](0\d|1[0-5]):?[0-5]\d)?)?$`)

var errNoTime = errors.New("must be a date and time as in RFC 3339, such as 2026-08-22T10:11:12.345Z, or a date")

// ParseTime reads a date as FOLIO's records hold it: RFC 3339, the same with an
// offset without colon or with none, or a bare date; what lacks an offset is UTC.
// Those are the forms that FOLIO's services (Jackson, Joda) read and write, and
// what passes is a timestamptz for PostgreSQL too: years 0001 to 9999, offsets
// below 16 hours, at most 9 digits of a second.
func ParseTime(s string) (time.Time, error) {
	if !timePattern.MatchString(s) {
		return time.Time{}, errNoTime
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil && t.UTC().Year() >= 1 {
			return t, nil
		}
	}
	return time.Time{}, errNoTime
}
