package anonymization_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/anonymization"
	"checkoutlock/schemas/fault"
)

// shelf has a tenant's setting and its closed loans.
type shelf struct {
	value   string // of the setting; "" for none
	left    int    // loans that have a patron
	batches []int
	before  []time.Time
	err     error // of AnonymizeLoans, from the second batch on
}

func (s *shelf) SettingValue(_ context.Context, name string) (json.RawMessage, error) {
	if name != "loan_history" || s.value == "" {
		return nil, fault.New(fault.NotFound, "none")
	}
	return json.RawMessage(s.value), nil
}

func (s *shelf) ClosedLoans(_ context.Context, before time.Time, limit int) ([]string, error) {
	s.before = append(s.before, before)
	ids := make([]string, min(s.left, limit))
	for i := range ids {
		ids[i] = fmt.Sprint(s.left - i)
	}
	return ids, nil
}

func (s *shelf) AnonymizeLoans(_ context.Context, ids []string) error {
	if s.err != nil && len(s.batches) > 0 {
		return s.err
	}
	s.left -= len(ids)
	s.batches = append(s.batches, len(ids))
	return nil
}

var now = time.Date(2026, 3, 31, 10, 0, 0, 0, time.UTC)

func (s *shelf) run(t *testing.T) ([]string, error) {
	t.Helper()
	service := anonymization.Service{
		Loans: s, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
	}
	return service.Run(t.Context())
}

func interval(duration, of string) string {
	return `{"closingType":{"loan":"interval"},"loan":{"duration":` + duration + `,"intervalId":"` + of + `"}}`
}

func TestRun_FollowsTheSetting(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		value string
		until string // loans returned before lose their patron; "all", or "" for none
	}{
		"no setting":  {},
		"immediately": {value: `{"closingType":{"loan":"immediately","feeFine":null},"treatEnabled":false}`, until: "all"},
		"never":       {value: `{"closingType":{"loan":"never","feeFine":"immediately"},"treatEnabled":true}`},
		"another":     {value: `{"closingType":{"loan":"Sometimes"}}`},
		"nothing":     {value: `{}`},
		"minutes":     {value: interval("90", "Minutes"), until: "2026-03-31 08:30"},
		"hours":       {value: interval("2", "Hours"), until: "2026-03-31 08:00"},
		"days":        {value: interval("31", "Days"), until: "2026-02-28 10:00"},
		"weeks":       {value: interval("1", "Weeks"), until: "2026-03-24 10:00"},
		"months":      {value: interval("13", "Months"), until: "2025-02-28 10:00"},
		"no time":     {value: interval("0", "Days"), until: "2026-03-31 10:00"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shelf{value: tt.value, left: 2}
			ids, err := s.run(t)
			if err != nil {
				t.Fatal(err)
			}
			if tt.until == "" {
				if len(ids) > 0 || s.before != nil {
					t.Errorf("anonymized %v", ids)
				}
				return
			}
			until := "all"
			if !s.before[0].IsZero() {
				until = s.before[0].Format("2006-01-02 15:04")
			}
			if until != tt.until || !slices.Equal(ids, []string{"2", "1"}) {
				t.Errorf("anonymized %v, returned until %s, want both until %s", ids, until, tt.until)
			}
		})
	}
}

func TestRun_RefusesABadSetting(t *testing.T) {
	t.Parallel()
	const form = "loan needs a duration and an intervalId"
	for value, want := range map[string]string{
		`{"closingType":{"loan":3}}`:                             "closingType.loan",
		`"immediately"`:                                          "cannot unmarshal string",
		interval("1", "Years"):                                   form,
		interval("-1", "Days"):                                   form,
		interval("null", "Days"):                                 form,
		interval("2147483647", "Months"):                         form,
		interval("1.5", "Days"):                                  "not a whole number",
		`{"closingType":{"loan":"interval"},"loan":{}}`:          form,
		`{"closingType":{"loan":"interval"},"loan":{"duration":`: "",
	} {
		s := shelf{value: value, left: 2}
		_, err := s.run(t)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "The setting loan_history cannot be used: ") ||
			!strings.Contains(err.Error(), want) || s.left != 2 {
			t.Errorf("%s: got %v, want %q", value, err, want)
		}
	}
}

func TestRun_WorksInBatches(t *testing.T) {
	t.Parallel()
	const all = `{"closingType":{"loan":"immediately"}}`
	s := shelf{value: all, left: 1200}
	if ids, err := s.run(t); err != nil || len(ids) != 1200 || !slices.Equal(s.batches, []int{500, 500, 200}) {
		t.Errorf("got %d loans, %v in %v", len(ids), err, s.batches)
	}
	s = shelf{value: all, left: 60_000}
	if ids, err := s.run(t); err != nil || len(ids) != 50_000 || s.left != 10_000 {
		t.Errorf("got %d loans, %v, and %d are left, want 50000 at once", len(ids), err, s.left)
	}
	s = shelf{value: all, left: 1200, err: errors.New("away")}
	if _, err := s.run(t); err == nil || s.left != 700 {
		t.Errorf("got %v, and %d are left, want the first batch done", err, s.left)
	}
}
