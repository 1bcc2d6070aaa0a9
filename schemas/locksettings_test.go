package schemas_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"checkoutlock/schemas"
)

func TestParseLockSettings_RefusesNumbersOutOfRangeAndNamesTheRange(t *testing.T) {
	t.Parallel()
	const (
		ttl      = "allowed are integers from 250 to 600000"
		attempts = "noOfRetryAttempts is %s, allowed are integers from 0 to 100"
		wait     = "allowed are integers from 0 to 10000"
	)
	numbers := []string{
		"-1", "9223372036854775807", "9223372036854775808", "18446744073709551615", "-9223372036854775809",
		"18446744076710", // 3 s when nanoseconds wrap around
		"3000.5", "3e3", "1e400", `"3000"`, "true", "[]", "{}",
	}
	tests := []struct{ name, field, format, want string }{
		{name: "the TTL", field: "lockTtl", format: `{"lockTtl":%s}`, want: ttl},
		{name: "a wait", field: "retryIntervals[1]", format: `{"retryIntervals":[500,%s]}`, want: wait},
		{name: "FOLIO's wait", field: "retryInterval", format: `{"retryInterval":%s}`, want: wait},
		{
			name: "FOLIO's number of waits", field: "noOfRetryAttempts", format: `{"noOfRetryAttempts":%s}`,
			want: strings.TrimPrefix(attempts, "noOfRetryAttempts is %s, "),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, number := range numbers {
				body := strings.Replace(tt.format, "%s", number, 1)
				s, err := schemas.ParseLockSettings(json.RawMessage(body))
				if err == nil || !strings.Contains(err.Error(), tt.field+" is ") || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s: got %+v, %v, want %s and %s", body, s, err, tt.field, tt.want)
				}
			}
		})
	}
	t.Run("a null in the list", func(t *testing.T) {
		t.Parallel()
		if _, err := schemas.ParseLockSettings(json.RawMessage(`{"retryIntervals":[null]}`)); err == nil ||
			!strings.Contains(err.Error(), "retryIntervals[0] is null") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("everything that is wrong", func(t *testing.T) {
		t.Parallel()
		_, err := schemas.ParseLockSettings(json.RawMessage(`"{\"lockTtl\":249,\"retryIntervals\":[10001,1,-1]}"`))
		for _, want := range []string{"lockTtl is 249", "retryIntervals[0] is 10001", "retryIntervals[2] is -1"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	})
}

func TestParseLockSettings_AcceptsNumbersInRange(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, value string
		ttl         time.Duration // 0 is none
		waits       []time.Duration
	}{
		{
			name: "the least", value: `{"lockTtl":250,"retryIntervals":[0]}`, ttl: 250 * time.Millisecond,
			waits: []time.Duration{0},
		},
		{
			name: "the most", value: `{"lockTtl":600000,"retryIntervals":[10000,10000,5000]}`, ttl: 10 * time.Minute,
			waits: []time.Duration{10 * time.Second, 10 * time.Second, 5 * time.Second},
		},
		{name: "one try", value: `{"retryIntervals":[]}`, ttl: 0, waits: []time.Duration{}},
		{
			name: "FOLIO's pair", value: `{"noOfRetryAttempts":2,"retryInterval":300}`, ttl: 0,
			waits: []time.Duration{300 * time.Millisecond, 300 * time.Millisecond},
		},
		{
			name: "FOLIO's interval for its number", value: `{"retryInterval":1}`, ttl: 0,
			waits: slices.Repeat([]time.Duration{time.Millisecond}, 30),
		},
		{
			name: "our list before FOLIO's pair", value: `{"noOfRetryAttempts":2,"retryInterval":300,"retryIntervals":[7]}`,
			ttl: 0, waits: []time.Duration{7 * time.Millisecond},
		},
		{
			name:  "null is absent",
			value: `{"lockTtl":null,"retryIntervals":null,"noOfRetryAttempts":null,"retryInterval":null}`, ttl: 0, waits: nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := schemas.ParseLockSettings(json.RawMessage(tt.value))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.TTL; (got == nil) != (tt.ttl == 0) || (got != nil && *got != tt.ttl) {
				t.Errorf("the TTL is %v, want %v", got, tt.ttl)
			}
			if !slices.Equal(s.Waits, tt.waits) || (s.Waits == nil) != (tt.waits == nil) {
				t.Errorf("the waits are %v, want %v", s.Waits, tt.waits)
			}
		})
	}
	if _, err := schemas.ParseLockSettings(json.RawMessage(`{"retryIntervals":[10000,10000,5001]}`)); err == nil ||
		!strings.Contains(err.Error(), "25.001s together, allowed are 25s") {
		t.Errorf("waits that are too long together: got %v", err)
	}
}

func TestParseLockSettings_RefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	const noObject = "must be a JSON object"
	for value, want := range map[string]string{
		``: noObject, `null`: noObject, `[]`: noObject, `"null"`: noObject,
		`"{}`: "not a JSON string", `{} {}`: "after its object", `{"enabled":true}`: `unknown field "enabled"`,
		`{"retryIntervals":[0` + strings.Repeat(",0", schemas.MaxRetries) + `]}`: "there are 101 retry intervals",
	} {
		if _, err := schemas.ParseLockSettings(json.RawMessage(value)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", value, err, want)
		}
	}
}

// A value is refused, or the settings are within their ranges and survive being written.
func FuzzParseLockSettings(f *testing.F) {
	for _, value := range []string{
		`{}`, `"{}"`, `{"checkOutLockFeatureEnabled":true,"lockTtl":3000,"noOfRetryAttempts":30,"retryInterval":250}`,
		`{"retryIntervals":[10000,0,1]}`, `"{\"lockTtl\":600000,\"retryIntervals\":[]}"`, `{"lockTtl":null}`,
		`{"lockTtl":3e3}`,
		`{"noOfRetryAttempts":100,"retryInterval":10000}`, `{"checkOutLockFeatureEnabled":false} {}`, `"\ud800"`,
	} {
		f.Add([]byte(value))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		s, err := schemas.ParseLockSettings(value)
		if err != nil {
			return
		}
		if s.TTL != nil && (s.TTL.Milliseconds() < schemas.MinLockTTLMs || s.TTL.Milliseconds() > schemas.MaxLockTTLMs) {
			t.Errorf("%q sets the TTL %s", value, *s.TTL)
		}
		if err := schemas.ValidateLockWaits(s.Waits); err != nil {
			t.Errorf("%q: %v", value, err)
		}
		written, err := s.Value()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := schemas.ParseLockSettings(written); err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("%q is written as %s, which is read as %+v, %v, want %+v", value, written, again, err, s)
		}
	})
}
