package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// lastYear is the last year that a date-time in JSON (RFC 3339) can have.
const lastYear = 9999

// period is a time such as that of a rolling loan. duration is nil and interval empty if the policy
// leaves them out.
type period struct {
	duration *int
	interval string
}

// UnmarshalJSON reads FOLIO's {"duration":n,"intervalId":"…"}.
func (p *period) UnmarshalJSON(raw []byte) error {
	var record struct {
		Duration   *WholeNumber `json:"duration"`
		IntervalID string       `json:"intervalId"`
	}
	err := json.Unmarshal(raw, &record)
	*p = period{duration: (*int)(record.Duration), interval: record.IntervalID}
	return err
}

// FOLIO's codes of a period that is missing or has a wrong duration, at a renewal.
const (
	codeNoPeriod    = "LOAN_POLICY_RENEWAL_PERIOD_NOT_RECOGNIZED"
	codeBadDuration = "LOAN_POLICY_RENEWAL_PERIOD_DURATION_INVALID"
)

// computeEnd returns the end of a period that begins at start. Its error is a *DueDateError.
func (p period) computeEnd(start time.Time) (time.Time, error) {
	if p.interval == "" || p.duration == nil {
		return time.Time{}, &DueDateError{"the loan period in the loan policy is not recognised", codeNoPeriod}
	}
	n := *p.duration
	invalid := &DueDateError{fmt.Sprintf("the duration \"%d\" in the loan policy is invalid", n), codeBadDuration}
	if n <= 0 {
		return time.Time{}, invalid
	}
	end, known := p.shift(start, n)
	if !known {
		return time.Time{}, &DueDateError{
			fmt.Sprintf("the interval \"%s\" in the loan policy is not recognised", p.interval), "LOAN_POLICY_RENEWAL_PERIOD_INTERVAL_NOT_RECOGNIZED",
		}
	}
	if end.UTC().Year() > lastYear || end.Year() > lastYear {
		return time.Time{}, invalid
	}
	return end, nil
}

// shift returns start moved by n of the period's intervals; false for an unknown one.
func (p period) shift(start time.Time, n int) (time.Time, bool) {
	switch p.interval {
	case "Minutes":
		return addMinutes(start, n), true
	case "Hours":
		return addMinutes(start, 60*n), true
	case "Days":
		return start.AddDate(0, 0, n), true
	case "Weeks":
		return start.AddDate(0, 0, 7*n), true
	case "Months":
		return addMonths(start, n), true
	}
	return time.Time{}, false
}

// endNamed returns the end of a period that begins at start, or the date for a missing period. The
// error names the period.
func (p *period) endNamed(name string, start, missing time.Time) (time.Time, error) {
	if p == nil {
		return missing, nil
	}
	end, err := p.computeEnd(start)
	refused, ok := errors.AsType[*DueDateError](err)
	if !ok {
		return end, err
	}
	message := fmt.Sprintf("the interval \"%s\" in \"%s\" is not recognized", p.interval, name)
	switch refused.RenewalCode {
	case codeNoPeriod:
		message = fmt.Sprintf("the \"%s\" in the loan policy is not recognized", name)
	case codeBadDuration:
		message = fmt.Sprintf("the duration \"%d\" in \"%s\" is invalid", *p.duration, name)
	}
	return time.Time{}, &DueDateError{Message: message}
}

// addMinutes adds minutes of elapsed time, also across a change of the clocks in t's zone. It takes
// more than the 292 years of a time.Duration.
func addMinutes(t time.Time, n int) time.Time {
	const perDay = 24 * 60
	return t.UTC().AddDate(0, 0, n/perDay).Add(time.Duration(n%perDay) * time.Minute).In(t.Location())
}

// addMonths adds calendar months. A day that the month lacks becomes its last day, as in java.time:
// 31 January and one month is 28 or 29 February. time.AddDate would return a day in March.
func addMonths(t time.Time, n int) time.Time {
	first := time.Date(t.Year(), t.Month()+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
	lastDay := first.AddDate(0, 1, -1).Day()
	return time.Date(first.Year(), first.Month(), min(t.Day(), lastDay),
		t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
}

// HoldShelfPeriod is how long a service point keeps an item for the patron who requested it. The
// zero value has no end.
type HoldShelfPeriod struct{ period }

// Until returns the end of the period for an item that is put on the shelf now; false if it has no
// end. An invalid period has no end, because the item is back and has to wait in some place. A
// period of days or more lasts to the end of its last day (mod-circulation, UpdateRequestQueue), in
// now's time zone. Libraries count as always open.
func (p HoldShelfPeriod) Until(now time.Time) (time.Time, bool) {
	end, err := p.computeEnd(now)
	if err != nil {
		return time.Time{}, false
	}
	switch p.interval {
	case "Minutes", "Hours":
		return end, true
	}
	return time.Date(end.Year(), end.Month(), end.Day(), 23, 59, 59, 0, end.Location()), true
}

// KeptPeriod is how long closed loans keep their patron.
type KeptPeriod struct{ period }

// LastBegin returns the time before which a period began that has ended by now; false for a period
// without a number or a known interval. Of months it may be up to three days early.
func (p KeptPeriod) LastBegin(now time.Time) (time.Time, bool) {
	if p.duration == nil || *p.duration < 0 {
		return time.Time{}, false
	}
	begin, known := p.shift(now, -*p.duration)
	return begin, known && begin.Year() > 0
}

// WholeNumber is a JSON number without a fraction. It may be written 5.0, which JSON Schema calls
// an integer too.
type WholeNumber int

// UnmarshalJSON reads a number of at most 32 bits, as in FOLIO.
func (n *WholeNumber) UnmarshalJSON(raw []byte) error {
	var f float64
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	if f != math.Trunc(f) || f < math.MinInt32 || f > math.MaxInt32 {
		return errors.New("not a whole number of 32 bits: " + string(raw))
	}
	*n = WholeNumber(f)
	return nil
}
