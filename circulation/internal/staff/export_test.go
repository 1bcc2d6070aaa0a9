package staff

import "time"

// FindSpan is findSpan for tests, which cannot change the time zone of the process.
var FindSpan = findSpan

// ReadClock reads a time of day, seen at the moment and in the zone of the second argument.
func ReadClock(typed string, now time.Time) (time.Time, bool) {
	return (&visit{}).readClock(&field{Value: typed}, now)
}
