package staff_test

import (
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/staff"
)

func TestFindSpan(t *testing.T) {
	t.Parallel()
	const (
		berlin   = "Europe/Berlin"
		newYork  = "America/New_York"
		lordHowe = "Australia/Lord_Howe" // changes by half an hour
		kolkata  = "Asia/Kolkata"        // never changes
		apia     = "Pacific/Apia"        // skipped 30 December 2011
	)
	tests := []struct{ name, zone, typed, first, last string }{
		{
			name: "a minute in summer", zone: berlin, typed: "2026-08-22T14:03", first: "2026-08-22T12:03:00.000Z",
			last: "2026-08-22T12:03:59.999Z",
		},
		{
			name: "a second in winter", zone: berlin, typed: "2026-01-22T14:03:05", first: "2026-01-22T13:03:05.000Z",
			last: "2026-01-22T13:03:05.999Z",
		},
		{
			name: "a minute before the repeated hour", zone: berlin, typed: "2026-10-25T01:59",
			first: "2026-10-24T23:59:00.000Z", last: "2026-10-24T23:59:59.999Z",
		},
		{
			name: "the repeated hour begins", zone: berlin, typed: "2026-10-25T02:00", first: "2026-10-25T00:00:00.000Z",
			last: "2026-10-25T01:00:59.999Z",
		},
		{
			name: "in the repeated hour", zone: berlin, typed: "2026-10-25T02:30", first: "2026-10-25T00:30:00.000Z",
			last: "2026-10-25T01:30:59.999Z",
		},
		{
			name: "a second in the repeated hour", zone: berlin, typed: "2026-10-25T02:30:10", first: "2026-10-25T00:30:10.000Z",
			last: "2026-10-25T01:30:10.999Z",
		},
		{
			name: "the repeated hour ends", zone: berlin, typed: "2026-10-25T02:59", first: "2026-10-25T00:59:00.000Z",
			last: "2026-10-25T01:59:59.999Z",
		},
		{
			name: "a minute after the repeated hour", zone: berlin, typed: "2026-10-25T03:00", first: "2026-10-25T02:00:00.000Z",
			last: "2026-10-25T02:00:59.999Z",
		},
		{
			name: "a minute before the skipped hour", zone: berlin, typed: "2026-03-29T01:59", first: "2026-03-29T00:59:00.000Z",
			last: "2026-03-29T00:59:59.999Z",
		},
		{
			name: "the skipped hour begins", zone: berlin, typed: "2026-03-29T02:00", first: "2026-03-29T01:00:00.000Z",
			last: "2026-03-29T01:00:00.000Z",
		},
		{
			name: "in the skipped hour", zone: berlin, typed: "2026-03-29T02:30", first: "2026-03-29T01:00:00.000Z",
			last: "2026-03-29T01:00:00.000Z",
		},
		{
			name: "the skipped hour ends", zone: berlin, typed: "2026-03-29T02:59:59", first: "2026-03-29T01:00:00.000Z",
			last: "2026-03-29T01:00:00.000Z",
		},
		{
			name: "a minute after the skipped hour", zone: berlin, typed: "2026-03-29T03:00", first: "2026-03-29T01:00:00.000Z",
			last: "2026-03-29T01:00:59.999Z",
		},
		{
			name: "the repeated hour west of UTC", zone: newYork, typed: "2026-11-01T01:30", first: "2026-11-01T05:30:00.000Z",
			last: "2026-11-01T06:30:59.999Z",
		},
		{
			name: "the skipped hour west of UTC", zone: newYork, typed: "2026-03-08T02:30", first: "2026-03-08T07:00:00.000Z",
			last: "2026-03-08T07:00:00.000Z",
		},
		{
			name: "half an hour that is repeated", zone: lordHowe, typed: "2026-04-05T01:45", first: "2026-04-04T14:45:00.000Z",
			last: "2026-04-04T15:15:59.999Z",
		},
		{
			name: "an hour that is repeated for the last time", zone: "Europe/Moscow", typed: "2014-10-26T01:30",
			first: "2014-10-25T21:30:00.000Z", last: "2014-10-25T22:30:59.999Z",
		},
		{
			name: "a zone without changes", zone: kolkata, typed: "2026-10-25T02:30", first: "2026-10-24T21:00:00.000Z",
			last: "2026-10-24T21:00:59.999Z",
		},
		{
			name: "UTC", zone: "UTC", typed: "2026-10-25T02:30", first: "2026-10-25T02:30:00.000Z",
			last: "2026-10-25T02:30:59.999Z",
		},
		{
			name: "a day that is skipped", zone: apia, typed: "2011-12-30T12:00", first: "2011-12-30T10:00:00.000Z",
			last: "2011-12-30T10:00:00.000Z",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			zone, err := time.LoadLocation(tt.zone)
			if err != nil {
				t.Fatal(err)
			}
			first, last, ok := staff.FindSpan(tt.typed, zone)
			const layout = "2006-01-02T15:04:05.000Z"
			if got, want := first.UTC().Format(layout), tt.first; !ok || got != want {
				t.Errorf("begins at %s, want %s", got, want)
			}
			if got, want := last.UTC().Format(layout), tt.last; got != want {
				t.Errorf("ends at %s, want %s", got, want)
			}
		})
	}
}

