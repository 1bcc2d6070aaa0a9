package staff

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/page"
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
	ttlLabel   = "Lock expires after"
	waitsLabel = "Waits between tries"
)

// The allowed values.
var (
	ttlAllowed   = fmt.Sprintf("a time from %s to %s", typeTime(schemas.MinLockTTLMs*time.Millisecond), typeTime(schemas.MaxLockTTLMs*time.Millisecond))
	waitsAllowed = fmt.Sprintf("at most %d times from 0 s to %s, together at most %s",
		schemas.MaxRetries, typeTime(schemas.MaxLockWaitMs*time.Millisecond), typeTime(schemas.MaxLockWaits))
)

// noWaits is the word for one try without a wait.
const noWaits = "none"

// times are the two fields as they were typed.
type times struct{ ttl, waits string }

// ownTimes writes the library's own times. A time of the default is an empty field.
func ownTimes(view settings.View) times {
	var t times
	if view.LockTTLMs.Source == settings.FromTenant {
		t.ttl = typeTime(time.Duration(view.LockTTLMs.Value) * time.Millisecond)
	}
	if view.RetryIntervalsMs.Source == settings.FromTenant {
		t.waits = typeWaits(view.Waits())
	}
	return t
}

// typeTime writes a time as people type it, without rounding: 250 ms, 1.5 s, 600 s.
func typeTime(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}

func typeWaits(waits []time.Duration) string {
	if len(waits) == 0 {
		return noWaits
	}
	texts := make([]string, len(waits))
	for i, w := range waits {
		texts[i] = typeTime(w)
	}
	return strings.Join(texts, ", ")
}

// choice is a pair of times that fits many libraries.
type choice struct {
	key, Name, For string
	ttl            time.Duration
	waits          []time.Duration
}

// choices stand in the order of the page. Each machine gives up before its lock expires.
var choices = []choice{
	{"recommended", "Recommended", "For most libraries.", 3 * time.Second, []time.Duration{500 * time.Millisecond, 500 * time.Millisecond, time.Second}},
	{"patient", "Patient", "For slow networks, and for machines that send a whole pile at once.", 5 * time.Second, []time.Duration{time.Second, time.Second, time.Second, time.Second}},
	{"impatient", "Impatient", "For machines that show an error after a few seconds.", 2 * time.Second, []time.Duration{250 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond}},
}

// findChoice returns the times of the choice with the key; false for none.
func findChoice(key string) (times, bool) {
	for _, c := range choices {
		if c.key == key {
			return times{typeTime(c.ttl), typeWaits(c.waits)}, true
		}
	}
	return times{}, false
}

// wrongTimes says in words why typed times cannot be used; empty for those that can.
type wrongTimes struct{ ttl, waits string }

// parse returns the typed times as the library's own ones, and what is wrong with them. An empty
// field is nil.
func (t times) parse() (own schemas.LockSettings, wrong wrongTimes) {
	ttl, waits := strings.TrimSpace(t.ttl), strings.TrimSpace(t.waits)
	if ttl != "" {
		d, ok := settings.ParseTTL(parseTime(ttl))
		if !ok {
			wrong.ttl = fmt.Sprintf("“%s” cannot be used. Type %s, such as 3 s, or leave the field empty.", fault.Shown(ttl), ttlAllowed)
		}
		own.TTL = &d
	}
	if waits != "" {
		list, unusable := parseWaits(waits)
		if unusable != "" {
			wrong.waits = fmt.Sprintf("%s cannot be used. Type %s, or the word none, or leave the field empty.", unusable, waitsAllowed)
		}
		own.Waits = list
	}
	return own, wrong
}

// typedWait is one of several waits: a word, and its unit after a space. A comma inside a number
// belongs to it, so that 0,5 s is not taken for two waits.
var typedWait = regexp.MustCompile(`(?i)(?:\d+,\d+\s*s\b|[^\s,;|]+)(?:\s+(?:ms|s)\b)?`)

// parseWaits returns the waits, or what of them cannot be used.
func parseWaits(s string) (waits []time.Duration, unusable string) {
	if strings.EqualFold(s, noWaits) {
		return []time.Duration{}, ""
	}
	words := typedWait.FindAllString(strings.ReplaceAll(s, page.NoBreak, " "), -1)
	list := make([]int, len(words))
	for i, word := range words {
		list[i] = parseTime(word)
		if _, ok := settings.ParseWaits(list[i : i+1]); !ok {
			return nil, "“" + fault.Shown(word) + "”"
		}
	}
	waits, ok := settings.ParseWaits(list)
	if !ok || len(list) == 0 {
		return nil, "“" + fault.Shown(s) + "”"
	}
	return waits, ""
}

// typedTime is a number and its unit. Without a unit it is a whole number of milliseconds, without
// leading zeros: the 000 of 1,000 means neither 1 nor 0.
var typedTime = regexp.MustCompile(`(?i)^(0|[1-9]\d{0,8})(\.\d{1,6})?\s*(ms|s)?$`)

// parseTime returns milliseconds; -1, which is no time, for anything else.
func parseTime(s string) int {
	parts := typedTime.FindStringSubmatch(strings.ReplaceAll(s, page.NoBreak, " "))
	if parts == nil {
		return -1
	}
	n, err := strconv.ParseFloat(parts[1]+parts[2], 64)
	if err != nil {
		return -1
	}
	if strings.EqualFold(parts[3], "s") {
		n = math.Round(n*1e6) / 1e3
	}
	if n != math.Trunc(n) {
		return -1
	}
	return int(n)
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
	return sumUp(inForce.TTL, inForce.Waits, inForce.MachinePatience)
}

// sumUp says what times mean for machines with the patience.
func sumUp(ttl time.Duration, waits []time.Duration, patience time.Duration) sums {
	s := sums{Tries: len(waits) + 1, Longest: settings.Settings{Waits: waits}.WaitBudget(), TTL: ttl}
	if s.Longest > s.TTL {
		s.Warnings = append(s.Warnings, fmt.Sprintf("A machine may wait longer (%s) than until the lock expires (%s), so it can overtake a check-out that is slow but alive. "+
			"That is safe: the slow one is refused, or counts the loans again. But it costs time.", formatWhole(s.Longest), formatWhole(s.TTL)))
	}
	if s.Longest > patience {
		s.Warnings = append(s.Warnings, fmt.Sprintf("A machine may wait %s, but the library's machines give up after %s. "+
			"Then one shows an error while its check-out goes on.", formatWhole(s.Longest), formatWhole(patience)))
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
