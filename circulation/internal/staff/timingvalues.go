package staff

import (
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

// What people call the two times.
const (
	ttlLabel   = "Time to live"
	waitsLabel = "Waits between tries"
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
	Wrong    string // that the times cannot be used, and which; the rest is empty then
}

func (p *Pages) sumsOf(t times) sums {
	var wanted proposal
	wanted.LockTTLMs, wanted.RetryIntervalsMs = t.typed()
	change, err := p.parse(wanted)
	if err != nil {
		return sums{Wrong: unusableTimes(err)}
	}
	inForce := p.Admin.Environment().Settings()
	if change.TTL != nil {
		inForce.TTL = *change.TTL
	}
	if change.Waits != nil {
		inForce.Waits = change.Waits
	}
	s := sums{Tries: len(inForce.Waits) + 1, Longest: inForce.WaitBudget(), TTL: inForce.TTL}
	if s.Longest > s.TTL {
		s.Warnings = append(s.Warnings, fmt.Sprintf("A machine may wait longer (%s) than a lock lives (%s), so it can overtake a check-out that is slow but alive. "+
			"That is safe: the slow one is refused, or counts the loans again. But it costs time.", felt(s.Longest), felt(s.TTL)))
	}
	if s.Longest > inForce.MachinePatience {
		s.Warnings = append(s.Warnings, fmt.Sprintf("A machine may wait %s, but the library's machines give up after %s (MACHINE_PATIENCE). "+
			"Then one shows an error while its check-out goes on.", felt(s.Longest), felt(inForce.MachinePatience)))
	}
	return s
}

// unusableTimes names the fields that err is about. What may be typed stands at the
// fields.
func unusableTimes(err error) string {
	var names []string
	for _, f := range problems(field{Label: ttlLabel, Wrong: wrongTime(err, ttlField)}, field{Label: waitsLabel, Wrong: wrongTime(err, waitsField)}) {
		names = append(names, f.Label)
	}
	return "The times cannot be used as they are. Look at " + strings.Join(names, " and ") + "."
}

// durations converts milliseconds; never nil.
func durations(ms []int) []time.Duration {
	list := make([]time.Duration, len(ms))
	for i, n := range ms {
		list[i] = time.Duration(n) * time.Millisecond
	}
	return list
}
