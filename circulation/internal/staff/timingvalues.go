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

// The allowed values. The ranges are those of package schemas.
var (
	ttlAllowed   = fmt.Sprintf("a whole number from %d to %d", schemas.MinLockTTLMs, schemas.MaxLockTTLMs)
	waitsAllowed = fmt.Sprintf("at most %d whole numbers from 0 to %d, together at most %d",
		schemas.MaxRetries, schemas.MaxLockWaitMs, schemas.MaxLockWaits.Milliseconds())
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

// parse returns the typed times as values of a change: numbers, or the text where it is
// no number, so that the check names it. An empty field is nil.
func (t times) parse() (ttl, waits any) {
	if s := strings.TrimSpace(t.ttl); s != "" {
		ttl = parseNumber(s)
	}
	switch s := strings.TrimSpace(t.waits); {
	case s == "":
	case strings.EqualFold(s, noWaits):
		waits = []int{}
	default:
		list := []any{}
		for _, word := range strings.FieldsFunc(s, isSeparator) {
			list = append(list, parseNumber(word))
		}
		waits = list
		if len(list) == 0 {
			waits = s
		}
	}
	return ttl, waits
}

func isSeparator(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;|", r) }

// parseNumber returns a plain integer, or the text itself. 000 is a text, because 1,000
// means neither 1 nor 0.
func parseNumber(s string) any {
	if n, err := strconv.Atoi(s); err == nil && strconv.Itoa(n) == s {
		return n
	}
	return s
}

// explainField says in words why err refuses a field; empty if it does not.
func explainField(err error, name string) string {
	detail, found := findDetail(err, name)
	switch {
	case !found:
		return ""
	case name == ttlField:
		return "Type " + ttlAllowed + ", or leave the field empty."
	case name == waitsField:
		return "Type " + waitsAllowed + ", or the word none, or leave the field empty."
	}
	return capitalize(detail.Message) + "."
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
	var wanted proposal
	wanted.LockTTLMs, wanted.RetryIntervalsMs = t.parse()
	_, change, err := p.parseProposal(wanted)
	if err != nil {
		return sums{Wrong: nameUnusable(err)}
	}
	inForce := p.admin.Environment().Settings()
	if change.Own.TTL != nil {
		inForce.TTL = *change.Own.TTL
	}
	if change.Own.Waits != nil {
		inForce.Waits = change.Own.Waits
	}
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

// nameUnusable names the fields that err refuses. The fields say what is allowed.
func nameUnusable(err error) string {
	var names []string
	for _, f := range findProblems(field{Label: ttlLabel, Wrong: explainField(err, ttlField)}, field{Label: waitsLabel, Wrong: explainField(err, waitsField)}) {
		names = append(names, f.Label)
	}
	return "The times cannot be used as they are. Look at " + strings.Join(names, " and ") + "."
}
