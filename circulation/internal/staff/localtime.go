package staff

import (
	"slices"
	"time"
)

// localSpan returns the first and the last millisecond at which clocks in the zone
// show what was typed, a minute or a second as browsers send it. In the hour that
// clocks repeat in autumn, these are an hour and a minute apart, so that a search
// between two local times misses nothing. A time that clocks skip in spring stands
// for the moment at which they skip it.
func localSpan(typed string, zone *time.Location) (first, last time.Time, ok bool) {
	for _, form := range []struct {
		layout    string
		precision time.Duration
	}{{"2006-01-02T15:04", time.Minute}, {"2006-01-02T15:04:05", time.Second}} {
		wall, err := time.Parse(form.layout, typed)
		if err != nil {
			continue
		}
		found, skipped := instantsOf(wall.Truncate(time.Second), zone)
		if skipped {
			first, last = found[0], found[0]
		} else {
			first, last = found[0], found[len(found)-1].Add(form.precision-time.Millisecond)
		}
		return first, last, first.UTC().Year() >= 1 && last.Year() <= 9999
	}
	return time.Time{}, time.Time{}, false
}

// instantsOf returns the one or two instants, the earlier one first, at which clocks
// in the zone show the date and time of wall, which is in UTC. If they skip it, it
// returns the instant at which they do.
func instantsOf(wall time.Time, zone *time.Location) (found []time.Time, skipped bool) {
	near := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, zone)
	begin, end := near.ZoneBounds()
	offsets := []int{offsetAt(near)}
	if !begin.IsZero() {
		offsets = append(offsets, offsetAt(begin.Add(-time.Second)))
	}
	if !end.IsZero() {
		offsets = append(offsets, offsetAt(end))
	}
	for _, offset := range offsets {
		at := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if offsetAt(at) == offset && !slices.ContainsFunc(found, at.Equal) {
			found = append(found, at)
		}
	}
	slices.SortFunc(found, time.Time.Compare)
	switch {
	case len(found) > 0:
		return found, false
	case wallOf(near).After(wall):
		return []time.Time{begin}, true
	}
	return []time.Time{end}, true
}

// offsetAt is how many seconds clocks are ahead of UTC.
func offsetAt(t time.Time) int {
	_, offset := t.Zone()
	return offset
}

// wallOf is the date and time that clocks show at t, in UTC.
func wallOf(t time.Time) time.Time {
	return t.UTC().Add(time.Duration(offsetAt(t)) * time.Second)
}
