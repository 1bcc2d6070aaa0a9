package policy_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/policy"
)

// terms is the schedule of an academic year.
const terms = `{"id":"s1","name":"Terms","schedules":[
	{"from":"2026-01-01T00:00:00.000+0000","to":"2026-06-30T23:59:59.000+0000","due":"2026-07-15T22:00:00.000+0000"},
	{"from":"2026-07-01T00:00:00Z","to":"2026-12-31T23:59:59Z","due":"2027-01-15T23:00:00+01:00"}]}`

func schedule(t *testing.T, raw string) policy.FixedSchedule {
	t.Helper()
	s, err := policy.ParseFixedSchedule([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDueDate_Schedules(t *testing.T) {
	t.Parallel()
	const (
		fixed   = `{"profileId":"Fixed","fixedDueDateScheduleId":"s1"}`
		limited = `{"profileId":"Rolling","period":{"duration":8,"intervalId":"Weeks"},"fixedDueDateScheduleId":"s1"}`
		outside = "loan date falls outside of the date ranges in the loan policy"
	)
	tests := map[string]struct{ loansPolicy, lent, expires, want string }{
		"fixed": {
			loansPolicy: fixed, lent: "2026-03-01T10:00:00Z", want: "2026-07-15T22:00:00Z",
		},
		"fixed, written in small letters": {
			loansPolicy: strings.Replace(fixed, "Fixed", "fixed", 1), lent: "2026-03-01T10:00:00Z", want: "2026-07-15T22:00:00Z",
		},
		"fixed, at the first moment": {loansPolicy: fixed, lent: "2026-01-01T00:00:00.0009Z", want: outside},
		"fixed, after the first moment": {
			loansPolicy: fixed, lent: "2026-01-01T00:00:00.001Z", want: "2026-07-15T22:00:00Z",
		},
		"fixed, before the last moment": {
			loansPolicy: fixed, lent: "2026-06-30T23:59:58.999Z", want: "2026-07-15T22:00:00Z",
		},
		"fixed, at the last moment": {loansPolicy: fixed, lent: "2026-06-30T23:59:59Z", want: outside},
		"fixed, between two ranges": {loansPolicy: fixed, lent: "2026-06-30T23:59:59.5Z", want: outside},
		"fixed, in the next range": {
			loansPolicy: fixed, lent: "2026-07-01T00:00:01Z", want: "2027-01-15T22:00:00Z",
		},
		"fixed, before all": {loansPolicy: fixed, lent: "2025-12-31T23:59:59Z", want: outside},
		"fixed, the instant is in the range": {
			loansPolicy: fixed, lent: "2025-12-31T20:00:00-05:00", want: "2026-07-15T17:00:00-05:00",
		},
		"fixed, the patron expires before": {
			loansPolicy: fixed, lent: "2026-03-01T10:00:00Z", expires: "2026-04-01T00:00:00Z", want: "2026-04-01T00:00:00Z",
		},
		"rolling, ends before the limit": {
			loansPolicy: limited, lent: "2026-03-01T10:00:00Z", want: "2026-04-26T10:00:00Z",
		},
		"rolling, limited": {
			loansPolicy: limited, lent: "2026-06-20T10:00:00Z", want: "2026-07-15T22:00:00Z",
		},
		"rolling, limited and patron expires": {
			loansPolicy: limited, lent: "2026-06-20T10:00:00Z", expires: "2026-07-01T00:00:00Z", want: "2026-07-01T00:00:00Z",
		},
		"rolling, outside of the ranges": {loansPolicy: limited, lent: "2027-01-01T00:00:00Z", want: outside},
		"rolling, a bad period comes first": {
			loansPolicy: strings.Replace(limited, "Weeks", "Terms", 1), lent: "2027-01-01T00:00:00Z", expires: "",
			want: `the interval "Terms" in the loan policy is not recognised`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := policy.Terms{LoanDate: at(t, tt.lent), Schedule: schedule(t, terms)}
			if tt.expires != "" {
				in.PatronExpires = at(t, tt.expires)
			}
			due, err := parsePolicy(t, `{"id":"p1","loanable":true,"loansPolicy":`+tt.loansPolicy+`}`).DueDate(in)
			got := due.Format(time.RFC3339Nano)
			if wrong := (*policy.DueDateError)(nil); errors.As(err, &wrong) {
				got = wrong.Message
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestDueDate_WhileAHoldWaits(t *testing.T) {
	t.Parallel()
	const rolling = `{"profileId":"Rolling","period":{"duration":3,"intervalId":"Weeks"}}`
	const fixed = `{"profileId":"Fixed","fixedDueDateScheduleId":"s1"}`
	const alternate = `{"holds":{"alternateCheckoutLoanPeriod":{"duration":2,"intervalId":"Days"}}}`
	tests := map[string]struct {
		loansPolicy, requests string
		waits                 bool
		want                  string
	}{
		"no hold":      {loansPolicy: rolling, requests: alternate, want: "2026-03-22T10:00:00Z"},
		"a hold waits": {loansPolicy: rolling, requests: alternate, waits: true, want: "2026-03-03T10:00:00Z"},
		"no alternate period": {
			loansPolicy: rolling, requests: `{"holds":{}}`, waits: true, want: "2026-03-22T10:00:00Z",
		},
		"the alternate one is nil": {
			loansPolicy: rolling, requests: `{"holds":{"alternateCheckoutLoanPeriod":null}}`, waits: true,
			want: "2026-03-22T10:00:00Z",
		},
		"nothing about requests": {loansPolicy: rolling, requests: `null`, waits: true, want: "2026-03-22T10:00:00Z"},
		"fixed, no hold":         {loansPolicy: fixed, requests: alternate, want: "2026-07-15T22:00:00Z"},
		"fixed, a hold waits":    {loansPolicy: fixed, requests: alternate, waits: true, want: "2026-03-03T10:00:00Z"},
		"fixed, no alternate period": {
			loansPolicy: fixed, requests: `{"holds":{}}`, waits: true, want: "2026-07-15T22:00:00Z",
		},
		"fixed, the schedule ends the alternate period": {
			loansPolicy: fixed, requests: strings.Replace(alternate, `2,"intervalId":"Days"`, `9,"intervalId":"Months"`, 1),
			waits: true, want: "2026-07-15T22:00:00Z",
		},
	}
	for name, tt := range tests {
		p := parsePolicy(t, `{"id":"p1","loansPolicy":`+tt.loansPolicy+`,"requestManagement":`+tt.requests+`}`)
		due, err := p.DueDate(policy.Terms{
			LoanDate: at(t, "2026-03-01T10:00:00Z"), Schedule: schedule(t, terms), HoldWaits: tt.waits,
		})
		if got := due.Format(time.RFC3339); err != nil || got != tt.want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, tt.want)
		}
	}
	broken := parsePolicy(t, `{"loansPolicy":`+rolling+
		`,"requestManagement":{"holds":{"alternateCheckoutLoanPeriod":{"duration":2}}}}`)
	if due, err := broken.DueDate(policy.Terms{LoanDate: at(t, "2026-03-01T10:00:00Z"), HoldWaits: true}); err == nil {
		t.Errorf("got %s from an alternate period without interval", due)
	}
}

func TestParseFixedSchedule_Refuses(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		``:                   "unexpected end",
		`[]`:                 "cannot unmarshal array",
		`{"schedules":[{}]}`: "schedules[0].from must be a date",
		`{"schedules":[{"from":"2026-01-01","to":"soon"}]}`:                      "schedules[0].to must be a date",
		`{"schedules":[{"from":"2026-01-01","to":"2026-02-01","due":"monday"}]}`: "schedules[0].due must be a date",
	} {
		if s, err := policy.ParseFixedSchedule([]byte(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %s", raw, s, err, want)
		}
	}
}
