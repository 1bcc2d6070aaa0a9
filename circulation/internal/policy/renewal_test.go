package policy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/policy"
)

// renewalPolicy is a loan policy with these parts beside what every one has.
func renewalPolicy(t *testing.T, parts string) policy.LoanPolicy {
	t.Helper()
	p, err := policy.ParseLoanPolicy([]byte(`{"id":"p","name":"Weeks","loanable":true,"renewable":true,` + parts + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func clock(t *testing.T, s string) time.Time {
	t.Helper()
	instant, err := time.Parse("2006-01-02 15:04", s)
	if err != nil {
		t.Fatal(err)
	}
	return instant
}

const (
	weeks        = `"loansPolicy":{"profileId":"Rolling","period":{"duration":2,"intervalId":"Weeks"}}`
	limitedWeeks = `"loansPolicy":{"profileId":"Rolling","period":{"duration":2,"intervalId":"Weeks"},` +
		`"fixedDueDateScheduleId":"s"}`
	fixed     = `"loansPolicy":{"profileId":"Fixed","fixedDueDateScheduleId":"s"}`
	fromNow   = `"renewalsPolicy":{"numberAllowed":3,"renewFromId":"SYSTEM_DATE"}`
	fromDue   = `"renewalsPolicy":{"unlimited":true,"renewFromId":"CURRENT_DUE_DATE"}`
	threeDays = `"renewalsPolicy":{"unlimited":true,"renewFromId":"SYSTEM_DATE","differentPeriod":true,` +
		`"period":{"duration":3,"intervalId":"Days"}}`
	holdsDay = `"requestManagement":{"holds":{"renewItemsWithRequest":true,"alternateRenewalLoanPeriod":{"duration":2,` +
		`"intervalId":"Days"}}}`
	nextMonths = `{"id":"s","schedules":[{"from":"2026-03-01","to":"2026-03-31T23:59:59Z","due":"2026-04-15"},` +
		`{"from":"2026-04-01","to":"2026-04-30T23:59:59Z","due":"2026-05-15"}]}`
	march = `{"id":"s","schedules":[{"from":"2026-03-01","to":"2026-03-31T23:59:59Z","due":"2026-04-05T23:59:59Z"}]}`
)

func TestRenew_DueDates(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		policy string
		change func(*policy.RenewalTerms)
		want   string
	}{
		"counted from now":          {policy: weeks + `,` + fromNow, want: "2026-03-24 10:00"},
		"counted from the due date": {policy: weeks + `,` + fromDue, want: "2026-03-26 18:00"},
		"no due date to count from": {
			policy: weeks + `,` + fromDue, change: func(r *policy.RenewalTerms) { r.DueDate = time.Time{} },
			want: "2026-03-24 10:00",
		},
		"the last one allowed": {
			policy: weeks + `,` + fromNow, change: func(r *policy.RenewalTerms) { r.Renewals = 2 }, want: "2026-03-24 10:00",
		},
		"unlimited": {
			policy: weeks + `,` + fromDue, change: func(r *policy.RenewalTerms) { r.Renewals = 1000 }, want: "2026-03-26 18:00",
		},
		"another period for renewals": {policy: weeks + `,` + threeDays, want: "2026-03-13 10:00"},
		"the card ends before": {
			policy: weeks + `,` + fromNow,
			change: func(r *policy.RenewalTerms) { r.PatronExpires = clock(t, "2026-03-20 00:00") }, want: "2026-03-20 00:00",
		},
		"a period for waiting holds": {
			policy: weeks + `,` + fromDue + `,` + holdsDay, change: func(r *policy.RenewalTerms) { r.HoldWaits = true },
			want: "2026-03-14 18:00",
		},
		"no hold waits":                  {policy: weeks + `,` + fromDue + `,` + holdsDay, want: "2026-03-26 18:00"},
		"a schedule that does not limit": {policy: limitedWeeks + `,` + fromNow, want: "2026-03-24 10:00"},
		"a schedule that limits": {
			policy: limitedWeeks + `,` + fromNow, change: func(r *policy.RenewalTerms) { r.Now = clock(t, "2026-03-30 10:00") },
			want: "2026-04-05 23:59",
		},
		"counted from a due date in a range": {policy: limitedWeeks + `,` + fromDue, change: func(r *policy.RenewalTerms) {
			r.Now, r.DueDate = clock(t, "2026-04-10 10:00"), clock(t, "2026-03-30 18:00")
		}, want: "2026-04-05 23:59"},
		"counted from the next range, limited by today's": {
			policy: limitedWeeks + `,` + fromDue, change: dueInApril("2026-04-05 18:00"), want: "2026-04-15 00:00",
		},
		"counted from the next range, on the day of today's limit": {
			policy: limitedWeeks + `,` + fromDue, change: dueInApril("2026-04-01 18:00"), want: "2026-04-15 18:00",
		},
		"the date of the schedule": {
			policy: fixed + `,"renewalsPolicy":{"unlimited":true}`, want: "2026-04-05 23:59",
		},
		"fixed dates and a period": {policy: fixed + `,` + threeDays, want: "2026-04-05 23:59"},
		"fixed dates and a period of check-outs for a hold": {
			policy: fixed + `,"renewalsPolicy":{"unlimited":true},"requestManagement":{"holds":{` +
				`"renewItemsWithRequest":true,"alternateCheckoutLoanPeriod":{"duration":2,"intervalId":"Days"}}}`,
			change: func(r *policy.RenewalTerms) { r.HoldWaits = true }, want: "2026-04-05 23:59",
		},
		"the profile in small letters": {
			policy: strings.Replace(fixed, "Fixed", "fixed", 1) + `,"renewalsPolicy":{"unlimited":true}`,
			want:   "2026-04-05 23:59",
		},
		"holds that the policy renews with": {
			policy: fixed + `,"renewalsPolicy":{"unlimited":true},"requestManagement":{"holds":{"renewItemsWithRequest":true}}`,
			change: func(r *policy.RenewalTerms) { r.HoldWaits = true }, want: "2026-04-05 23:59",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			due, refusals := renewalPolicy(t, tt.policy).Renew(renewalTerms(t, tt.change))
			if len(refusals) > 0 || !due.Truncate(time.Minute).Equal(clock(t, tt.want)) {
				t.Errorf("got %s, %+v, want %s", due, refusals, tt.want)
			}
		})
	}
}

// dueInApril makes the loan one of March that is due in the schedule's range of April.
func dueInApril(due string) func(*policy.RenewalTerms) {
	return func(r *policy.RenewalTerms) {
		r.DueDate, _ = time.Parse("2006-01-02 15:04", due)
		r.Schedule, _ = policy.ParseFixedSchedule([]byte(nextMonths))
	}
}

// renewalTerms are those of a loan due in two days, renewed with March's schedule.
func renewalTerms(t *testing.T, change func(*policy.RenewalTerms)) policy.RenewalTerms {
	t.Helper()
	schedule, err := policy.ParseFixedSchedule([]byte(march))
	if err != nil {
		t.Fatal(err)
	}
	r := policy.RenewalTerms{Now: clock(t, "2026-03-10 10:00"), DueDate: clock(t, "2026-03-12 18:00"), Schedule: schedule}
	if change != nil {
		change(&r)
	}
	return r
}

func TestRenew_Refusals(t *testing.T) {
	t.Parallel()
	const (
		hold = "RENEWAL_BLOCKED_BY_HOLD_REQUEST: Items with this loan policy cannot be renewed when there is an active, " +
			"pending hold request"
		same   = "RENEWAL_WOULD_NOT_CHANGE_DUE_DATE: renewal would not change the due date"
		number = "LOAN_RENEWAL_LIMIT_REACHED by staff: loan at maximum renewal number"
	)
	april := func(r *policy.RenewalTerms) { r.Now = clock(t, "2026-04-10 10:00") }
	waits := func(r *policy.RenewalTerms) { r.HoldWaits = true }
	tests := map[string]struct {
		policy string
		change func(*policy.RenewalTerms)
		want   []string
	}{
		"on hold": {policy: weeks + `,` + fromNow, change: waits, want: []string{hold}},
		"the number is reached": {
			policy: weeks + `,` + fromNow, change: func(r *policy.RenewalTerms) { r.Renewals = 3 }, want: []string{number},
		},
		"no number at all": {
			policy: weeks + `,"renewalsPolicy":{"renewFromId":"SYSTEM_DATE"}`, want: []string{number},
		},
		"the same due date": {
			policy: weeks + `,` + fromNow, change: func(r *policy.RenewalTerms) { r.DueDate = clock(t, "2026-03-24 10:00") },
			want: []string{same},
		},
		"an earlier due date": {
			policy: weeks + `,` + fromNow, change: func(r *policy.RenewalTerms) { r.DueDate = clock(t, "2026-05-01 10:00") },
			want: []string{same},
		},
		"the card ends at the due date": {
			policy: weeks + `,` + fromDue, change: func(r *policy.RenewalTerms) { r.PatronExpires = r.DueDate },
			want: []string{same},
		},
		"the card ends within the millisecond of the due date": {
			policy: weeks + `,` + fromDue, change: func(r *policy.RenewalTerms) {
				r.PatronExpires = r.DueDate.Add(999 * time.Microsecond) // a loan has whole milliseconds
			},
			want: []string{same},
		},
		"everything at once": {policy: weeks + `,` + fromNow, change: func(r *policy.RenewalTerms) {
			r.HoldWaits, r.Renewals, r.DueDate = true, 9, clock(t, "2026-05-01 10:00")
		}, want: []string{hold, same, number}},
		"not renewable": {
			policy: `"renewable":false,` + weeks + `,` + fromNow, change: func(r *policy.RenewalTerms) { r.Renewals = 9 },
			want: []string{"LOAN_NOT_RENEWABLE: loan is not renewable"},
		},
		"not loanable": {
			policy: `"loanable":false,` + weeks + `,` + fromNow,
			want:   []string{"ITEM_NOT_LOANABLE: item is not loanable"},
		},
		"nothing to count from": {
			policy: weeks + `,"renewalsPolicy":{"unlimited":true}`,
			want:   []string{"LOAN_POLICY_RENEW_FROM_NOT_RECOGNIZED: cannot determine when to renew from"},
		},
		"outside the schedule": {
			policy: fixed + `,"renewalsPolicy":{"unlimited":true}`, change: april,
			want: []string{
				"RENEWAL_DATE_OUTSIDE_FIXED_LOAN_POLICY_DATE_RANGES: renewal date falls outside of date ranges in fixed " +
					"loan policy",
			},
		},
		"outside the limits": {
			policy: limitedWeeks + `,` + fromNow, change: april,
			want: []string{
				"RENEWAL_DATE_OUTSIDE_LOAN_POLICY_DATE_RANGES: " +
					"renewal date falls outside of date ranges in the loan policy",
			},
		},
		"a due date outside the limits": {policy: limitedWeeks + `,` + fromDue, change: func(r *policy.RenewalTerms) {
			r.DueDate = clock(t, "2026-04-02 18:00")
		}, want: []string{
			"RENEWAL_DATE_OUTSIDE_LOAN_POLICY_DATE_RANGES: " +
				"renewal date falls outside of date ranges in the loan policy",
		}},
		"holds with fixed dates and a period": {
			policy: fixed + `,` + threeDays + `,` + holdsDay, change: waits,
			want: []string{
				"FIXED_LOAN_POLICY_HAS_ALTERNATE_RENEWAL_PERIOD_FOR_HOLDS: Item's loan policy has fixed profile but alternative " +
					"renewal period for holds is specified",
				"FIXED_LOAN_POLICY_HAS_RENEWAL_PERIOD: Item's loan policy has fixed profile but renewal period is specified",
			},
		},
		"holds with fixed dates": {
			policy: fixed + `,"renewalsPolicy":{"unlimited":true},` + holdsDay, change: waits,
			want: []string{
				"FIXED_LOAN_POLICY_HAS_ALTERNATE_RENEWAL_PERIOD_FOR_HOLDS: Item's loan policy has fixed profile but alternative " +
					"renewal period for holds is specified",
			},
		},
		"another period that is none": {
			policy: weeks + `,"renewalsPolicy":{"unlimited":true,"renewFromId":"SYSTEM_DATE","differentPeriod":true}`,
			want:   []string{"LOAN_POLICY_RENEWAL_PERIOD_NOT_RECOGNIZED: the loan period in the loan policy is not recognised"},
		},
		"an unknown interval": {
			policy: strings.Replace(weeks, "Weeks", "Years", 1) + `,` + fromNow,
			want: []string{
				`LOAN_POLICY_RENEWAL_PERIOD_INTERVAL_NOT_RECOGNIZED: the interval "Years" in the loan policy is not recognised`,
			},
		},
		"an unknown profile": {
			policy: strings.Replace(weeks, "Rolling", "Round", 1) + `,` + fromNow,
			want:   []string{`LOAN_POLICY_PROFILE_NOT_RECOGNIZED: profile "Round" in the loan policy is not recognised`},
		},
		"a duration that makes no end": {
			policy: strings.Replace(weeks, ":2,", ":0,", 1) + `,` + fromNow,
			want:   []string{`LOAN_POLICY_RENEWAL_PERIOD_DURATION_INVALID: the duration "0" in the loan policy is invalid`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, refusals := renewalPolicy(t, tt.policy).Renew(renewalTerms(t, tt.change))
			lifts := map[policy.Override]string{policy.RenewalBlock: " by staff"}
			var got []string
			for _, r := range refusals {
				got = append(got, r.Code+lifts[r.Override]+": "+r.Message)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParseLoanPolicy_RenewalSchedule(t *testing.T) {
	t.Parallel()
	for parts, want := range map[string]string{
		weeks: "", fixed: "s",
		fixed + `,"renewalsPolicy":{"differentPeriod":true,"alternateFixedDueDateScheduleId":"r"}`:  "r",
		fixed + `,"renewalsPolicy":{"differentPeriod":false,"alternateFixedDueDateScheduleId":"r"}`: "s",
	} {
		if got := renewalPolicy(t, parts).RenewalScheduleID; got != want {
			t.Errorf("%s: got %q, want %q", parts, got, want)
		}
	}
	if _, err := policy.ParseLoanPolicy([]byte(`{"renewalsPolicy":{"numberAllowed":"3"}}`)); err == nil {
		t.Error("a number in words was read")
	}
}
