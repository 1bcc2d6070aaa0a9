package policy_test

import (
	"encoding/json"
	"testing"
	"time"

	"checkoutlock/circulation/internal/policy"
)

func TestHowLongAnItemWaitsOnTheHoldShelf(t *testing.T) {
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
