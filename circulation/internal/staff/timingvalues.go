package staff

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/fault"
	"checkoutlock/web/page"
	"checkoutlock/web/texts"
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
	ttlLabel   texts.Code = "timing.ttl"
	waitsLabel texts.Code = "timing.waits"
)

// The least and the longest allowed times.
const (
	minTTL  = schemas.MinLockTTLMs * time.Millisecond
	maxTTL  = schemas.MaxLockTTLMs * time.Millisecond
	maxWait = schemas.MaxLockWaitMs * time.Millisecond
)

// noWaits is the word for one try without a wait. The English word is understood in every language.
const noWaits texts.Code = "timing.noWaits"

// times are the two fields as they were typed.
type times struct{ ttl, waits string }

// ownTimes writes the library's own times. A time of the default is an empty field.
func ownTimes(r page.Reader, view settings.View) times {
	var t times
	if view.LockTTLMs.Source == settings.FromTenant {
		t.ttl = typeTime(r, time.Duration(view.LockTTLMs.Value)*time.Millisecond)
	}
	if view.RetryIntervalsMs.Source == settings.FromTenant {
		t.waits = typeWaits(r, view.Waits())
	}
	return t
}

// typeTime writes a time as people type it, without rounding: 250 ms, 1234 ms, 1.5 s, 600 s. Three
// decimals of a second could be read as a thousand.
func typeTime(r page.Reader, d time.Duration) string {
	if d < time.Second || d%(10*time.Millisecond) != 0 {
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return r.Number(d.Seconds(), 3) + " s"
}

func typeWaits(r page.Reader, waits []time.Duration) string {
	if len(waits) == 0 {
		return r.Say(texts.Text{Code: noWaits})
	}
	return strings.Join(convert.All(waits, func(w time.Duration) string { return typeTime(r, w) }), listMark(r))
}

// choice is a pair of times that fits many libraries.
type choice struct {
	key       string
	Name, For texts.Code
	ttl       time.Duration
	waits     []time.Duration
}

// choices stand in the order of the page. Each machine gives up before its lock expires.
var choices = []choice{
	{"recommended", "timing.recommended", "timing.recommendedFor", 3 * time.Second, []time.Duration{500 * time.Millisecond, 500 * time.Millisecond, time.Second}},
	{"patient", "timing.patient", "timing.patientFor", 5 * time.Second, []time.Duration{time.Second, time.Second, time.Second, time.Second}},
	{"impatient", "timing.impatient", "timing.impatientFor", 2 * time.Second, []time.Duration{250 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond}},
}

// findChoice returns the times of the choice with the key; false for none.
func findChoice(r page.Reader, key string) (times, bool) {
	for _, c := range choices {
		if c.key == key {
			return times{typeTime(r, c.ttl), typeWaits(r, c.waits)}, true
		}
	}
	return times{}, false
}

// wrongTimes says in words why typed times cannot be used; empty for those that can.
type wrongTimes struct{ ttl, waits string }

// parse returns the typed times as the library's own ones, and what is wrong with them. An empty
// field is nil.
func (t times) parse(r page.Reader) (own schemas.LockSettings, wrong wrongTimes) {
	ttl, waits := strings.TrimSpace(t.ttl), strings.TrimSpace(t.waits)
	if ttl != "" {
		d, ok := settings.ParseTTL(parseTime(ttl))
		if !ok {
			wrong.ttl = r.Say(texts.Text{Code: "timing.ttlWrong", Values: texts.Values{"typed": fault.Shown(ttl), "least": typeTime(r, minTTL), "most": typeTime(r, maxTTL)}})
		}
		own.TTL = &d
	}
	if waits != "" {
		list, unusable := parseWaits(waits, r.Say(texts.Text{Code: noWaits}))
		if unusable != "" {
			wrong.waits = r.Say(texts.Text{Code: "timing.waitsWrong", Values: texts.Values{
				"typed": fault.Shown(unusable), "tries": strconv.Itoa(schemas.MaxRetries), "most": typeTime(r, maxWait), "together": typeTime(r, schemas.MaxLockWaits),
			}})
		}
		own.Waits = list
	}
	return own, wrong
}

// typedWait is one of several waits: a word, and its unit after a space. A comma inside a number
// belongs to it, so that 0,5 s is not taken for two waits.
var typedWait = regexp.MustCompile(`(?i)(?:\d+,\d+\s*s\b|[^\s,;|]+)(?:\s+(?:ms|s)\b)?`)

// parseWaits returns the waits, or what of them cannot be used.
func parseWaits(s, none string) (waits []time.Duration, unusable string) {
	if strings.EqualFold(s, none) || strings.EqualFold(s, "none") {
		return []time.Duration{}, ""
	}
	words := typedWait.FindAllString(strings.ReplaceAll(s, page.NoBreak, " "), -1)
	list := make([]int, len(words))
	for i, word := range words {
		list[i] = parseTime(word)
		if _, ok := settings.ParseWaits(list[i : i+1]); !ok {
			return nil, word
		}
	}
	waits, ok := settings.ParseWaits(list)
	if !ok || len(list) == 0 {
		return nil, s
	}
	return waits, ""
}

// typedTime is a number and its unit. Without a unit it is a whole number of milliseconds, without
// leading zeros: the 000 of 1,000 means neither 1 nor 0. A comma is a decimal sign, but in 1,000 s it
// may also group digits, so that is refused.
var typedTime = regexp.MustCompile(`(?i)^(0|[1-9]\d{0,8})([.,]\d{1,6})?\s*(ms|s)?$`)

// parseTime returns milliseconds; -1, which is no time, for anything else.
func parseTime(s string) int {
	parts := typedTime.FindStringSubmatch(strings.ReplaceAll(s, page.NoBreak, " "))
	if parts == nil {
		return -1
	}
	decimals, seconds := parts[2], strings.EqualFold(parts[3], "s")
	if strings.HasPrefix(decimals, ",") && (!seconds || len(decimals) == len(",000") && parts[1] != "0") {
		return -1
	}
	n, err := strconv.ParseFloat(parts[1]+strings.Replace(decimals, ",", ".", 1), 64)
	if err != nil {
		return -1
	}
	if seconds {
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

func (p *pages) computeSums(r page.Reader, t times) sums {
	own, wrong := t.parse(r)
	if wrong != (wrongTimes{}) {
		return sums{Wrong: nameUnusable(r, wrong)}
	}
	inForce := p.admin.Environment().Merge(own)
	return sumUp(r, inForce.TTL, inForce.Waits, inForce.MachinePatience)
}

// sumUp says what times mean for machines with the patience.
func sumUp(r page.Reader, ttl time.Duration, waits []time.Duration, patience time.Duration) sums {
	s := sums{Tries: len(waits) + 1, Longest: settings.Settings{Waits: waits}.WaitBudget(), TTL: ttl}
	if s.Longest > s.TTL {
		s.Warnings = append(s.Warnings, r.Say(texts.Text{Code: "timing.longerThanTTL", Values: texts.Values{"longest": r.Felt(s.Longest), "ttl": r.Felt(s.TTL)}}))
	}
	if s.Longest > patience {
		s.Warnings = append(s.Warnings, r.Say(texts.Text{Code: "timing.longerThanPatience", Values: texts.Values{"longest": r.Felt(s.Longest), "patience": r.Felt(patience)}}))
	}
	return s
}

// nameUnusable names the fields that are wrong. The fields say what is allowed.
func nameUnusable(r page.Reader, wrong wrongTimes) string {
	var code texts.Code
	switch {
	case wrong.waits == "":
		code = "timing.lookAtTTL"
	case wrong.ttl == "":
		code = "timing.lookAtWaits"
	default:
		code = "timing.lookAtBoth"
	}
	return r.Say(texts.Text{Code: code})
}
