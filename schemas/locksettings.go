package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"checkoutlock/schemas/fault"
)

// FOLIO keeps the feature's settings of a tenant in mod-settings under this
// scope and key, without a userId.
const (
	LockSettingsScope = "mod-circulation"
	LockSettingsKey   = "checkoutLockFeature"
)

// Ranges of the lock settings. They are chosen so that time-outs nest whatever
// a tenant sets: storage's request time-out is at least MaxLockWaitMs + 5 s, the
// check-out's at least MaxLockWaits + 5 s.
const (
	MinLockTTLMs    = 250
	MaxRetries      = 100
	MaxLockWaits    = 25 * time.Second // sum of all waits
	folioRetries    = 30               // FOLIO's noOfRetryAttempts when only retryInterval is set
	folioIntervalMs = 250              // FOLIO's retryInterval when only noOfRetryAttempts is set
)

// LockSettings overrides the environment's lock settings field by field; a nil
// field leaves the environment's value.
type LockSettings struct {
	Enabled *bool
	TTL     *time.Duration
	// Waits are the waits between tries, in order; tries = len(Waits)+1. An
	// empty, non-nil list means one try.
	Waits []time.Duration
}

// lockSettingsValue is the entry's value: FOLIO's four fields, and our
// retryIntervals (ms), which wins over FOLIO's pair. N is int, or json.RawMessage for a
// value as it was sent: its numbers are judged before they become integers, since a
// duration of too large an integer overflows.
type lockSettingsValue[N any] struct {
	Enabled        *bool `json:"checkOutLockFeatureEnabled,omitempty"`
	LockTTL        *N    `json:"lockTtl,omitempty"`
	RetryAttempts  *N    `json:"noOfRetryAttempts,omitempty"`
	RetryInterval  *N    `json:"retryInterval,omitempty"`
	RetryIntervals *[]N  `json:"retryIntervals,omitempty"`
}

// ParseLockSettings reads the value of a checkoutLockFeature entry: an object,
// or FOLIO's string that holds one. It refuses unknown fields, wrong types and
// values out of range, naming each, so that a typo cannot switch the feature off.
func ParseLockSettings(value json.RawMessage) (LockSettings, error) {
	raw := bytes.TrimSpace(value)
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return LockSettings{}, fmt.Errorf("value is not a JSON string: %w", err)
		}
		raw = bytes.TrimSpace([]byte(s))
	}
	if len(raw) == 0 || raw[0] != '{' {
		return LockSettings{}, errors.New("value must be a JSON object, or a string that holds one")
	}
	var sent lockSettingsValue[json.RawMessage]
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&sent); err != nil {
		return LockSettings{}, fmt.Errorf("value cannot be read (fields: checkOutLockFeatureEnabled, lockTtl, "+
			"noOfRetryAttempts, retryInterval, retryIntervals): %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return LockSettings{}, errors.New("value has something after its object")
	}
	ttl, ttlErr := readTTL(sent)
	waits, waitsErr := readWaits(sent)
	if err := errors.Join(ttlErr, waitsErr); err != nil {
		return LockSettings{}, err
	}
	s := LockSettings{Enabled: sent.Enabled, TTL: ttl, Waits: waits}
	return s, ValidateLockWaits(waits)
}

// ParseLockSettingsEntry reads a checkoutLockFeature entry, an object whose value
// ParseLockSettings reads. Nothing and null set nothing.
func ParseLockSettingsEntry(entry json.RawMessage) (LockSettings, error) {
	if len(entry) == 0 || string(entry) == "null" {
		return LockSettings{}, nil
	}
	var e struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(entry, &e); err != nil {
		return LockSettings{}, fmt.Errorf("the settings entry cannot be read: %w", err)
	}
	own, err := ParseLockSettings(e.Value)
	if err != nil {
		return LockSettings{}, fmt.Errorf("the settings entry %s/%s cannot be used: %w", LockSettingsScope, LockSettingsKey, err)
	}
	return own, nil
}

func readTTL(v lockSettingsValue[json.RawMessage]) (*time.Duration, error) {
	if v.LockTTL == nil {
		return nil, nil
	}
	ms, err := integerWithin("lockTtl", *v.LockTTL, MinLockTTLMs, MaxLockTTLMs)
	return new(time.Duration(ms) * time.Millisecond), err
}

// readWaits returns nil when the value sets none.
func readWaits(v lockSettingsValue[json.RawMessage]) ([]time.Duration, error) {
	if v.RetryIntervals != nil {
		return waitsOf(*v.RetryIntervals)
	}
	if v.RetryAttempts == nil && v.RetryInterval == nil {
		return nil, nil
	}
	n, interval := folioRetries, folioIntervalMs
	var attemptsErr, intervalErr error
	if v.RetryAttempts != nil {
		n, attemptsErr = integerWithin("noOfRetryAttempts", *v.RetryAttempts, 0, MaxRetries)
	}
	if v.RetryInterval != nil {
		interval, intervalErr = integerWithin("retryInterval", *v.RetryInterval, 0, MaxLockWaitMs)
	}
	if err := errors.Join(attemptsErr, intervalErr); err != nil {
		return nil, err
	}
	return slices.Repeat([]time.Duration{time.Duration(interval) * time.Millisecond}, n), nil
}

func waitsOf(list []json.RawMessage) ([]time.Duration, error) {
	if len(list) > MaxRetries {
		return nil, tooManyWaits(len(list))
	}
	var errs []error
	waits := make([]time.Duration, len(list))
	for i, raw := range list {
		ms, err := integerWithin(fmt.Sprintf("retryIntervals[%d]", i), raw, 0, MaxLockWaitMs)
		if err != nil {
			errs = append(errs, err)
		}
		waits[i] = time.Duration(ms) * time.Millisecond
	}
	return waits, errors.Join(errs...)
}

// integerWithin reads an integer of JSON. Anything else, and an integer out of
// range however large, is an error that names the range.
func integerWithin(name string, raw json.RawMessage, least, most int) (int, error) {
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s is %s, allowed are integers from %d to %d", name, fault.Shown(raw), least, most)
	}
	return n, nil
}

func tooManyWaits(n int) error {
	return fmt.Errorf("there are %d retry intervals, allowed are 0 to %d", n, MaxRetries)
}

// ValidateLockWaits checks a list of waits, each and together.
func ValidateLockWaits(waits []time.Duration) error {
	if len(waits) > MaxRetries {
		return tooManyWaits(len(waits))
	}
	var sum time.Duration
	for i, w := range waits {
		if ms := w.Milliseconds(); ms < 0 || ms > MaxLockWaitMs {
			return fmt.Errorf("retry interval %d is %d ms, allowed are 0 to %d", i+1, ms, MaxLockWaitMs)
		}
		sum += w
	}
	if sum > MaxLockWaits {
		return fmt.Errorf("the retry intervals are %s together, allowed are %s", sum, MaxLockWaits)
	}
	return nil
}

// Value is the way back: the entry's value as an object that FOLIO's readers
// understand too (they see the number of waits and the longest of them).
func (s LockSettings) Value() (json.RawMessage, error) {
	v := lockSettingsValue[int]{Enabled: s.Enabled}
	if s.TTL != nil {
		v.LockTTL = new(int(s.TTL.Milliseconds()))
	}
	if s.Waits != nil {
		list, longest := make([]int, len(s.Waits)), 0
		for i, w := range s.Waits {
			list[i] = int(w.Milliseconds())
			longest = max(longest, list[i])
		}
		v.RetryIntervals, v.RetryAttempts, v.RetryInterval = &list, new(len(list)), &longest
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("writing lock settings: %w", err)
	}
	return raw, nil
}
