package integration_test

import (
	"os"
	"slices"
	"testing"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

// documented are the scenes that the documentation shows.
var documented = []string{
	"feature-off", "switch", "feature-on", "timing", "timing-error", "locks", "locks-empty", "release", "check-outs",
	"check-outs-empty", "contention", "try-lent", "try-refused",
}

// inTheDark are those for whoever prefers dark colours, and their pictures' names.
var inTheDark = map[string]string{"feature-on": "feature-dark", "locks": "locks-dark"}

// TestStaffScreenshots makes the pictures of docs/staff.md; see make screenshots.
func TestStaffScreenshots(t *testing.T) {
	t.Parallel()
	if os.Getenv("SCREENSHOTS") == "" {
		t.Skip("SCREENSHOTS names no folder for the pictures")
	}
	quiet, busy := demo(t), busyDemo(t)
	for p, scenes := range map[*pair][]scene{quiet: quietScenes(), busy: busyScenes()} {
		light, dark := p.staffOfDemo(t), p.staffOfDemo(t, browser.Dark())
		for _, s := range scenes {
			if slices.Contains(documented, s.name) {
				s.show(t, p, light)
				light.Screenshot(s.name)
			}
			if name, ok := inTheDark[s.name]; ok {
				s.show(t, p, dark)
				dark.Screenshot(name)
			}
		}
	}

	gated := start(t, stack.Options{CirculationEnv: []string{"STAFF_AUTH=gateway"}}, 1)
	tab := gated.staff(t, 0, granted(gated.Storage.Tenant, `["circulation.check-out-lock-settings.item.get"]`)...)
	tab.Goto(gated.staffURL(0, "/locks"))
	tab.See("Access requires permission")
	tab.Screenshot("error")
}
