package policy

import (
	"encoding/json"
	"fmt"
	"time"
)

// RenewalPolicy is what a renewal needs of a stored loan policy.
type RenewalPolicy struct {
	ID   string
	Name string

	// ScheduleID names the fixed due date schedule that DueDate needs: the one for
	// renewals if the policy has one, else that of its loans. Empty is none.
	ScheduleID string

	loanable  bool
	renewable bool
	unlimited bool
	allowed   int  // renewals of one loan, unless unlimited
	withHolds bool // a waiting hold does not keep the loan from being renewed

	profile   string
	period    period
	different *period // as the policy's renewals have it; nil when they follow the loans
	alternate *period // the one while a hold waits; nil for the usual one
	from      string  // what the new due date counts from
}

// What a renewal of the profile Rolling counts from.
const (
	fromSystemDate = "SYSTEM_DATE"
	fromDueDate    = "CURRENT_DUE_DATE"
)

// ParseRenewalPolicy reads a record of FOLIO's /loan-policy-storage/loan-policies
// as ParseLoanPolicy does. What makes no sense is not an error here but one of
// DueDate's.
func ParseRenewalPolicy(raw []byte) (RenewalPolicy, error) {
	var record struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Loanable    bool   `json:"loanable"`
		Renewable   bool   `json:"renewable"`
		LoansPolicy struct {
			ProfileID              string `json:"profileId"`
			Period                 period `json:"period"`
			FixedDueDateScheduleID string `json:"fixedDueDateScheduleId"`
		} `json:"loansPolicy"`
		RenewalsPolicy struct {
			Unlimited                       bool        `json:"unlimited"`
			NumberAllowed                   wholeNumber `json:"numberAllowed"`
			RenewFromID                     string      `json:"renewFromId"`
			DifferentPeriod                 bool        `json:"differentPeriod"`
			Period                          *period     `json:"period"`
			AlternateFixedDueDateScheduleID string      `json:"alternateFixedDueDateScheduleId"`
		} `json:"renewalsPolicy"`
		RequestManagement struct {
			Holds struct {
				RenewItemsWithRequest      bool    `json:"renewItemsWithRequest"`
				AlternateRenewalLoanPeriod *period `json:"alternateRenewalLoanPeriod"`
			} `json:"holds"`
		} `json:"requestManagement"`
	}
	if err := json.Unmarshal(raw, &record); err != nil {
		return RenewalPolicy{}, fmt.Errorf("read loan policy: %w", err)
	}
	loans, renewals, holds := record.LoansPolicy, record.RenewalsPolicy, record.RequestManagement.Holds
	p := RenewalPolicy{
		ID: record.ID, Name: record.Name, loanable: record.Loanable, renewable: record.Renewable,
		ScheduleID: loans.FixedDueDateScheduleID,
		unlimited:  renewals.Unlimited, allowed: int(renewals.NumberAllowed), from: renewals.RenewFromID,
		profile: loans.ProfileID, period: loans.Period,
		withHolds: holds.RenewItemsWithRequest, alternate: holds.AlternateRenewalLoanPeriod,
	}
	if renewals.DifferentPeriod {
		if p.different = renewals.Period; p.different == nil {
			p.different = &period{}
		}
		if renewals.AlternateFixedDueDateScheduleID != "" {
			p.ScheduleID = renewals.AlternateFixedDueDateScheduleID
		}
	}
	return p, nil
}

// RenewalTerms are what a renewal depends on besides the policy.
type RenewalTerms struct {
	Now time.Time
	// DueDate is when the loan is due now; zero for a loan without one.
	DueDate time.Time
	// Renewals is how often the loan was renewed.
	Renewals int
	// PatronExpires is when the patron's card does; zero for never.
	PatronExpires time.Time
	// Schedule is the record that the policy's ScheduleID names.
	Schedule FixedSchedule
	// Recalled says that an open recall names the item, HoldWaits that a hold which
	// no item is set aside for yet waits for it.
	Recalled, HoldWaits bool
}

// Renew returns when a renewed loan is due, or every reason why it cannot be
// renewed: the policy does not lend or not renew, an open recall, a waiting hold
// that the policy does not renew with, the number of renewals, a due date that
// would not move forward, or one that cannot be computed.
//
// The wording is FOLIO's (mod-circulation, RegularRenewalStrategy). Libraries
// count as always open.
func (p RenewalPolicy) Renew(t RenewalTerms) (due time.Time, refusals []string) {
	refuse := func(when bool, why string) {
		if when {
			refusals = append(refusals, why)
		}
	}
	refuse(t.Recalled, "items cannot be renewed when there is an active recall request")
	if !p.loanable || !p.renewable { // then its other terms mean nothing
		refuse(!p.loanable, "item is not loanable")
		refuse(p.loanable, "loan is not renewable")
		return time.Time{}, refusals
	}
	refuse(t.HoldWaits && !p.withHolds, "items with this loan policy cannot be renewed when there is an active, pending hold request")
	due, err := p.dueDate(t)
	if err != nil {
		refusals = append(refusals, err.Error())
	} else {
		refuse(!due.After(t.DueDate), "renewal would not change the due date")
	}
	refuse(!p.unlimited && t.Renewals >= p.allowed, "loan at maximum renewal number")
	return due, refusals
}

// dueDate is the date of the schedule (profile Fixed), or the end of a period
// (Rolling) no later than the schedule allows, and never later than the patron's
// expiration. Its error is a *DueDateError.
func (p RenewalPolicy) dueDate(t RenewalTerms) (time.Time, error) {
	return byProfile(p.profile, func() (time.Time, error) { return p.fixed(t) }, func() (time.Time, error) { return p.rolling(t) },
		t.PatronExpires)
}

func (p RenewalPolicy) fixed(t RenewalTerms) (time.Time, error) {
	switch {
	case p.different != nil && *p.different != (period{}):
		return time.Time{}, &DueDateError{"Item's loan policy has fixed profile but renewal period is specified"}
	case t.HoldWaits && p.alternate != nil:
		return time.Time{}, &DueDateError{"Item's loan policy has fixed profile but alternative renewal period for holds is specified"}
	}
	return p.scheduled(t)
}

func (p RenewalPolicy) rolling(t RenewalTerms) (time.Time, error) {
	var start time.Time
	switch {
	case p.from == fromSystemDate, p.from == fromDueDate && t.DueDate.IsZero():
		start = t.Now
	case p.from == fromDueDate:
		start = t.DueDate.In(t.Now.Location())
	default:
		return time.Time{}, &DueDateError{"cannot determine when to renew from"}
	}
	span := p.period
	if p.different != nil {
		span = *p.different
	}
	if t.HoldWaits && p.alternate != nil {
		span = *p.alternate
	}
	due, err := span.after(start)
	if err != nil || p.ScheduleID == "" {
		return due, err
	}
	return noLater(due, func() (time.Time, error) { return p.scheduled(t) })
}

// scheduled is the schedule's date for what is renewed now.
func (p RenewalPolicy) scheduled(t RenewalTerms) (time.Time, error) {
	due, found := t.Schedule.dueFor(t.Now)
	if !found {
		return time.Time{}, &DueDateError{"renewal date falls outside of date ranges in the loan policy"}
	}
	return due, nil
}
