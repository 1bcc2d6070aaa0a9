package policy

import (
	"errors"
	"fmt"
	"time"
)

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
}

// Recall returns when a recalled loan is due: after the return interval from now, at once without
// one, but not before the guaranteed period after the loan date ends. A loan that is due before
// keeps its date, and so does an overdue one, unless the policy lets recalls extend overdue loans.
// An overdue loan then has the alternate interval, if there is one.
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
	case !t.DueDate.IsZero() && !r.ExtendOverdue && (overdue || due.After(t.DueDate)):
		return t.DueDate, nil
	case guaranteed.After(due):
		return guaranteed, nil
	}
	return due, nil
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
