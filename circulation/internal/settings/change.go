package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// View is how the settings are shown: each value, where it comes from, and what
// follows from them.
type View struct {
	Enabled          Field[bool]  `json:"enabled"`
	LockTTLMs        Field[int]   `json:"lockTtlMs"`
	RetryIntervalsMs Field[[]int] `json:"retryIntervalsMs"`
	// Version is that of the tenant's entry; a change may show which one it is
	// based on.
	Version string `json:"version"`
	// LongestWaitMs is how long a check-out waits for the lock at most.
	LongestWaitMs int `json:"longestWaitMs"`
	// MachinePatienceMs is how long the library's machines wait for an answer: one
	// that waits for the lock longer shows an error while its check-out goes on.
	MachinePatienceMs int `json:"machinePatienceMs"`
	// Problem says why the tenant's stored entry is not in force, if so.
	Problem string `json:"problem,omitempty"`
}

// Field is one setting's value and its source.
type Field[T any] struct {
	Value  T      `json:"value"`
	Source Source `json:"source"`
}

// View returns s as it is shown. problem may be nil.
func (s Settings) View(problem error) View {
	waits := make([]int, len(s.Waits))
	for i, w := range s.Waits {
		waits[i] = int(w.Milliseconds())
	}
	v := View{
		Enabled:          Field[bool]{s.Enabled, s.EnabledSource},
		LockTTLMs:        Field[int]{int(s.TTL.Milliseconds()), s.TTLSource},
		RetryIntervalsMs: Field[[]int]{waits, s.WaitsSource},
		Version:          s.Version,
		LongestWaitMs:    int(s.WaitBudget().Milliseconds()),

		MachinePatienceMs: int(s.MachinePatience.Milliseconds()),
	}
	if problem != nil {
		v.Problem = problem.Error()
	}
	return v
}

// Change is a change of a tenant's settings.
type Change struct {
	schemas.LockSettings
	// Version is the version that the change is based on; empty means any.
	Version string
	// Reason and ByName go into the history of changes; both may be empty.
	Reason, ByName string
}

// What each field of a change may be, for error messages.
var (
	ttlAllowed = fmt.Sprintf("an integer from %d to %d", schemas.MinLockTTLMs, schemas.MaxLockTTLMs)
	// The sum is checked with the list as a whole.
	waitsAllowed = fmt.Sprintf("a list of at most %d integers from 0 to %d, together at most %d",
		schemas.MaxRetries, schemas.MaxLockWaitMs, schemas.MaxLockWaits.Milliseconds())
)

// The fields that a change may have; those that View shows besides are passed over.
var (
	fieldNames  = []string{"enabled", "lockTtlMs", "retryIntervalsMs", "version", "reason"}
	shownFields = []string{"longestWaitMs", "machinePatienceMs", "problem"}
)

