package policy

import (
	"fmt"
	"strings"
	"time"
)

// DueDateError says why a policy gives no due date for a loan. FOLIO answers
// 422 with this message and the policy's id and name.
type DueDateError struct{ Message string }

// Error returns the message.
func (e *DueDateError) Error() string { return e.Message }

// lastYear is the last one that a date-time in JSON (RFC 3339) can have.
const lastYear = 9999

// DueDate returns when an item lent at loanDate is due: loanDate plus the
// policy's period, but not later than patronExpires (zero for never). Days,
// weeks and months are those of the calendar in loanDate's time zone, and the
// result is in that zone. The opening hours of libraries are not regarded.
//
// The error is always a *DueDateError. Fixed due date schedules do not exist in
// this version: a policy that names one, be it as its profile or as a limit to
// a rolling period, is refused, as without it the item would be lent too long.
//
// Source: FOLIO's RollingCheckOutDueDateStrategy, with its messages.
func (p LoanPolicy) DueDate(loanDate, patronExpires time.Time) (time.Time, error) {
	switch {
	case strings.EqualFold(p.profile, "Fixed"):
		return time.Time{}, &DueDateError{`profile "Fixed" in the loan policy is not supported: this version has no fixed due date schedules`}
	case !strings.EqualFold(p.profile, "Rolling"):
		return time.Time{}, &DueDateError{fmt.Sprintf("profile \"%s\" in the loan policy is not recognised", p.profile)}
	}
	due, err := p.period.after(loanDate)
	if err != nil {
		return time.Time{}, err
	}
	if p.scheduleID != "" {
		return time.Time{}, &DueDateError{"the due date limit in the loan policy is not supported: this version has no fixed due date schedules"}
	}
	if !patronExpires.IsZero() && due.After(patronExpires) {
		due = patronExpires.In(loanDate.Location())
	}
	return due, nil
}

// after returns the end of a period that begins at start.
func (p period) after(start time.Time) (time.Time, error) {
	if p.interval == "" || p.duration == nil {
		return time.Time{}, &DueDateError{"the loan period in the loan policy is not recognised"}
	}
	n := *p.duration
	invalid := &DueDateError{fmt.Sprintf("the duration \"%d\" in the loan policy is invalid", n)}
	if n <= 0 {
		return time.Time{}, invalid
	}
	var end time.Time
	switch p.interval {
	case "Minutes":
		end = plusMinutes(start, n)
	case "Hours":
		end = plusMinutes(start, 60*n)
	case "Days":
		end = start.AddDate(0, 0, n)
	case "Weeks":
		end = start.AddDate(0, 0, 7*n)
	case "Months":
		end = plusMonths(start, n)
	default:
		return time.Time{}, &DueDateError{fmt.Sprintf("the interval \"%s\" in the loan policy is not recognised", p.interval)}
	}
	if end.UTC().Year() > lastYear || end.Year() > lastYear {
		return time.Time{}, invalid
	}
	return end, nil
}

// plusMinutes adds minutes that have really passed, whatever the clocks of t's
// zone do. It takes more than the 292 years of a time.Duration.
func plusMinutes(t time.Time, n int) time.Time {
	const perDay = 24 * 60
	return t.UTC().AddDate(0, 0, n/perDay).Add(time.Duration(n%perDay) * time.Minute).In(t.Location())
}

// plusMonths adds calendar months. A day that the month does not have becomes
// its last day, as in java.time (31 January and one month is 28 or 29 February),
// where time.AddDate would go on into March.
func plusMonths(t time.Time, n int) time.Time {
	first := time.Date(t.Year(), t.Month()+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
	lastDay := first.AddDate(0, 1, -1).Day()
	return time.Date(first.Year(), first.Month(), min(t.Day(), lastDay),
		t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
}
