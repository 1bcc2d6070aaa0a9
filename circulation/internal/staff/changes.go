package staff

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"checkoutlock/schemas"
	"checkoutlock/schemas/convert"
	"checkoutlock/schemas/redact"
	"checkoutlock/web/page"
	"checkoutlock/web/texts"
)

// change is an entry of the history of changes as pages show it.
type change struct {
	Date   string
	Who    string
	What   []string
	Reason string
	Lock   string // what was released; empty for other changes
}

func (v *visit) describeChanges(list []schemas.LockChange) []change {
	shown := make([]change, len(list))
	for i, c := range list {
		shown[i] = change{Date: c.Date, Who: cmp.Or(c.By.Name, c.By.UserID, v.say("unknown", nil)), Reason: c.Reason}
		if c.Lock != nil {
			shown[i].Lock = v.describeReleased(*c.Lock)
		}
		if c.Kind == schemas.ChangeRelease {
			shown[i].What = []string{v.say("change.released", nil)}
		} else {
			shown[i].What = v.describeSettings(c.Before, c.After)
		}
	}
	return shown
}

// describeReleased says whose lock was released, and which instance held it for how long.
func (v *visit) describeReleased(l schemas.CheckoutLock) string {
	patron := v.say("change.patronGone", nil)
	if l.UserID != "" {
		patron = redact.Mask(l.UserID)
	}
	return v.say("change.lock", texts.Values{
		"patron": patron, "holder": cmp.Or(l.Holder, v.say("instance.unnamed", nil)),
		"age": v.reader.Duration(time.Duration(l.AgeMs) * time.Millisecond),
	})
}

// describeSettings says what a change of the settings' entry changed.
func (v *visit) describeSettings(before, after json.RawMessage) []string {
	was, okBefore := parseSettings(before)
	is, okAfter := parseSettings(after)
	if !okBefore || !okAfter {
		return []string{v.say("change.replaced", nil)}
	}
	r := v.reader
	var what []string
	note := func(name texts.Code, old, current string) {
		if old != current {
			what = append(what, v.say("change.setting", texts.Values{"name": v.say(name, nil), "now": current, "before": old}))
		}
	}
	note("column.lock", formatSwitch(r, was.Enabled), formatSwitch(r, is.Enabled))
	note(ttlLabel, formatSet(r, was.TTL, r.Felt), formatSet(r, is.TTL, r.Felt))
	note("change.waits", formatWaits(r, was.Waits), formatWaits(r, is.Waits))
	if len(what) == 0 {
		return []string{v.say("change.unchanged", nil)}
	}
	return what
}

func parseSettings(value json.RawMessage) (schemas.LockSettings, bool) {
	if len(value) == 0 || string(value) == "null" {
		return schemas.LockSettings{}, true
	}
	s, err := schemas.ParseLockSettings(value)
	return s, err == nil
}

// byService is what an unset field of the settings means.
const byService texts.Code = "settings.default"

func formatSet[T any](r page.Reader, value *T, format func(T) string) string {
	if value == nil {
		return r.Say(texts.Text{Code: byService})
	}
	return format(*value)
}

func formatSwitch(r page.Reader, enabled *bool) string {
	return r.Say(texts.Text{Code: nameSwitch(enabled)})
}

// nameSwitch names a position of the switch; nil is the default.
func nameSwitch(enabled *bool) texts.Code {
	switch {
	case enabled == nil:
		return byService
	case *enabled:
		return "settings.on"
	}
	return "settings.off"
}

// formatWaits writes waits: 500 ms, 500 ms, 1 s. nil means that they are not set.
func formatWaits(r page.Reader, waits []time.Duration) string {
	switch {
	case waits == nil:
		return r.Say(texts.Text{Code: byService})
	case len(waits) == 0:
		return r.Say(texts.Text{Code: noWaits})
	case len(waits) > 3 && len(slices.Compact(slices.Clone(waits))) == 1:
		return r.Say(texts.Text{Code: "timing.sameWaits", Values: texts.Values{"count": strconv.Itoa(len(waits)), "wait": r.Felt(waits[0])}})
	}
	return strings.Join(convert.All(waits, r.Felt), listMark(r))
}
