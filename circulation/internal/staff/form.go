package staff

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web"
	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

// field is a field of a form, for the template "field". Its name is also its id in the
// page.
type field struct {
	Name, Label, Hint string // a hint may have several lines
	Type              string // of an input; empty is text
	Rows              int    // makes it a textarea
	Required          bool
	Value             string // as it was typed, also when it is wrong
	Wrong             string // what is wrong with it, in words; empty for nothing
}

// findProblems returns the fields that are wrong, for the template "problems".
func findProblems(fields ...field) []field {
	return slices.DeleteFunc(fields, func(f field) bool { return f.Wrong == "" })
}

// findDetail returns the detail of err about the parameter or property with the name.
func findDetail(err error, name string) (fault.Detail, bool) {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		for _, d := range f.Details {
			if len(d.Parameters) > 0 && d.Parameters[0].Key == name {
				return d, true
			}
		}
	}
	return fault.Detail{}, false
}

func (v *visit) readBarcode(name string, label texts.Code) field {
	q := web.QueryOf(v.c)
	f := field{Name: name, Label: v.say(label, nil), Value: strings.TrimSpace(q.Text(name))}
	switch n := utf8.RuneCountInString(f.Value); {
	case n > schemas.MaxHistoryText:
		f.Wrong = v.say("form.barcodeLong", texts.Values{"count": strconv.Itoa(n), "most": strconv.Itoa(schemas.MaxHistoryText)})
	case !utf8.ValidString(f.Value) || strings.ContainsRune(f.Value, 0):
		f.Wrong = v.say("form.barcodeWrong", nil)
	}
	return f
}

// checkReason returns the reason as it is stored; false if it cannot be used, and then sets Wrong.
func checkReason(r *page.Reason) (why string, usable bool) {
	why, err := schemas.ParseChangeReason(r.Value)
	switch {
	case err != nil:
		r.Wrong = describeReason(r.Value)
	case why == "":
		r.Wrong.Code = "reason.missing"
	}
	return why, r.Wrong.Code == ""
}

// describeReason says what is wrong with a reason that cannot be used. As for schemas.ParseChangeReason,
// a line break is one character.
func describeReason(reason string) texts.Text {
	if n := utf8.RuneCountInString(strings.TrimSpace(strings.ReplaceAll(reason, "\r\n", "\n"))); n > schemas.MaxChangeReason {
		return texts.Text{Code: "reason.long", Values: texts.Values{"most": strconv.Itoa(schemas.MaxChangeReason), "count": strconv.Itoa(n)}}
	}
	return texts.Text{Code: "reason.controls"}
}

// Local times that people type, in the visitor's time zone.

// readLocalTime returns the first and the last millisecond of the typed date and time;
// zero without one.
func (v *visit) readLocalTime(f *field) (first, last time.Time) {
	if f.Value == "" {
		return time.Time{}, time.Time{}
	}
	first, last, ok := findSpan(f.Value, v.reader.Zone)
	if !ok {
		f.Wrong = v.say("form.noTime", texts.Values{"typed": fault.Shown(f.Value)})
		return time.Time{}, time.Time{}
	}
	return first, last
}

// aroundMargin is how far a search around a time of day looks to both sides.
const aroundMargin = 10 * time.Minute

// readClock returns the last moment before now, or within aroundMargin after it, at which clocks showed the
// typed hour and minute, or skipped them. It returns false without one.
func (v *visit) readClock(f *field, now time.Time) (time.Time, bool) {
	if f.Value == "" {
		return time.Time{}, false
	}
	for _, layout := range []string{"15:04", "15.04", "3:04 PM", "3:04PM"} {
		clock, err := time.Parse(layout, strings.ToUpper(f.Value))
		if err != nil {
			continue
		}
		for day := now.Day() + 1; ; day-- {
			found, _ := findInstants(time.Date(now.Year(), now.Month(), day, clock.Hour(), clock.Minute(), 0, 0, time.UTC), now.Location())
			for _, at := range slices.Backward(found) {
				if !at.After(now.Add(aroundMargin)) {
					return at, true
				}
			}
		}
	}
	f.Wrong = v.say("form.noClock", texts.Values{"typed": fault.Shown(f.Value)})
	return time.Time{}, false
}

// findSpan returns the first and the last millisecond at which clocks in the zone show
// the typed minute or second. In the hour that clocks repeat in autumn, these are an
// hour and a minute apart. So a search between two local times misses nothing. A time
// that clocks skip in spring means the moment at which they skip it.
func findSpan(typed string, zone *time.Location) (first, last time.Time, ok bool) {
	for _, form := range []struct {
		layout    string
		precision time.Duration
	}{{"2006-01-02T15:04", time.Minute}, {"2006-01-02T15:04:05", time.Second}} {
		wall, err := time.Parse(form.layout, typed)
		if err != nil {
			continue
		}
		found, skipped := findInstants(wall.Truncate(time.Second), zone)
		if skipped {
			first, last = found[0], found[0]
		} else {
			first, last = found[0], found[len(found)-1].Add(form.precision-time.Millisecond)
		}
		return first, last, first.UTC().Year() >= 1 && last.Year() <= 9999
	}
	return time.Time{}, time.Time{}, false
}

// findInstants returns the one or two instants at which clocks in the zone show the
// date and time of wall, the earlier one first. wall is in UTC. If clocks skip that
// time, it returns the instant at which they do.
func findInstants(wall time.Time, zone *time.Location) (found []time.Time, skipped bool) {
	near := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, zone)
	begin, end := near.ZoneBounds()
	offsets := []int{utcOffset(near)}
	if !begin.IsZero() {
		offsets = append(offsets, utcOffset(begin.Add(-time.Second)))
	}
	if !end.IsZero() {
		offsets = append(offsets, utcOffset(end))
	}
	for _, offset := range offsets {
		at := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if utcOffset(at) == offset && !slices.ContainsFunc(found, at.Equal) {
			found = append(found, at)
		}
	}
	slices.SortFunc(found, time.Time.Compare)
	switch {
	case len(found) > 0:
		return found, false
	case near.UTC().Add(time.Duration(utcOffset(near)) * time.Second).After(wall):
		return []time.Time{begin}, true
	}
	return []time.Time{end}, true
}

// utcOffset is the number of seconds that clocks are ahead of UTC.
func utcOffset(t time.Time) int {
	_, offset := t.Zone()
	return offset
}

// nameZone names a time zone for the whole year: CET/CEST, for example, or UTC.
func nameZone(zone *time.Location, year int) string {
	january := time.Date(year, time.January, 1, 0, 0, 0, 0, zone).Format("MST")
	july := time.Date(year, time.July, 1, 0, 0, 0, 0, zone).Format("MST")
	if january == july {
		return january
	}
	return january + "/" + july
}
