package staff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"checkoutlock/schemas"
)

// change is an entry of the history of changes as pages show it.
type change struct {
	Date   string
	Who    string
	What   []string
	Reason string
	Lock   *schemas.CheckoutLock
}

func describeChanges(list []schemas.LockChange) []change {
	shown := make([]change, len(list))
	for i, c := range list {
		what := []string{"Released a lock by force"}
		if c.Kind != schemas.ChangeRelease {
			what = describeSettings(c.Before, c.After)
		}
		shown[i] = change{
			Date: c.Date, Who: cmp.Or(c.By.Name, c.By.UserID, "not known"), What: what, Reason: c.Reason, Lock: c.Lock,
		}
	}
	return shown
}

// describeSettings says what a change of the settings' entry changed.
func describeSettings(before, after json.RawMessage) []string {
	was, okBefore := parseSettings(before)
	is, okAfter := parseSettings(after)
	if !okBefore || !okAfter {
		return []string{"Replaced settings that could not be used"}
	}
	var what []string
	note := func(name, old, current string) {
		if old != current {
			what = append(what, fmt.Sprintf("%s: %s, before that %s", name, current, old))
		}
	}
	note("Lock", formatSwitch(was.Enabled), formatSwitch(is.Enabled))
	note(ttlLabel, formatSet(was.TTL, formatWhole), formatSet(is.TTL, formatWhole))
	note("Waits", formatWaits(was.Waits), formatWaits(is.Waits))
	if len(what) == 0 {
		return []string{"Saved the settings unchanged"}
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
const byService = "the default"

func formatSet[T any](value *T, format func(T) string) string {
	if value == nil {
		return byService
	}
	return format(*value)
}

func formatSwitch(enabled *bool) string {
	return formatSet(enabled, func(on bool) string {
		if on {
			return "on"
		}
		return "off"
	})
}

// formatWaits writes waits: 500 ms, 500 ms, 1 s. nil means that they are not set.
func formatWaits(waits []time.Duration) string {
	switch {
	case waits == nil:
		return byService
	case len(waits) == 0:
		return noWaits
	case len(waits) > 3 && len(slices.Compact(slices.Clone(waits))) == 1:
		return fmt.Sprintf("%d times %s", len(waits), formatWhole(waits[0]))
	}
	texts := make([]string, len(waits))
	for i, w := range waits {
		texts[i] = formatWhole(w)
	}
	return strings.Join(texts, ", ")
}
