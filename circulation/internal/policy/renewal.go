package policy

import (
	"errors"
	"time"
)

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
	// HoldWaits says that a hold without an item waits for the item.
	HoldWaits bool
}

// IsLater reports whether a due date is later than that of the loan. It compares milliseconds, as FOLIO
// does: a loan has no smaller part of a second.
func (t RenewalTerms) IsLater(due time.Time) bool { return due.UnixMilli() > t.DueDate.UnixMilli() }

// Override is what staff need to renew although a refusal forbids it.
type Override int

// The overrides. RenewalBlock takes the due date that the policy gives; DueDateBlock takes a due
// date of staff.
const (
	RenewalBlock Override = iota
	DueDateBlock
)

// RenewalRefusal is a reason why a loan cannot be renewed, with FOLIO's code.
type RenewalRefusal struct {
	Message, Code string
	Override      Override
}

// Renew returns when a renewed loan is due, or every reason why it cannot be renewed: the policy
// does not lend or not renew, a waiting hold, the number of renewals, a due date that would not move
// forward, or one that cannot be computed. The schedule's range of today limits the day that is
// counted from a due date in another range.
//
// The wording is FOLIO's (mod-circulation, RegularRenewalStrategy). Libraries count as always open.
func (p LoanPolicy) Renew(t RenewalTerms) (due time.Time, refusals []RenewalRefusal) {
	refuseIf := func(refused bool, message, code string, override Override) {
		if refused {
			refusals = append(refusals, RenewalRefusal{message, code, override})
		}
	}
	if !p.Renews() { // the policy's other terms have no meaning then
		refuseIf(!p.Loanable, "item is not loanable", "ITEM_NOT_LOANABLE", DueDateBlock)
		refuseIf(p.Loanable, "loan is not renewable", "LOAN_NOT_RENEWABLE", DueDateBlock)
		return time.Time{}, refusals
	}
	refuseIf(t.HoldWaits && !p.renewals.withHolds, "Items with this loan policy cannot be renewed when there is an active, pending hold request",
		"RENEWAL_BLOCKED_BY_HOLD_REQUEST", DueDateBlock)
	fixedOnHold, separate := t.HoldWaits && p.isFixed(), p.renewals.separate
	refuseIf(fixedOnHold && p.renewals.whileHolds != nil, "Item's loan policy has fixed profile but alternative renewal period for holds is specified",
		"FIXED_LOAN_POLICY_HAS_ALTERNATE_RENEWAL_PERIOD_FOR_HOLDS", DueDateBlock)
	refuseIf(fixedOnHold && separate != nil && *separate != (period{}), "Item's loan policy has fixed profile but renewal period is specified",
		"FIXED_LOAN_POLICY_HAS_RENEWAL_PERIOD", DueDateBlock)
	due, err := p.RenewedDueDate(t)
	due = t.Schedule.limitDay(t.Now, due)
	if impossible, ok := errors.AsType[*DueDateError](err); ok {
		refuseIf(true, impossible.Message, impossible.RenewalCode, DueDateBlock)
	} else {
		refuseIf(!t.IsLater(due), "renewal would not change the due date", "RENEWAL_WOULD_NOT_CHANGE_DUE_DATE", DueDateBlock)
	}
	refuseIf(!p.renewals.unlimited && t.Renewals >= p.renewals.max, "loan at maximum renewal number", "LOAN_RENEWAL_LIMIT_REACHED", RenewalBlock)
	return due, refusals
}

// Renews reports whether the policy lends, and renews what it lends.
func (p LoanPolicy) Renews() bool { return p.Loanable && p.renewals.allowed }

// RenewedDueDate returns the date of the schedule (profile Fixed), or the end of a period (Rolling)
// no later than the schedule allows, and never later than the patron's expiration. Its error is a
// *DueDateError.
func (p LoanPolicy) RenewedDueDate(t RenewalTerms) (time.Time, error) {
	fixed := func() (time.Time, error) {
		return t.Schedule.findDueDate(t.Now, "renewal date falls outside of date ranges in fixed loan policy", "RENEWAL_DATE_OUTSIDE_FIXED_LOAN_POLICY_DATE_RANGES")
	}
	return p.computeByProfile(fixed, func() (time.Time, error) { return p.renewRolling(t) }, t.PatronExpires)
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
		return time.Time{}, &DueDateError{"cannot determine when to renew from", "LOAN_POLICY_RENEW_FROM_NOT_RECOGNIZED"}
	}
	span := p.period
	if p.renewals.separate != nil {
		span = *p.renewals.separate
	}
	if t.HoldWaits && p.renewals.whileHolds != nil {
		span = *p.renewals.whileHolds
	}
	return span.endWithinSchedule(start, p.RenewalScheduleID, func() (time.Time, error) {
		return t.Schedule.findDueDate(start, "renewal date falls outside of date ranges in the loan policy", "RENEWAL_DATE_OUTSIDE_LOAN_POLICY_DATE_RANGES")
	})
}
