package integration_test

import (
	"os"
	"slices"
	"testing"

	"checkoutlock/integration-tests/browser"
)

// documented are the scenes that the documentation shows.
var documented = []string{
	"feature-off", "switch", "feature-on", "switch-off", "timing", "timing-warning", "timing-error", "read-only",
	"locks", "locks-empty", "release", "released", "check-outs", "check-outs-empty", "contention", "contention-empty",
	"try", "try-lent", "try-refused", "tenant", "error",
}

// darkPictures are those for whoever prefers dark colours, and their pictures' names.
var darkPictures = map[string]string{"feature-on": "feature-dark", "locks": "locks-dark"}

// TestStaffScreenshots makes the pictures of docs/staff.md; see make screenshots.
func TestStaffScreenshots(t *testing.T) {
	t.Parallel()
	if os.Getenv("SCREENSHOTS") == "" {
		t.Skip("SCREENSHOTS names no folder for the pictures")
	}
	for _, venue := range startVenues(t) {
		light, dark := venue.openFirstPage(t), venue.openFirstPage(t, browser.Dark())
		for _, s := range venue.scenes {
			if slices.Contains(documented, s.name) {
				s.show(t, venue.pair, light)
				light.Screenshot(s.name)
			}
			if name, ok := darkPictures[s.name]; ok {
				s.show(t, venue.pair, dark)
				dark.Screenshot(name)
			}
		}
	}
}
