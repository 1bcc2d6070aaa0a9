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

// dateRange holds for loan dates from one instant to another, both included.
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
// has the loan date; false if no range has it.
func (s FixedSchedule) findDueDate(loanDate time.Time) (time.Time, bool) {
	for _, r := range s.ranges {
		if !loanDate.Before(r.from) && !loanDate.After(r.to) {
			return r.due.In(loanDate.Location()), true
		}
	}
	return time.Time{}, false
}
