package policy

import (
	"fmt"
	"strings"
	"time"
)

// DueDateError says why a policy gives no due date for a loan. FOLIO answers 422 with this message
// and the policy's id and name.
type DueDateError struct{ Message string }

// Error returns the message.
func (e *DueDateError) Error() string { return e.Message }

// Terms are what a due date depends on besides the policy.
type Terms struct {
	LoanDate time.Time
	// PatronExpires is the end of the patron's card; zero if it has none.
	PatronExpires time.Time
	// Schedule is the record that the policy's ScheduleID names.
	Schedule FixedSchedule
	// HoldWaits says that a hold without an item waits for the item, besides the request that the
	// check-out fills.
	HoldWaits bool
}

// DueDate returns when an item lent at t.LoanDate is due. The profile Fixed takes the date of the
// schedule. The profile Rolling takes the end of the policy's period, or of the alternate one if a
// hold waits, but no later than the schedule allows. The date is never later than t.PatronExpires.
// Days, weeks and months are those of the calendar in the loan date's time zone, and the result is
// in that zone. Libraries count as always open.
//
// The error is always a *DueDateError.
//
// Source: FOLIO's RollingCheckOutDueDateStrategy and FixedScheduleCheckOutDueDateStrategy, with
// their messages.
func (p LoanPolicy) DueDate(t Terms) (time.Time, error) {
	return p.computeByProfile(t.readSchedule, func() (time.Time, error) { return p.computeRolling(t) }, t.PatronExpires)
}

// computeByProfile returns the date of the policy's profile, no later than the patron's card
// expires.
func (p LoanPolicy) computeByProfile(fixed, rolling func() (time.Time, error), expires time.Time) (due time.Time, err error) {
	switch {
	case strings.EqualFold(p.profile, "Fixed"):
		due, err = fixed()
	case strings.EqualFold(p.profile, "Rolling"):
		due, err = rolling()
	default:
		err = &DueDateError{fmt.Sprintf("profile \"%s\" in the loan policy is not recognised", p.profile)}
	}
	if err != nil {
		return time.Time{}, err
	}
	if !expires.IsZero() && due.After(expires) {
		due = expires.In(due.Location())
	}
	return due, nil
}

func (p LoanPolicy) computeRolling(t Terms) (time.Time, error) {
	span := p.period
	if t.HoldWaits && p.alternate != nil {
		span = *p.alternate
	}
	due, err := span.computeEnd(t.LoanDate)
	if err != nil || p.ScheduleID == "" {
		return due, err
	}
	return limitDate(due, t.readSchedule)
}

// limitDate returns due, or the schedule's date if that is earlier.
func limitDate(due time.Time, readSchedule func() (time.Time, error)) (time.Time, error) {
	limit, err := readSchedule()
	if err == nil && limit.Before(due) {
		due = limit
	}
	return due, err
}

// readSchedule returns the schedule's date. A schedule without a range for the loan date is an
// error: it must not count as one that does not limit.
func (t Terms) readSchedule() (time.Time, error) {
	due, found := t.Schedule.findDueDate(t.LoanDate)
	if !found {
		return time.Time{}, &DueDateError{"loan date falls outside of the date ranges in the loan policy"}
	}
	return due, nil
}
