package wire

import (
	"strings"
	"time"
)

const (
	dayLayout  = "20060102"
	timeLayout = "150405"
	// localZone stands between day and time of a date in local time.
	localZone = "    "
)

// FormatDate writes 18 characters: day, four blanks, and the time in the zone of t. The zero
// time is 18 blanks.
func FormatDate(t time.Time) string {
	if t.IsZero() {
		return strings.Repeat(" ", dateWidth)
	}
	return t.Format(dayLayout + localZone + timeLayout)
}

// parseDate reads a date with any zone of SIP2. Zeros in place of a zone mean local.
func parseDate(text string, local *time.Location) (time.Time, bool) {
	if len(text) != dateWidth {
		return time.Time{}, false
	}
	day, zone, clock := text[:8], text[8:12], text[12:]
	location, known := zoneOf(zone, local)
	if !known {
		return time.Time{}, false
	}
	t, err := time.ParseInLocation(dayLayout+timeLayout, day+clock, location)
	return t, err == nil
}

// zoneOf reads the military letters of zones: A to M without J are hours east, N to Y west.
func zoneOf(zone string, local *time.Location) (*time.Location, bool) {
	if zone == localZone || zone == "0000" {
		return local, true
	}
	letter := zone[len(zone)-1]
	switch {
	case zone[:len(zone)-1] != localZone[1:]:
		return nil, false
	case letter == 'Z':
		return time.UTC, true
	case 'A' <= letter && letter <= 'I':
		return hoursEast(int(letter-'A') + 1), true
	case 'K' <= letter && letter <= 'M':
		return hoursEast(int(letter-'K') + 10), true
	case 'N' <= letter && letter <= 'Y':
		return hoursEast(-int(letter-'N') - 1), true
	default:
		return nil, false
	}
}

func hoursEast(hours int) *time.Location { return time.FixedZone("", hours*60*60) }
