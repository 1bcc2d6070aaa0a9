package policy

import (
	"fmt"
	"strings"
	"time"
)

// DueDateError says why a policy gives no due date for a loan. FOLIO answers 422 with this message
// and the policy's id and name.
type DueDateError struct {
	Message string
	// RenewalCode is FOLIO's code of the same at a renewal. FOLIO has none for check-outs.
	RenewalCode string
}

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
// schedule. The profile Rolling takes the end of the policy's period, but no later than the schedule
// allows. If a hold waits, both take the alternate period, if there is one, within the schedule. The
// date is never later than t.PatronExpires. Days, weeks and months are those of the calendar in the
// loan date's time zone, and the result is in that zone. Libraries count as always open.
//
// The error is always a *DueDateError.
//
// Source: FOLIO's LoanPolicy.determineStrategy, RollingCheckOutDueDateStrategy and
// FixedScheduleCheckOutDueDateStrategy, with their messages.
func (p LoanPolicy) DueDate(t Terms) (time.Time, error) {
	span, fixed := p.period, t.readSchedule
	rolling := func() (time.Time, error) { return span.endWithinSchedule(t.LoanDate, p.ScheduleID, t.readSchedule) }
	if t.HoldWaits && p.alternate != nil {
		span, fixed = *p.alternate, rolling
	}
	return p.computeByProfile(fixed, rolling, t.PatronExpires)
}

// computeByProfile returns the date of the policy's profile, no later than the patron's card
// expires.
func (p LoanPolicy) computeByProfile(fixed, rolling func() (time.Time, error), expires time.Time) (due time.Time, err error) {
	switch {
	case p.isFixed():
		due, err = fixed()
	case strings.EqualFold(p.profile, "Rolling"):
		due, err = rolling()
	default:
		err = &DueDateError{fmt.Sprintf("profile \"%s\" in the loan policy is not recognised", p.profile), "LOAN_POLICY_PROFILE_NOT_RECOGNIZED"}
	}
	return notAfter(due, expires), err
}

// notAfter returns the due date, or the end of the patron's card if that is earlier.
func notAfter(due, expires time.Time) time.Time {
	if !expires.IsZero() && due.After(expires) {
		return expires.In(due.Location())
	}
	return due
}

func (p LoanPolicy) isFixed() bool { return strings.EqualFold(p.profile, "Fixed") }

// readSchedule returns the schedule's date for what is lent.
func (t Terms) readSchedule() (time.Time, error) {
	return t.Schedule.findDueDate(t.LoanDate, "loan date falls outside of the date ranges in the loan policy", "")
}

// recalls are the terms of a policy for recalled loans. A nil period is missing.
type recalls struct {
	Guaranteed    *period `json:"minimumGuaranteedLoanPeriod"`
	Return        *period `json:"recallReturnInterval"`
	ExtendOverdue bool    `json:"allowRecallsToExtendOverdueLoans"`
	ReturnOverdue *period `json:"alternateRecallReturnInterval"`
}

// RecallTerms are what a recall depends on besides the policy.
type RecallTerms struct {
	Now      time.Time
	LoanDate time.Time
	// DueDate is when the loan is due now; zero for a loan without a due date.
	DueDate time.Time
	// PatronExpires is the end of the borrower's card; zero if it has none.
	PatronExpires time.Time
	// Schedule is the record that the policy's ScheduleID names.
	Schedule FixedSchedule
	// Lent is set for a loan that is recalled later, and not for one that is made while the recall waits.
	Lent bool
}

// Recall returns when a recalled loan is due: after the return interval from now, at once without
// one, but not before the guaranteed period after the loan date ends. A loan that is due before
// keeps its date, and so does an overdue one, unless the policy lets recalls extend overdue loans.
// An overdue loan then has the alternate interval, if there is one. The date is never later than
// t.PatronExpires, nor on a later day than t.Schedule has for the date itself, or for the loan date of
// a loan that is not lent yet.
//
// The error is always a *DueDateError. Source: FOLIO's LoanPolicy.recall, with its messages.
func (p LoanPolicy) Recall(t RecallTerms) (time.Time, error) {
	r, overdue := p.recalls, !t.DueDate.IsZero() && t.DueDate.Before(t.Now)
	due, err := r.Return.endNamed("recallReturnInterval", t.Now, t.Now)
	if overdue && r.ExtendOverdue && r.ReturnOverdue != nil {
		due, err = r.ReturnOverdue.endNamed("alternateRecallReturnInterval", t.Now, t.Now)
	}
	if err != nil {
		return time.Time{}, err
	}
	guaranteed, err := r.Guaranteed.endNamed("minimumGuaranteedLoanPeriod", t.LoanDate, due)
	switch {
	case err != nil:
		return time.Time{}, err
	case !t.DueDate.IsZero() && !r.ExtendOverdue && due.After(t.DueDate): // which holds for each overdue loan
		due = t.DueDate
	case guaranteed.After(due):
		due = guaranteed
	}
	inRange := t.LoanDate
	if t.Lent {
		inRange = due
	}
	return notAfter(t.Schedule.limitDay(inRange, due), t.PatronExpires), nil
}
