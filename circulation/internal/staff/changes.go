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
		shown[i] = change{
			Date: c.Date, Who: cmp.Or(c.By.Name, c.By.UserID, "not known"), Reason: c.Reason, Lock: c.Lock,
		}
		if c.Kind == schemas.ChangeRelease {
			shown[i].What = []string{"Released a lock by force"}
		} else {
			shown[i].What = describeSettings(c.Before, c.After)
		}
	}
	return shown
}

// describeSettings says what a change of the settings' entry changed.
func describeSettings(before, after json.RawMessage) []string {
	was, okBefore := lockSettings(before)
	is, okAfter := lockSettings(after)
	if !okBefore || !okAfter {
		return []string{"Replaced settings that could not be used"}
	}
	var what []string
	note := func(name, old, current string) {
		if old != current {
			what = append(what, fmt.Sprintf("%s: %s, before that %s", name, current, old))
		}
	}
	note("Lock", onOff(was.Enabled), onOff(is.Enabled))
	note("Time to live", orService(was.TTL, func(d time.Duration) string { return milliseconds(d) }), orService(is.TTL, func(d time.Duration) string { return milliseconds(d) }))
	note("Waits", waitsText(was.Waits), waitsText(is.Waits))
	if len(what) == 0 {
		return []string{"Saved the settings unchanged"}
	}
	return what
}

func lockSettings(value json.RawMessage) (schemas.LockSettings, bool) {
	if len(value) == 0 || string(value) == "null" {
		return schemas.LockSettings{}, true
	}
	s, err := schemas.ParseLockSettings(value)
	return s, err == nil
}

// byService is what an unset field of the settings means.
const byService = "the service's own setting"

func orService[T any](value *T, text func(T) string) string {
	if value == nil {
		return byService
	}
	return text(*value)
}

func onOff(enabled *bool) string {
	return orService(enabled, func(on bool) string {
		if on {
			return "on"
		}
		return "off"
	})
}

func waitsText(waits []time.Duration) string {
	switch {
	case waits == nil:
		return byService
	case len(waits) == 0:
		return "none"
	}
	texts := make([]string, len(waits))
	for i, w := range waits {
		texts[i] = milliseconds(w)
	}
	if same := slices.Compact(slices.Clone(texts)); len(same) == 1 && len(texts) > 3 {
		return fmt.Sprintf("%d times %s", len(texts), same[0])
	}
	return strings.Join(texts, ", ")
}
