package staff

import (
	"testing"
	"time"

	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

// english is a reader in the service's time zone.
var english = page.Reader{Language: texts.English, Zone: time.Local}

func TestTypeTime_WritesWhatCanBeTyped(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 ms", 3040 * time.Millisecond: "3.04 s", 10 * time.Minute: "600 s", 999 * time.Millisecond: "999 ms",
	} {
		got := typeTime(english, d)
		if got != want || parseTime(got) != int(d.Milliseconds()) {
			t.Errorf("got %q, read as %d ms, want %q", got, parseTime(got), want)
		}
	}
}

func TestParseTime_UnderstandsADecimalComma(t *testing.T) {
	t.Parallel()
	german := page.Reader{Language: "de"}
	for d, want := range map[time.Duration]string{3040 * time.Millisecond: "3,04 s", 500 * time.Millisecond: "500 ms"} {
		if got := typeTime(german, d); got != want || parseTime(got) != int(d.Milliseconds()) {
			t.Errorf("got %q, read as %d ms, want %q", got, parseTime(got), want)
		}
	}
	for typed, want := range map[string]int{
		"0,5 s": 500, "0,5s": 500, "0,250 s": 250, "1,000 s": -1, "1,000": -1, "1,5": -1, "1,5 ms": -1, ",5 s": -1,
	} {
		if got := parseTime(typed); got != want {
			t.Errorf("%q: got %d ms, want %d", typed, got, want)
		}
	}
	for typed, want := range map[string]int{
		"0,5 s; 0,5 s; 1 s": 3, "0,5 s, 1 s": 2, "250, 0,5s": 2, "keine": 0, "none": 0,
	} {
		if got, unusable := parseWaits(typed, "keine"); unusable != "" || len(got) != want {
			t.Errorf("%q: got %v, cannot use %q", typed, got, unusable)
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