func TestFindSpan_KeepsEachInstantInTheMinuteThatClocksShow(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, day := range []string{"2026-03-29T00:00:00Z", "2026-10-25T00:00:00Z"} {
		begin, err := time.Parse(time.RFC3339, day)
		if err != nil {
			t.Fatal(err)
		}
		for at := begin.Add(-2 * time.Hour); at.Before(begin.Add(4 * time.Hour)); at = at.Add(59 * time.Second) {
			typed := at.In(zone).Format("2006-01-02T15:04")
			if first, last, ok := staff.FindSpan(typed, zone); !ok || at.Before(first) || at.After(last) {
				t.Errorf("%s is shown as %s, which stands for %s to %s", at, typed, first, last)
			}
		}
	}
}

func TestReadClock(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, now, typed, want string }{
		{name: "earlier today", now: "2026-08-22T12:10:00Z", typed: "14:03", want: "2026-08-22T12:03:00Z"},
		{name: "yesterday", now: "2026-08-22T12:10:00Z", typed: "18:30", want: "2026-08-21T16:30:00Z"},
		{name: "by a clock that is fast", now: "2026-08-22T12:00:00Z", typed: "14:10", want: "2026-08-22T12:10:00Z"},
		{name: "by one that is fast at midnight", now: "2026-08-22T21:58:00Z", typed: "00:03", want: "2026-08-22T22:03:00Z"},
		{name: "repeated, the first time", now: "2026-10-25T00:40:00Z", typed: "2:30", want: "2026-10-25T00:30:00Z"},
		{name: "repeated, the second time", now: "2026-10-25T01:40:00Z", typed: "2:30", want: "2026-10-25T01:30:00Z"},
		{name: "in the skipped hour", now: "2026-03-29T05:00:00Z", typed: "2:30", want: "2026-03-29T01:00:00Z"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			now, err := time.Parse(time.RFC3339, tt.now)
			if err != nil {
				t.Fatal(err)
			}
			at, ok := staff.ReadClock(tt.typed, now.In(berlin))
			if got := at.UTC().Format(time.RFC3339); !ok || got != tt.want {
				t.Errorf("got %s, %v, want %s", got, ok, tt.want)
			}
		})
	}
}

// Clocks in Chile skipped the first hour of 6 September.
func TestLinkYesterday_WhereClocksSkipMidnight(t *testing.T) {
	t.Parallel()
	santiago, err := time.LoadLocation("America/Santiago")
	if err != nil {
		t.Fatal(err)
	}
	got := staff.LinkYesterday(time.Date(2026, time.September, 7, 0, 30, 0, 0, santiago))
	if !strings.Contains(got, "from=2026-09-06T00%3A00") || !strings.Contains(got, "until=2026-09-06T23%3A59") {
		t.Errorf("got %s", got)
	}
}
