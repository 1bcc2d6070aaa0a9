package staff

import (
	"strings"
	"testing"
	"time"
)

func TestMilliseconds_RoundsMeasuredTimes(t *testing.T) {
	t.Parallel()
	for n, want := range map[any]string{
		0: "0 ms", int64(999): "999 ms", 1000: "1 s", 2549: "2.5 s", 61_000: "1 min 1 s",
		3_720_000: "1 h 2 min", 90 * time.Second: "1 min 30 s", (*int)(nil): "–",
	} {
		got := milliseconds(n)
		if strings.ReplaceAll(got, nbsp, " ") != want {
			t.Errorf("%v: got %q, want %q", n, got, want)
		}
		for part := range strings.FieldsFuncSeq(got, func(r rune) bool { return r == ' ' }) {
			if !strings.Contains(part, nbsp) && part != "–" {
				t.Errorf("%v: a line can end between a number and its unit: %q", n, got)
			}
		}
	}
}

func TestTypeTime_WritesWhatCanBeTyped(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 ms", 3040 * time.Millisecond: "3.04 s", 10 * time.Minute: "600 s", 999 * time.Millisecond: "999 ms",
	} {
		got := typeTime(d)
		if got != want || parseTime(got) != int(d.Milliseconds()) {
			t.Errorf("got %q, read as %d ms, want %q", got, parseTime(got), want)
		}
	}
}

func TestFormatWhole_DoesNotRound(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 ms", 999 * time.Millisecond: "999 ms", 3 * time.Second: "3 s", 3040 * time.Millisecond: "3.04 s",
		59_999 * time.Millisecond: "59.999 s",
		time.Minute:               "1 min", 10 * time.Minute: "10 min", 90_500 * time.Millisecond: "1 min 30.5 s",
	} {
		if got := strings.ReplaceAll(formatWhole(d), nbsp, " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNameZone_IsTheSameAllYear(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Europe/Berlin": "CET/CEST", "Australia/Sydney": "AEDT/AEST", "UTC": "UTC", "Asia/Tokyo": "JST",
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := nameZone(zone, 2026); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
