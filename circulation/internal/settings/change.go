package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
)

// View is how the settings are shown: each value with its source, and the results
// of the values.
type View struct {
	Enabled          Field[bool]  `json:"enabled"`
	LockTTLMs        Field[int]   `json:"lockTtlMs"`
	RetryIntervalsMs Field[[]int] `json:"retryIntervalsMs"`
	// Version is that of the tenant's entry; a change may name the version that it is
	// based on.
	Version string `json:"version"`
	Timing
	// Problem is why the tenant's stored entry is not in force; empty if it is.
	Problem string `json:"problem,omitempty"`
}

// Timing is how long check-outs take at most.
type Timing struct {
	// LongestWaitMs is the longest time that a check-out waits for the lock.
	LongestWaitMs int `json:"longestWaitMs"`
	// MachinePatienceMs is how long the library's machines wait for an answer. If the
	// lock takes longer, the machine shows an error while its check-out goes on.
	MachinePatienceMs int `json:"machinePatienceMs"`
	// LongestAnswerMs is the time after which no check-out is answered any more.
	LongestAnswerMs int `json:"longestAnswerMs"`
}

// Field is one setting's value and its source.
type Field[T any] struct {
	Value  T      `json:"value"`
	Source Source `json:"source"`
}

// View returns s as it is shown. problem may be nil.
func (s Settings) View(problem error) View {
	waits := convert.All(s.Waits, func(w time.Duration) int { return int(w.Milliseconds()) })
	v := View{
		Enabled:          Field[bool]{s.Enabled, s.EnabledSource},
		LockTTLMs:        Field[int]{int(s.TTL.Milliseconds()), s.TTLSource},
		RetryIntervalsMs: Field[[]int]{waits, s.WaitsSource},
		Version:          s.Version,
		Timing: Timing{
			LongestWaitMs:     int(s.WaitBudget().Milliseconds()),
			MachinePatienceMs: int(s.MachinePatience.Milliseconds()),
			LongestAnswerMs:   int(s.LongestAnswer.Milliseconds()),
		},
	}
	if problem != nil {
		v.Problem = problem.Error()
	}
	return v
}

// Own returns the tenant's own settings.
func (v View) Own() schemas.LockSettings {
	var own schemas.LockSettings
	if v.Enabled.Source == FromTenant {
		own.Enabled = &v.Enabled.Value
	}
	if v.LockTTLMs.Source == FromTenant {
		own.TTL = new(time.Duration(v.LockTTLMs.Value) * time.Millisecond)
	}
	if v.RetryIntervalsMs.Source == FromTenant {
		own.Waits = v.Waits()
	}
	return own
}

// Waits returns the waits in force; an empty list is not nil.
func (v View) Waits() []time.Duration {
	return convert.All(v.RetryIntervalsMs.Value, func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond })
}

// Change is a change of a tenant's settings.
type Change struct {
	Own schemas.LockSettings // the tenant's own settings
	// Version is the version that the change is based on; empty means any.
	Version string
	// Reason and ByName go into the history of changes; both may be empty.
	Reason, ByName string
}

// The milliseconds that a change may have.
var (
	ttlAllowed   = fmt.Sprintf("an integer from %d to %d", schemas.MinLockTTLMs, schemas.MaxLockTTLMs)
	waitsAllowed = fmt.Sprintf("a list of at most %d integers from 0 to %d, together at most %d",
		schemas.MaxRetries, schemas.MaxLockWaitMs, schemas.MaxLockWaits.Milliseconds())
)

// ParseTTL converts milliseconds; it returns false if they are not allowed.
func ParseTTL(ms int) (time.Duration, bool) {
	return time.Duration(ms) * time.Millisecond, ms >= schemas.MinLockTTLMs && ms <= schemas.MaxLockTTLMs
}

// ParseWaits converts milliseconds; it returns false if they are not allowed. No wait is an empty
// list, which is not nil.
func ParseWaits(list []int) ([]time.Duration, bool) {
	waits := make([]time.Duration, len(list))
	for i, ms := range list {
		if ms < 0 || ms > schemas.MaxLockWaitMs {
			return nil, false // before it could overflow
		}
		waits[i] = time.Duration(ms) * time.Millisecond
	}
	return waits, schemas.ValidateLockWaits(waits) == nil
}

// The fields that a change may have. A change may repeat the other fields of View, which are
// ignored.
var (
	fieldNames  = []string{"enabled", "lockTtlMs", "retryIntervalsMs", "version", "reason"}
	shownFields = []string{"longestWaitMs", "machinePatienceMs", "longestAnswerMs", "problem"}
)

