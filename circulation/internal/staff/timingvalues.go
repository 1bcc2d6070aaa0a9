package staff

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// What people type on the page Timing, and what follows from it.

// The properties of a change that the form's fields are called after.
const (
	ttlField   = "lockTtlMs"
	waitsField = "retryIntervalsMs"
	reasonName = "reason"
)

// What may be typed. The ranges are those of package schemas.
var (
	ttlAllowed   = fmt.Sprintf("a whole number from %d to %d", schemas.MinLockTTLMs, schemas.MaxLockTTLMs)
	waitsAllowed = fmt.Sprintf("at most %d whole numbers from 0 to %d, together at most %d",
		schemas.MaxRetries, schemas.MaxLockWaitMs, schemas.MaxLockWaits.Milliseconds())
)

// noWaits is the word for waiting not at all.
const noWaits = "none"

// times are the two fields as they were typed.
type times struct{ ttl, waits string }

// timesOf writes the library's own times; what is the service's is an empty field.
func timesOf(view settings.View) times {
	var t times
	if view.LockTTLMs.Source == settings.FromTenant {
		t.ttl = strconv.Itoa(view.LockTTLMs.Value)
	}
	if view.RetryIntervalsMs.Source == settings.FromTenant {
		t.waits = noWaits
		if list := view.RetryIntervalsMs.Value; len(list) > 0 {
			t.waits = strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ", "), "[]")
		}
	}
	return t
}

// typed is what was typed as values of a change: numbers where there are some, texts
// for whoever checks them otherwise, nil for an empty field.
func (t times) typed() (ttl, waits any) {
	if s := strings.TrimSpace(t.ttl); s != "" {
		ttl = number(s)
	}
	switch s := strings.TrimSpace(t.waits); {
	case s == "":
	case strings.EqualFold(s, noWaits):
		waits = []int{}
	default:
		list := []any{}
		for _, one := range strings.FieldsFunc(s, separates) {
			list = append(list, number(one))
		}
		waits = list
		if len(list) == 0 {
			waits = s
		}
	}
	return ttl, waits
}

func separates(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;|", r) }

// number is a plain integer or the text itself. 000 is a text: whoever types 1,000
// means neither 1 nor 0.
func number(s string) any {
	if n, err := strconv.Atoi(s); err == nil && strconv.Itoa(n) == s {
		return n
	}
	return s
}

// parse checks times as ChangeSettings does. Fault: Invalid.
func (p *Pages) parse(t times) (settings.Change, error) {
	var wanted struct {
		TTL   any `json:"lockTtlMs"`
		Waits any `json:"retryIntervalsMs"`
	}
	wanted.TTL, wanted.Waits = t.typed()
	body, err := json.Marshal(wanted)
	if err != nil {
		return settings.Change{}, fmt.Errorf("writing the times: %w", err)
	}
	change, err := p.Oversight.Environment().ParseChange(body)
	if err != nil {
		return change, fmt.Errorf("reading the times: %w", err)
	}
	return change, nil
}

// wrongTime says in words what err has against a field, "" for nothing.
func wrongTime(err error, name string) string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return ""
	}
	about := func(d fault.Detail) bool { return len(d.Parameters) > 0 && d.Parameters[0].Key == name }
	i := slices.IndexFunc(f.Details, about)
	switch {
	case i < 0:
		return ""
	case name == ttlField:
		return "Type " + ttlAllowed + ", or leave the field empty."
	case name == waitsField:
		return "Type " + waitsAllowed + ", or the word none, or leave the field empty."
	}
	return capital(f.Details[i].Message) + "."
}

// sums are what times mean for machines and patrons.
type sums struct {
	Tries    int
	Longest  time.Duration // that a machine waits
	TTL      time.Duration
	Warnings []string
	Wrong    []string // why the times cannot be used; the rest is empty then
}

func (p *Pages) sumsOf(t times) sums {
	change, err := p.parse(t)
	if err != nil {
		var s sums
		for _, f := range problems(field{Wrong: wrongTime(err, ttlField)}, field{Wrong: wrongTime(err, waitsField)}) {
			s.Wrong = append(s.Wrong, f.Wrong)
		}
		return s
	}
	inForce := p.Oversight.Environment().Settings()
	if change.TTL != nil {
		inForce.TTL = *change.TTL
	}
	if change.Waits != nil {
		inForce.Waits = change.Waits
	}
	s := sums{Tries: len(inForce.Waits) + 1, Longest: inForce.WaitBudget(), TTL: inForce.TTL}
	if s.Longest > s.TTL {
		s.Warnings = append(s.Warnings, fmt.Sprintf("A machine may wait longer (%d ms) than a lock lives (%d ms), so it can overtake a check-out that is slow but alive. "+
			"That is safe: the slow one is refused and counts the loans again. But it costs time.", s.Longest.Milliseconds(), s.TTL.Milliseconds()))
	}
	if s.Longest > inForce.MachinePatience {
		s.Warnings = append(s.Warnings, fmt.Sprintf("A machine may wait %d ms, but the library's machines give up after %d ms (MACHINE_PATIENCE). "+
			"Then one shows an error while its check-out goes on.", s.Longest.Milliseconds(), inForce.MachinePatience.Milliseconds()))
	}
	return s
}

// durations converts milliseconds; never nil.
func durations(ms []int) []time.Duration {
	list := make([]time.Duration, len(ms))
	for i, n := range ms {
		list[i] = time.Duration(n) * time.Millisecond
	}
	return list
}
