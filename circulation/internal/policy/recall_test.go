package policy_test

import (
	"errors"
	"testing"
	"time"

	"checkoutlock/circulation/internal/policy"
)

func recalls(terms string) string { return weeks + `,"requestManagement":{"recalls":{` + terms + `}}` }

const (
	fiveDays   = `"recallReturnInterval":{"duration":5,"intervalId":"Days"}`
	guaranteed = `"minimumGuaranteedLoanPeriod":{"duration":10,"intervalId":"Days"}`
	extends    = `"allowRecallsToExtendOverdueLoans":true`
	overdueDay = `"alternateRecallReturnInterval":{"duration":1,"intervalId":"Days"}`
)

// The loan is of 1 March, 10 o'clock, and due on the 29th.
func TestLoanPolicy_Recall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, terms, now, want string
		dueless                bool
		expires                string // the end of the patron's card
		schedule               string
	}{
		{name: "no terms", now: "2026-03-12 09:00", want: "2026-03-12 09:00"},
		{name: "return interval", terms: fiveDays, now: "2026-03-12 09:00", want: "2026-03-17 09:00"},
		{
			name: "return interval ends before the guaranteed period", terms: fiveDays + "," + guaranteed,
			now: "2026-03-02 09:00", want: "2026-03-11 10:00",
		},
		{
			name: "return interval ends after it", terms: fiveDays + "," + guaranteed, now: "2026-03-10 09:00",
			want: "2026-03-15 09:00",
		},
		{name: "guaranteed period alone", terms: guaranteed, now: "2026-03-02 09:00", want: "2026-03-11 10:00"},
		{name: "due before", terms: fiveDays, now: "2026-03-27 09:00", want: "2026-03-29 10:00"},
		{
			name: "due before, recalls extend", terms: fiveDays + "," + extends, now: "2026-03-27 09:00",
			want: "2026-04-01 09:00",
		},
		{name: "overdue", terms: fiveDays, now: "2026-04-02 09:00", want: "2026-03-29 10:00"},
		{
			name: "overdue, alternate interval without effect", terms: fiveDays + "," + overdueDay, now: "2026-04-02 09:00",
			want: "2026-03-29 10:00",
		},
		{name: "overdue, recalls extend", terms: fiveDays + "," + extends, now: "2026-04-02 09:00", want: "2026-04-07 09:00"},
		{
			name: "overdue, recalls extend by the alternate interval", terms: fiveDays + "," + extends + "," + overdueDay,
			now: "2026-04-02 09:00", want: "2026-04-03 09:00",
		},
		{
			name: "not overdue, the alternate interval does not count", terms: fiveDays + "," + extends + "," + overdueDay,
			now: "2026-03-12 09:00", want: "2026-03-17 09:00",
		},
		{
			name: "guaranteed period ends after the card", terms: fiveDays + "," + guaranteed,
			now: "2026-03-02 09:00", want: "2026-03-09 10:00", expires: "2026-03-09 10:00",
		},
		{
			name: "due after the card", terms: fiveDays, now: "2026-03-27 09:00", want: "2026-03-28 10:00",
			expires: "2026-03-28 10:00",
		},
		{
			name: "guaranteed period ends after the date of its range", terms: fiveDays + "," + guaranteed,
			now: "2026-03-02 09:00", want: "2026-03-08 00:00", schedule: dueInRange("03-01", "03-31", "03-08"),
		},
		{
			name: "guaranteed period ends on the day of the limit", terms: fiveDays + "," + guaranteed,
			now: "2026-03-02 09:00", want: "2026-03-11 10:00", schedule: dueInRange("03-01", "03-31", "03-11"),
		},
		{
			name: "guaranteed period ends in no range", terms: fiveDays + "," + guaranteed,
			now: "2026-03-02 09:00", want: "2026-03-11 10:00", schedule: dueInRange("03-01", "03-10", "03-08"),
		},
		{name: "no due date", terms: fiveDays, now: "2026-04-02 09:00", want: "2026-04-07 09:00", dueless: true},
	} {
		terms := policy.RecallTerms{
			Now: clock(t, tt.now), LoanDate: clock(t, "2026-03-01 10:00"), DueDate: clock(t, "2026-03-29 10:00"), Lent: true,
		}
		if tt.dueless {
			terms.DueDate = time.Time{}
		}
		if tt.schedule != "" {
			terms.Schedule, _ = policy.ParseFixedSchedule([]byte(tt.schedule))
		}
		if tt.expires != "" {
			terms.PatronExpires = clock(t, tt.expires)
		}
		got, err := renewalPolicy(t, recalls(tt.terms)).Recall(terms)
		if err != nil || !got.Equal(clock(t, tt.want)) {
			t.Errorf("%s: got %v, %v, want %s", tt.name, got, err, tt.want)
		}
	}
}

// dueInRange is a schedule of one range of days of this year.
func dueInRange(from, to, due string) string {
	return `{"id":"s","schedules":[{"from":"2026-` + from + `","to":"2026-` + to + `","due":"2026-` + due + `"}]}`
}

func TestLoanPolicy_RecallByAnInvalidPeriod(t *testing.T) {
	t.Parallel()
	for terms, want := range map[string]string{
		`"recallReturnInterval":{"intervalId":"Days"}`: `the "recallReturnInterval" in ` +
			`the loan policy is not recognized`,
		`"recallReturnInterval":{"duration":0,"intervalId":"Days"}`: `the duration "0" in ` +
			`"recallReturnInterval" is invalid`,
		`"minimumGuaranteedLoanPeriod":{"duration":3,"intervalId":"Moons"}`: `the interval "Moons" in ` +
			`"minimumGuaranteedLoanPeriod" is not recognized`,
		extends + `,"alternateRecallReturnInterval":{"duration":-1,"intervalId":"Days"}`: `the duration "-1" in ` +
			`"alternateRecallReturnInterval" is invalid`,
		`"minimumGuaranteedLoanPeriod":{"duration":999999,"intervalId":"Months"},` +
			fiveDays: `the duration "999999" in "minimumGuaranteedLoanPeriod" is invalid`,
	} {
		_, err := renewalPolicy(t, recalls(terms)).Recall(policy.RecallTerms{
			Now: clock(t, "2026-04-02 09:00"), LoanDate: clock(t, "2026-03-01 10:00"), DueDate: clock(t, "2026-03-29 10:00"),
		})
		if refused, ok := errors.AsType[*policy.DueDateError](err); !ok || refused.Message != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