// ParseChange reads a change of the tenant's settings: a JSON object with
// enabled, lockTtlMs, retryIntervalsMs, version and reason. A setting that is absent or
// null falls back to the environment's. A setting may also be an object
// {value, source} as View shows it, so a client may read a View, change it and send it
// back. A value that came from the environment and equals the environment's stays the
// environment's.
//
// Its error is an Invalid fault that lists every invalid field.
func (e Environment) ParseChange(body json.RawMessage) (Change, error) {
	r := changeReader{}
	if err := json.Unmarshal(body, &r.fields); err != nil || r.fields == nil {
		return Change{}, fault.Validation(fault.Refusal("", "The body must be a JSON object"))
	}
	for _, name := range slices.Sorted(maps.Keys(r.fields)) {
		if !slices.Contains(fieldNames, name) && !slices.Contains(shownFields, name) {
			r.refuse(name, "is no setting; allowed are "+strings.Join(fieldNames, ", "))
		}
	}
	defaults := e.Settings().View(nil)
	enabled := readField(&r, "enabled", "true or false", map[Source]bool{FromEnvironment: e.Enabled, FromOtherInstance: true})
	ttl := readField(&r, "lockTtlMs", ttlAllowed, map[Source]int{FromEnvironment: defaults.LockTTLMs.Value})
	waits := readField(&r, "retryIntervalsMs", waitsAllowed, map[Source][]int{FromEnvironment: defaults.RetryIntervalsMs.Value})
	change := Change{Version: r.readVersion(), Reason: r.readReason()}
	change.Own.Enabled = enabled
	if ttl != nil {
		d, ok := ParseTTL(*ttl)
		if !ok {
			r.refuse("lockTtlMs", "must be "+ttlAllowed)
		}
		change.Own.TTL = &d
	}
	if waits != nil {
		var ok bool
		if change.Own.Waits, ok = ParseWaits(*waits); !ok {
			r.refuse("retryIntervalsMs", "must be "+waitsAllowed)
		}
	}
	if err := r.faults.Err(); err != nil {
		return Change{}, err
	}
	return change, nil
}

// changeReader reads the fields of a change and gathers the faults.
type changeReader struct {
	fields map[string]json.RawMessage
	faults fault.List
}

// refuse adds the fault that a field breaks a rule.
func (r *changeReader) refuse(name, rule string) {
	key := fault.Shown(name)
	r.faults = append(r.faults, fault.Refusal(string(fault.Invalid), key+" "+rule, fault.Param(key, fault.Shown(string(r.fields[name])))))
}

// readField reads one setting. It returns nil if the tenant wants no value of its own: the setting
// is absent, or it is an inherited one that was shown with its source.
func readField[T any](r *changeReader, name, allowed string, inherited map[Source]T) *T {
	raw := r.fields[name]
	var shown struct {
		Value  json.RawMessage `json:"value"`
		Source Source          `json:"source"`
	}
	if len(raw) > 0 && raw[0] == '{' {
		if err := json.Unmarshal(raw, &shown); err != nil || len(shown.Value) == 0 {
			r.refuse(name, "must be "+allowed+", or {value, source}")
			return nil
		}
		raw = shown.Value
	}
	if isNull(raw) {
		return nil
	}
	var value T
	if err := json.Unmarshal(raw, &value); err != nil || hasNull(raw) {
		r.refuse(name, "must be "+allowed)
		return nil
	}
	if from, ok := inherited[shown.Source]; ok && fmt.Sprint(value) == fmt.Sprint(from) {
		return nil
	}
	return &value
}

// hasNull reports whether a list has a null in it, which would count as 0.
func hasNull(raw json.RawMessage) bool {
	var list []*json.RawMessage
	return json.Unmarshal(raw, &list) == nil && slices.Contains(list, nil)
}

func (r *changeReader) readVersion() (version string) {
	raw := r.fields["version"]
	if isNull(raw) {
		return ""
	}
	if err := json.Unmarshal(raw, &version); err != nil || version == "" {
		r.refuse("version", "must be the version that was read, a string")
	}
	return version
}

func (r *changeReader) readReason() string {
	raw := r.fields["reason"]
	if isNull(raw) {
		return ""
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		r.refuse("reason", "must be a text")
		return ""
	}
	reason, err := schemas.ParseChangeReason(text)
	if err != nil {
		r.refuse("reason", err.Error())
	}
	return reason
}
