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

// Terms are what a due date depends on besides the policy.
type Terms struct {
	LoanDate time.Time
	// PatronExpires is when the patron's card does; zero for never.
	PatronExpires time.Time
	// Schedule is the record that the policy's ScheduleID names.
	Schedule FixedSchedule
	// HoldWaits says that a hold which no item is set aside for yet waits for the
	// item, besides the request that the check-out fills.
	HoldWaits bool
}

// DueDate returns when an item lent at t.LoanDate is due: on the date of the
// schedule (profile Fixed), or after the policy's period (Rolling), which is the
// alternate one, if the policy has one, when a hold waits, and ends no later than
// the schedule allows. It is never later than t.PatronExpires. Days, weeks and
// months are those of the calendar in the loan date's time zone, and the result
// is in that zone. Libraries count as always open: opening hours are not regarded.
//
// The error is always a *DueDateError.
//
// Source: FOLIO's RollingCheckOutDueDateStrategy and
// FixedScheduleCheckOutDueDateStrategy, with their messages.
func (p LoanPolicy) DueDate(t Terms) (time.Time, error) {
	return byProfile(p.profile, t.fixed, func() (time.Time, error) { return p.rolling(t) }, t.PatronExpires)
}

// byProfile is the date that the profile's way of counting gives, no later than
// the patron's card expires.
func byProfile(profile string, fixed, rolling func() (time.Time, error), expires time.Time) (due time.Time, err error) {
	switch {
	case strings.EqualFold(profile, "Fixed"):
		due, err = fixed()
	case strings.EqualFold(profile, "Rolling"):
		due, err = rolling()
	default:
		err = &DueDateError{fmt.Sprintf("profile \"%s\" in the loan policy is not recognised", profile)}
	}
	if err != nil {
		return time.Time{}, err
	}
	if !expires.IsZero() && due.After(expires) {
		due = expires.In(due.Location())
	}
	return due, nil
}

func (p LoanPolicy) rolling(t Terms) (time.Time, error) {
	span := p.period
	if t.HoldWaits && p.alternate != nil {
		span = *p.alternate
	}
	due, err := span.after(t.LoanDate)
	if err != nil || p.ScheduleID == "" {
		return due, err
	}
	return noLater(due, t.fixed)
}

// noLater is due, or the schedule's date if that is earlier.
func noLater(due time.Time, scheduled func() (time.Time, error)) (time.Time, error) {
	limit, err := scheduled()
	if err == nil && limit.Before(due) {
		due = limit
	}
	return due, err
}

// fixed is the schedule's date. A schedule without a range for the loan date
// must not pass for one that does not limit.
func (t Terms) fixed() (time.Time, error) {
	due, found := t.Schedule.dueFor(t.LoanDate)
	if !found {
		return time.Time{}, &DueDateError{"loan date falls outside of the date ranges in the loan policy"}
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
