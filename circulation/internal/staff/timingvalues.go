package staff

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
)

// The values of the page Timing, and what they mean for machines and patrons.

// The form's fields have the names of a change's properties.
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

// The allowed values.
var (
	ttlAllowed   = settings.TTLAllowed("a whole number")
	waitsAllowed = settings.WaitsAllowed("whole numbers")
)

// noWaits is the word for one try without a wait.
const noWaits = "none"

// times are the two fields as they were typed.
type times struct{ ttl, waits string }

// ownTimes writes the library's own times. A time of the service is an empty field.
func ownTimes(view settings.View) times {
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

// wrongTimes says in words why typed times cannot be used; empty for those that can.
type wrongTimes struct{ ttl, waits string }

// parse returns the typed times as the library's own ones, and what is wrong with them. An empty
// field is nil.
func (t times) parse() (own schemas.LockSettings, wrong wrongTimes) {
	ttl, waits := strings.TrimSpace(t.ttl), strings.TrimSpace(t.waits)
	if ttl != "" {
		d, ok := settings.ParseTTL(parseNumber(ttl))
		if !ok {
			wrong.ttl = "Type " + ttlAllowed + ", or leave the field empty."
		}
		own.TTL = &d
	}
	if waits != "" {
		var ok bool
		if own.Waits, ok = parseWaits(waits); !ok {
			wrong.waits = "Type " + waitsAllowed + ", or the word none, or leave the field empty."
		}
	}
	return own, wrong
}

func parseWaits(s string) ([]time.Duration, bool) {
	if strings.EqualFold(s, noWaits) {
		return []time.Duration{}, true
	}
	words := strings.FieldsFunc(s, isSeparator)
	list := make([]int, len(words))
	for i, word := range words {
		list[i] = parseNumber(word)
	}
	waits, ok := settings.ParseWaits(list)
	return waits, ok && len(list) > 0
}

func isSeparator(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;|", r) }

// parseNumber returns a plain integer; -1, which is no time, for anything else. 000 is no integer,
// because 1,000 means neither 1 nor 0.
func parseNumber(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || strconv.Itoa(n) != s {
		return -1
	}
	return n
}

// sums are what times mean for machines and patrons.
type sums struct {
	Tries    int
	Longest  time.Duration // that a machine waits
	TTL      time.Duration
	Warnings []string
	Wrong    string // names the times that cannot be used; the rest is empty then
}

func (p *pages) computeSums(t times) sums {
	own, wrong := t.parse()
	if wrong != (wrongTimes{}) {
		return sums{Wrong: nameUnusable(wrong)}
	}
	inForce := p.admin.Environment().Merge(own)
	s := sums{Tries: len(inForce.Waits) + 1, Longest: inForce.WaitBudget(), TTL: inForce.TTL}
	if s.Longest > s.TTL {
		s.Warnings = append(s.Warnings, fmt.Sprintf("A machine may wait longer (%s) than a lock lives (%s), so it can overtake a check-out that is slow but alive. "+
			"That is safe: the slow one is refused, or counts the loans again. But it costs time.", formatWhole(s.Longest), formatWhole(s.TTL)))
	}
	if s.Longest > inForce.MachinePatience {
		s.Warnings = append(s.Warnings, fmt.Sprintf("A machine may wait %s, but the library's machines give up after %s (MACHINE_PATIENCE). "+
			"Then one shows an error while its check-out goes on.", formatWhole(s.Longest), formatWhole(inForce.MachinePatience)))
	}
	return s
}

// nameUnusable names the fields that are wrong. The fields say what is allowed.
func nameUnusable(wrong wrongTimes) string {
	var names []string
	for _, f := range findProblems(field{Label: ttlLabel, Wrong: wrong.ttl}, field{Label: waitsLabel, Wrong: wrong.waits}) {
		names = append(names, f.Label)
	}
	return "The times cannot be used as they are. Look at " + strings.Join(names, " and ") + "."
}
