package policy

import "time"

// What a renewal of the profile Rolling counts from.
const (
	fromSystemDate = "SYSTEM_DATE"
	fromDueDate    = "CURRENT_DUE_DATE"
)

// RenewalTerms are what a renewal depends on besides the policy.
type RenewalTerms struct {
	Now time.Time
	// DueDate is when the loan is due now; zero for a loan without a due date.
	DueDate time.Time
	// Renewals is how often the loan was renewed.
	Renewals int
	// PatronExpires is the end of the patron's card; zero if it has none.
	PatronExpires time.Time
	// Schedule is the record that the policy's RenewalScheduleID names.
	Schedule FixedSchedule
	// Recalled says that an open recall names the item, and HoldWaits that a hold without an item
	// waits for it.
	Recalled, HoldWaits bool
}

// Renew returns when a renewed loan is due, or every reason why it cannot be renewed: the policy
// does not lend or not renew, an open recall, a waiting hold, the number of renewals, a due date
// that would not move forward, or one that cannot be computed.
//
// The wording is FOLIO's (mod-circulation, RegularRenewalStrategy). Libraries count as always open.
func (p LoanPolicy) Renew(t RenewalTerms) (due time.Time, refusals []string) {
	refuseIf := func(refused bool, message string) {
		if refused {
			refusals = append(refusals, message)
		}
	}
	refuseIf(t.Recalled, "items cannot be renewed when there is an active recall request")
	if !p.Loanable || !p.renewals.allowed { // the policy's other terms have no meaning then
		refuseIf(!p.Loanable, "item is not loanable")
		refuseIf(p.Loanable, "loan is not renewable")
		return time.Time{}, refusals
	}
	refuseIf(t.HoldWaits && !p.renewals.withHolds, "items with this loan policy cannot be renewed when there is an active, pending hold request")
	due, err := p.computeRenewed(t)
	if err != nil {
		refusals = append(refusals, err.Error())
	} else {
		refuseIf(!due.After(t.DueDate), "renewal would not change the due date")
	}
	refuseIf(!p.renewals.unlimited && t.Renewals >= p.renewals.max, "loan at maximum renewal number")
	return due, refusals
}

// computeRenewed returns the date of the schedule (profile Fixed), or the end of a period (Rolling)
// no later than the schedule allows, and never later than the patron's expiration. Its error is a
// *DueDateError.
func (p LoanPolicy) computeRenewed(t RenewalTerms) (time.Time, error) {
	return p.computeByProfile(func() (time.Time, error) { return p.renewFixed(t) }, func() (time.Time, error) { return p.renewRolling(t) },
		t.PatronExpires)
}

func (p LoanPolicy) renewFixed(t RenewalTerms) (time.Time, error) {
	switch {
	case p.renewals.separate != nil && *p.renewals.separate != (period{}):
		return time.Time{}, &DueDateError{"Item's loan policy has fixed profile but renewal period is specified"}
	case t.HoldWaits && p.renewals.whileHolds != nil:
		return time.Time{}, &DueDateError{"Item's loan policy has fixed profile but alternative renewal period for holds is specified"}
	}
	return t.readSchedule(t.Now)
}

func (p LoanPolicy) renewRolling(t RenewalTerms) (time.Time, error) {
	var start time.Time
	origin := p.renewals.origin
	switch {
	case origin == fromSystemDate, origin == fromDueDate && t.DueDate.IsZero():
		start = t.Now
	case origin == fromDueDate:
		start = t.DueDate.In(t.Now.Location())
	default:
		return time.Time{}, &DueDateError{"cannot determine when to renew from"}
	}
	span := p.period
	if p.renewals.separate != nil {
		span = *p.renewals.separate
	}
	if t.HoldWaits && p.renewals.whileHolds != nil {
		span = *p.renewals.whileHolds
	}
	return span.computeWithin(start, p.RenewalScheduleID, func() (time.Time, error) { return t.readSchedule(start) })
}

// readSchedule returns the schedule's date for what is renewed from an instant.
func (t RenewalTerms) readSchedule(from time.Time) (time.Time, error) {
	return t.Schedule.findDueDate(from, "renewal date falls outside of date ranges in the loan policy")
}
