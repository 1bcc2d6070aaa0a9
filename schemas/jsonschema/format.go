package jsonschema

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/google/uuid"

	"checkoutlock/schemas"
)

// format is a rule for strings that a schema names.
type format struct {
	name string
	fits func(string) bool
	rule string // what a value must be
}

var formats = [...]format{
	{"uuid", schemas.IsUUID, "must be a UUID, such as 0bab56e5-1ab6-4ac2-afdf-8b2df0434378"},
	{"new-uuid", isNewUUID, "must be a UUID and not the nil one"},
	{folioUUID, schemas.IsFolioUUID, fmt.Sprintf("must match %q", schemas.FolioUUID)},
	{"date-time", func(s string) bool { _, err := ParseTime(s); return err == nil }, ErrNoTime.Error()},
	{"sha-256", regexp.MustCompile(`^[0-9a-fA-F]{64}$`).MatchString, "must be a SHA-256 of 64 hexadecimal digits"},
	{printable, func(s string) bool { return schemas.IsPrintable(s, len(s)) }, "must have printable characters only"},
}

const (
	folioUUID = "folio-uuid"
	printable = "printable"
)

var nilUUID = uuid.Nil.String()

func isNewUUID(s string) bool { return schemas.IsUUID(s) && s != nilUUID }

// timePattern is ParseTime's shape. time.Parse alone accepts more than PostgreSQL
// does: hours of one digit, a comma before the fraction, offsets of a day.
var timePattern = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-](0\d|1[0-5]):?[0-5]\d)?)?$`)

// ErrNoTime is the error of ParseTime. Its text goes on after the name of the property.
var ErrNoTime = errors.New("must be a date and time as in RFC 3339, such as 2026-08-22T10:11:12.345Z, or a date")

// ParseTime reads a date as FOLIO's records hold it: RFC 3339, the same with an
// offset without colon or with none, or a bare date; what lacks an offset is UTC.
// Those are the forms that FOLIO's services (Jackson, Joda) read and write. PostgreSQL
// accepts them as timestamptz too: years 0001 to 9999 in UTC, offsets below 16 hours, at most
// 9 digits of a second.
func ParseTime(s string) (time.Time, error) {
	if !timePattern.MatchString(s) {
		return time.Time{}, ErrNoTime
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil && t.UTC().Year() >= 1 && t.UTC().Year() <= 9999 {
			return t, nil
		}
	}
	return time.Time{}, ErrNoTime
}
