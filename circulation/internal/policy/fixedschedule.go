package policy

import (
	"encoding/json"
	"fmt"
	"time"

	"checkoutlock/schemas/jsonschema"
)

// FixedSchedule is a stored fixed due date schedule: for each range of loan dates the one date on
// which everything lent in it is due. The zero FixedSchedule has no range.
type FixedSchedule struct{ ranges []dateRange }

// dateRange holds for loan dates after one instant and before another, as in FOLIO, by milliseconds.
type dateRange struct{ from, to, due time.Time }

// ParseFixedSchedule reads a record of FOLIO's
// /fixed-due-date-schedule-storage/fixed-due-date-schedules. Unknown fields are ignored. The error
// names the date that is missing or no date.
func ParseFixedSchedule(raw []byte) (FixedSchedule, error) {
	var record struct {
		ID        string `json:"id"`
		Schedules []struct {
			From string `json:"from"`
			To   string `json:"to"`
			Due  string `json:"due"`
		} `json:"schedules"`
	}
	if err := json.Unmarshal(raw, &record); err != nil {
		return FixedSchedule{}, fmt.Errorf("read fixed due date schedule: %w", err)
	}
	s := FixedSchedule{ranges: make([]dateRange, len(record.Schedules))}
	for i, written := range record.Schedules {
		r := &s.ranges[i]
		for _, date := range []struct {
			name, value string
			to          *time.Time
		}{{"from", written.From, &r.from}, {"to", written.To, &r.to}, {"due", written.Due, &r.due}} {
			var err error
			if *date.to, err = jsonschema.ParseTime(date.value); err != nil {
				return FixedSchedule{}, fmt.Errorf("read fixed due date schedule %q: schedules[%d].%s %w", record.ID, i, date.name, err)
			}
		}
	}
	return s, nil
}

// findDueDate returns when an item lent at loanDate is due: the due date of the first range that
// has the loan date. A date that no range has is a *DueDateError with message and code: such a
// schedule must not count as one that does not limit.
func (s FixedSchedule) findDueDate(loanDate time.Time, message, code string) (time.Time, error) {
	for _, r := range s.ranges {
		if at := loanDate.UnixMilli(); r.from.UnixMilli() < at && at < r.to.UnixMilli() {
			return r.due.In(loanDate.Location()), nil
		}
	}
	return time.Time{}, &DueDateError{message, code}
}

// limitDay returns due, or the schedule's date for the instant at if that is on an earlier day.
func (s FixedSchedule) limitDay(at, due time.Time) time.Time {
	if limit, err := s.findDueDate(at, "", ""); err == nil && limit.Before(due.Truncate(24*time.Hour)) {
		return limit
	}
	return due
}

// endWithinSchedule returns the end of a period that begins at start, or the schedule's date if that is
// earlier. Without a scheduleID no schedule limits it. Its error is a *DueDateError.
func (p period) endWithinSchedule(start time.Time, scheduleID string, readSchedule func() (time.Time, error)) (time.Time, error) {
	due, err := p.computeEnd(start)
	if err != nil || scheduleID == "" {
		return due, err
	}
	limit, err := readSchedule()
	if err == nil && limit.Before(due) {
		due = limit
	}
	return due, err
}
