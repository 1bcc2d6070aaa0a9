package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"
	_ "time/tzdata"

	"checkoutlock/circulation/internal/policy"
)

func rolling(t *testing.T, duration, interval string) policy.LoanPolicy {
	t.Helper()
	return parsePolicy(t, fmt.Sprintf(
		`{"id":"p1","name":"P","loanable":true,"loansPolicy":{"profileId":"Rolling","period":{"duration":%s,`+
			`"intervalId":%q}}}`, duration, interval,
	))
}

func at(t *testing.T, s string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func TestDueDate_Rolling(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ lent, duration, interval, want string }{
		"minutes": {
			lent: "2026-03-01T10:00:00.123Z", duration: "90", interval: "Minutes", want: "2026-03-01T11:30:00.123Z",
		},
		"hours": {
			lent: "2026-03-01T23:30:00Z", duration: "1", interval: "Hours", want: "2026-03-02T00:30:00Z",
		},
		"days": {
			lent: "2026-02-27T10:00:00Z", duration: "3", interval: "Days", want: "2026-03-02T10:00:00Z",
		},
		"weeks": {
			lent: "2026-12-24T10:00:00Z", duration: "2", interval: "Weeks", want: "2027-01-07T10:00:00Z",
		},
		"months": {
			lent: "2026-11-15T10:00:00Z", duration: "3", interval: "Months", want: "2027-02-15T10:00:00Z",
		},
		"a month from the 31st": {
			lent: "2026-01-31T10:00:00Z", duration: "1", interval: "Months", want: "2026-02-28T10:00:00Z",
		},
		"a month from the 31st in leap year": {
			lent: "2028-01-31T10:00:00Z", duration: "1", interval: "Months", want: "2028-02-29T10:00:00Z",
		},
		"to a month of 30 days": {
			lent: "2026-08-31T23:59:59Z", duration: "3", interval: "Months", want: "2026-11-30T23:59:59Z",
		},
		"over December": {
			lent: "2026-12-31T10:00:00Z", duration: "2", interval: "Months", want: "2027-02-28T10:00:00Z",
		},
		"twelve months from leap day": {
			lent: "2028-02-29T10:00:00Z", duration: "12", interval: "Months", want: "2029-02-28T10:00:00Z",
		},
		"the offset stays": {
			lent: "2026-01-31T23:30:00-05:00", duration: "1", interval: "Months", want: "2026-02-28T23:30:00-05:00",
		},
		"1000 years of hours": {
			lent: "2026-01-01T00:00:00Z", duration: "8765820", interval: "Hours", want: "3026-01-01T12:00:00Z",
		},
		"duration written 2.0": {
			lent: "2026-03-01T10:00:00Z", duration: "2.0", interval: "Days", want: "2026-03-03T10:00:00Z",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := rolling(t, tt.duration, tt.interval).DueDate(policy.Terms{LoanDate: at(t, tt.lent)})
			if err != nil {
				t.Fatal(err)
			}
			if got := got.Format(time.RFC3339Nano); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// When clocks change, a day ends at the same time of day and an hour after an hour.
func TestDueDate_DaylightSaving(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	lent := time.Date(2026, 3, 28, 12, 0, 0, 0, berlin)
	for interval, want := range map[string]string{
		"Days":   "2026-03-29T12:00:00+02:00",
		"Months": "2026-04-28T12:00:00+02:00",
	} {
		if got, err := rolling(t, "1", interval).DueDate(policy.Terms{LoanDate: lent}); err != nil ||
			got.Format(time.RFC3339) != want {
			t.Errorf("1 %s: got %v, %v, want %s", interval, got, err, want)
		}
	}
	if got, err := rolling(t, "24", "Hours").DueDate(policy.Terms{LoanDate: lent}); err != nil ||
		got.Format(time.RFC3339) != "2026-03-29T13:00:00+02:00" {
		t.Errorf("24 hours: got %v, %v, want 13:00", got, err)
	}
}

func TestDueDate_NotAfterThePatronExpires(t *testing.T) {
	t.Parallel()
	lent, due := at(t, "2026-03-01T10:00:00Z"), "2026-03-31T10:00:00Z"
	tests := map[string]struct{ expires, want string }{
		"earlier":              {"2026-03-15T23:59:59Z", "2026-03-15T23:59:59Z"},
		"a moment earlier":     {"2026-03-31T09:59:59.999Z", "2026-03-31T09:59:59.999Z"},
		"at the same time":     {due, due},
		"later":                {"2026-04-01T00:00:00Z", due},
		"earlier, in its zone": {"2026-03-15T23:59:59-05:00", "2026-03-16T04:59:59Z"},
	}
	for name, tt := range tests {
		got, err := rolling(t, "30", "Days").DueDate(policy.Terms{LoanDate: lent, PatronExpires: at(t, tt.expires)})
		if err != nil || got.Format(time.RFC3339Nano) != tt.want {
			t.Errorf("%s: got %v, %v, want %s", name, got, err, tt.want)
		}
	}
}

func TestDueDate_Errors(t *testing.T) {
	t.Parallel()
	period := func(p string) string { return `{"profileId":"Rolling","period":` + p + `}` }
	const noPeriod = "the loan period in the loan policy is not recognised"
	const outside = "loan date falls outside of the date ranges in the loan policy"
	tests := map[string]struct{ loansPolicy, want string }{
		"no loans policy":        {`null`, `profile "" in the loan policy is not recognised`},
		"fixed without schedule": {`{"profileId":"Fixed"}`, outside},
		"a schedule, not handed in": {
			`{"profileId":"Rolling","period":{"duration":1,"intervalId":"Days"},"fixedDueDateScheduleId":"s1"}`, outside,
		},
		"unknown profile": {`{"profileId":"Sliding"}`, `profile "Sliding" in the loan policy is not recognised`},
		"no period":       {`{"profileId":"Rolling"}`, noPeriod},
		"period is null":  {period(`null`), noPeriod},
		"no duration":     {period(`{"intervalId":"Days"}`), noPeriod},
		"no interval":     {period(`{"duration":3}`), noPeriod},
		"no time": {
			period(`{"duration":0,"intervalId":"Days"}`), `the duration "0" in the loan policy is invalid`,
		},
		"negative": {
			period(`{"duration":-3,"intervalId":"Days"}`), `the duration "-3" in the loan policy is invalid`,
		},
		"unknown interval": {
			period(`{"duration":3,"intervalId":"Fortnights"}`), `the interval "Fortnights" in the loan policy is not recognised`,
		},
		"interval, small letters": {
			period(`{"duration":3,"intervalId":"days"}`), `the interval "days" in the loan policy is not recognised`,
		},
		"beyond the year 9999": {
			period(`{"duration":120000,"intervalId":"Months"}`), `the duration "120000" in the loan policy is invalid`,
		},
		"largest duration": {
			period(`{"duration":2147483647,"intervalId":"Weeks"}`), `the duration "2147483647" in the loan policy is invalid`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := parsePolicy(t, `{"id":"p1","loanable":true,"loansPolicy":`+tt.loansPolicy+`}`)
			due, err := p.DueDate(policy.Terms{LoanDate: at(t, "2026-03-01T10:00:00Z")})
			var fault *policy.DueDateError
			if !errors.As(err, &fault) || fault.Message != tt.want || err.Error() != tt.want {
				t.Errorf("got %v, %v, want %q", due, err, tt.want)
			}
		})
	}
}

// The largest period of every interval either gives a date that JSON can hold
// or is refused.
func TestDueDate_LargestPeriods(t *testing.T) {
	t.Parallel()
	for _, interval := range []string{"Minutes", "Hours", "Days", "Weeks", "Months"} {
		due, err := rolling(t, "2147483647", interval).DueDate(policy.Terms{LoanDate: at(t, "2026-03-01T10:00:00Z")})
		if interval == "Minutes" {
			if want := "6109-03-24T12:07:00Z"; err != nil || due.Format(time.RFC3339) != want {
				t.Errorf("%s: got %v, %v, want %s", interval, due, err, want)
			}
		} else if err == nil {
			t.Errorf("%s: got %v, want an error", interval, due)
		}
	}
}

func TestHoldShelfPeriod_Until(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 10, 20, 30, 0, time.UTC)
	tests := map[string]string{ // period to end, "" is none
		`{"duration":30,"intervalId":"Minutes"}`:    "2026-01-31T10:50:30Z",
		`{"duration":48,"intervalId":"Hours"}`:      "2026-02-02T10:20:30Z",
		`{"duration":3,"intervalId":"Days"}`:        "2026-02-03T23:59:59Z",
		`{"duration":2,"intervalId":"Weeks"}`:       "2026-02-14T23:59:59Z",
		`{"duration":1,"intervalId":"Months"}`:      "2026-02-28T23:59:59Z",
		`{"duration":0,"intervalId":"Days"}`:        "",
		`{"duration":999999,"intervalId":"Months"}`: "",
		`{"duration":3,"intervalId":"Fortnights"}`:  "",
		`{"intervalId":"Days"}`:                     "",
		`null`:                                      "",
	}
	for period, want := range tests {
		var p policy.HoldShelfPeriod
		if err := json.Unmarshal([]byte(period), &p); err != nil {
			t.Fatal(err)
		}
		got, ok := p.Until(now)
		if text := got.Format(time.RFC3339); ok != (want != "") || ok && text != want {
			t.Errorf("%s: got %s, %t, want %q", period, text, ok, want)
		}
	}
}