// ParseChange reads a change of the tenant's settings: a JSON object with
// enabled, lockTtlMs, retryIntervalsMs, version and reason. A setting that is absent or
// null falls back to the environment's. A setting may also be an object
// {value, source} as View shows it, so that a View that was read, changed and
// sent back does what was meant: a value that came from the environment and is
// still the environment's stays the environment's.
//
// Its error is an Invalid fault that lists everything that is wrong.
func (e Environment) ParseChange(body json.RawMessage) (Change, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return Change{}, fault.Validation(fault.Refusal("", "The body must be a JSON object"))
	}
	var wrong fault.List
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(fieldNames, name) && !slices.Contains(shownFields, name) {
			wrong = append(wrong, *violation(name, fields[name], "is no setting; allowed are "+strings.Join(fieldNames, ", ")))
		}
	}
	note := func(d *fault.Detail) {
		if d != nil {
			wrong = append(wrong, *d)
		}
	}
	var change Change
	var ttl *int
	var waits *[]int
	defaults := e.Settings().View(nil)
	note(readField(fields, "enabled", "true or false", map[Source]bool{FromEnvironment: e.Enabled, FromOtherInstance: true}, &change.Enabled))
	note(readField(fields, "lockTtlMs", ttlAllowed, map[Source]int{FromEnvironment: defaults.LockTTLMs.Value}, &ttl))
	note(readField(fields, "retryIntervalsMs", waitsAllowed, map[Source][]int{FromEnvironment: defaults.RetryIntervalsMs.Value}, &waits))
	note(readVersion(fields["version"], &change.Version))
	note(readReason(fields["reason"], &change.Reason))
	if ttl != nil {
		d := time.Duration(*ttl) * time.Millisecond
		if *ttl < schemas.MinLockTTLMs || *ttl > schemas.MaxLockTTLMs {
			note(violation("lockTtlMs", fields["lockTtlMs"], "must be "+ttlAllowed))
		}
		change.TTL = &d
	}
	if waits != nil {
		var ok bool
		if change.Waits, ok = durations(*waits); !ok {
			note(violation("retryIntervalsMs", fields["retryIntervalsMs"], "must be "+waitsAllowed))
		}
	}
	if err := wrong.Err(); err != nil {
		return Change{}, err
	}
	return change, nil
}

// readField reads one setting into *to, which stays nil when no value of the tenant's
// own is wanted: there is none, or it is an inherited one that was shown with its
// source.
func readField[T any](fields map[string]json.RawMessage, name, allowed string, inherited map[Source]T, to **T) *fault.Detail {
	raw := fields[name]
	var shown struct {
		Value  json.RawMessage `json:"value"`
		Source Source          `json:"source"`
	}
	if len(raw) > 0 && raw[0] == '{' {
		if err := json.Unmarshal(raw, &shown); err != nil || len(shown.Value) == 0 {
			return violation(name, raw, "must be "+allowed+", or {value, source}")
		}
		raw = shown.Value
	}
	if isNull(raw) {
		return nil
	}
	var value T
	if err := json.Unmarshal(raw, &value); err != nil || hasNull(raw) {
		return violation(name, raw, "must be "+allowed)
	}
	if from, ok := inherited[shown.Source]; ok && fmt.Sprint(value) == fmt.Sprint(from) {
		return nil
	}
	*to = &value
	return nil
}

// hasNull tells whether a list has a null in it, which would pass for 0.
func hasNull(raw json.RawMessage) bool {
	var list []*json.RawMessage
	return json.Unmarshal(raw, &list) == nil && slices.Contains(list, nil)
}

func readVersion(raw json.RawMessage, to *string) *fault.Detail {
	if isNull(raw) {
		return nil
	}
	if err := json.Unmarshal(raw, to); err != nil || *to == "" {
		return violation("version", raw, "must be the version that was read, a string")
	}
	return nil
}

func readReason(raw json.RawMessage, to *string) *fault.Detail {
	if isNull(raw) {
		return nil
	}
	var reason string
	if err := json.Unmarshal(raw, &reason); err != nil {
		return violation("reason", raw, "must be a text")
	}
	var err error
	if *to, err = schemas.ParseChangeReason(reason); err != nil {
		return violation("reason", raw, err.Error())
	}
	return nil
}

// durations converts milliseconds; false when they are not allowed.
func durations(list []int) ([]time.Duration, bool) {
	waits := make([]time.Duration, len(list))
	for i, ms := range list {
		if ms < 0 || ms > schemas.MaxLockWaitMs {
			return nil, false // before it could overflow
		}
		waits[i] = time.Duration(ms) * time.Millisecond
	}
	return waits, schemas.ValidateLockWaits(waits) == nil
}

func violation(name string, value json.RawMessage, what string) *fault.Detail {
	key := fault.Shown(name)
	d := fault.Refusal(string(fault.Invalid), key+" "+what, fault.Param(key, fault.Shown(string(value))))
	return &d
}
