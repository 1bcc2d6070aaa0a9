package integration_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/stack"
)

// scene is a staff page in one of its states.
type scene struct {
	name string // of its picture in docs/staff.md
	show func(t *testing.T, p *pair, tab *browser.Page)
}

// pageScene returns a scene that needs only an address.
func pageScene(name, path, text string) scene {
	return scene{name, func(_ *testing.T, p *pair, tab *browser.Page) {
		tab.Goto(p.staffURL(0, path))
		tab.See(text)
	}}
}

// venue is a demo library with its scenes, and the options of a tab that signs in.
type venue struct {
	*pair
	options []browser.Option
	scenes  []scene
}

// startVenues starts a new library with the lock off, a busy one, and the busy one for a
// user with few permissions.
func startVenues(t *testing.T) []venue {
	t.Helper()
	signedIn := []browser.Option{browser.BasicAuth(clerk, clerkPassword)}
	quiet, busy := startDemo(t), startBusyDemo(t)
	gated := startPair(t, stack.Options{DatabaseURL: busy.databaseURL, CirculationEnv: []string{"STAFF_AUTH=gateway"}}, 1)
	gated.Storage.Tenant = busy.Storage.Tenant
	may := `["circulation.check-out-lock-settings.item.get","circulation.check-out-locks.collection.get"]`
	return []venue{
		{pair: quiet, options: signedIn, scenes: quietScenes()},
		{
			pair: busy, options: signedIn,
			scenes: slices.Concat(settingsScenes(), lockScenes(), pastScenes(), tryScenes(), otherScenes()),
		},
		{pair: gated, options: gatewayOptions(busy.Storage.Tenant, may), scenes: readerScenes()},
	}
}

// openFirstPage opens the first page of the venue in a new tab.
func (s venue) openFirstPage(t *testing.T, opts ...browser.Option) *browser.Page {
	t.Helper()
	return s.openStaffPage(t, 0, slices.Concat(opts, s.options)...)
}

func quietScenes() []scene {
	return []scene{
		pageScene("feature-off", "/", "The lock is off"),
		pageScene("switch", "/switch?to=on", "Reason"),
		pageScene("locks-off", "/locks", "The check-out lock is off for this library"),
		pageScene("check-outs-empty", "/check-outs", "No check-out has ended yet"),
		pageScene("contention-empty", "/contention", "No check-outs in the last hour."),
		pageScene("try", "/try", "Patron's barcode"),
		pageScene("machines", "/machines", "Add a machine"),
		pageScene("rules", "/rules", "The rules as stored"),
	}
}

func settingsScenes() []scene {
	return []scene{
		pageScene("feature-on", "/", "The lock is on"),
		pageScene("switch-off", "/switch?to=off", "Reason"),
		{"switch-error", func(_ *testing.T, p *pair, tab *browser.Page) {
			tab.Goto(p.staffURL(0, "/switch?to=off"))
			tab.Fill("Reason", " ")
			tab.Click("Turn off")
			tab.See("Say why")
		}},
		pageScene("timing", "/timing", "It waits at most 2 s"),
		{"timing-error", func(_ *testing.T, p *pair, tab *browser.Page) {
			tab.Goto(p.staffURL(0, "/timing"))
			tab.Fill(ttlLabel, "8 sec")
			tab.Fill("Reason", "Back to what it was")
			tab.Click("Save the times")
			tab.See("Please look at this again")
		}},
		{"timing-warning", func(_ *testing.T, p *pair, tab *browser.Page) {
			tab.Goto(p.staffURL(0, "/timing"))
			tab.Fill(waitsLabel, "3000, 3000, 3000")
			tab.See("give up after")
		}},
	}
}

func lockScenes() []scene {
	return []scene{
		{"locks", func(t *testing.T, p *pair, tab *browser.Page) {
			t.Helper()
			slow := p.holdSomeLocks(t)
			tab.Goto(p.staffURL(0, "/locks?state=all"))
			tab.See("1 lock held, 1 expired")
			waitForTicks(t, tab, slow, 2)
			p.acquireLockAs(t, leilaID, "circulation-2", uuid.NewString(), time.Minute)
			tab.See("2 locks held, 1 expired")
		}},
		{"locks-empty", func(t *testing.T, p *pair, tab *browser.Page) {
			t.Helper()
			p.releaseAllLocks(t)
			tab.Goto(p.staffURL(0, "/locks"))
			tab.See("No lock is held now.", "That is normal")
		}},
		{"release", func(t *testing.T, p *pair, tab *browser.Page) {
			t.Helper()
			tab.Goto(p.staffURL(0, "/locks/"+p.holdSomeLocks(t)+"/release"))
			tab.See("Release this lock?")
		}},
		{"released", func(t *testing.T, p *pair, tab *browser.Page) {
			t.Helper()
			tab.Goto(p.staffURL(0, "/locks/"+p.holdSomeLocks(t)+"/release"))
			tab.Fill("Reason", "Self-check 4 was switched off in the middle")
			tab.Click("Release the lock")
			tab.See("The lock was released.")
		}},
	}
}

func pastScenes() []scene {
	return []scene{
		{"check-outs", func(_ *testing.T, p *pair, tab *browser.Page) {
			lately := time.Now().Add(-6 * time.Minute).Format("2006-01-02T15:04")
			tab.Goto(p.staffURL(0, "/check-outs?from="+lately))
			tab.See("Limit reached")
		}},
		pageScene("check-outs-error", "/check-outs?from=yesterday", "Please look at this again"),
		{"check-outs-meanings", func(_ *testing.T, p *pair, tab *browser.Page) {
			tab.Goto(p.staffURL(0, "/check-outs?patron=P-1001&outcome=limit_reached&patrons=shown"))
			tab.Click("What the outcomes mean")
			tab.See("The machine hung up before the check-out was done. The item was not lent.")
		}},
		pageScene("contention", "/contention", "Most a minute"),
		{"contention-tables", func(_ *testing.T, p *pair, tab *browser.Page) {
			tab.Goto(p.staffURL(0, "/contention"))
			for _, chart := range []string{"Check-outs a minute", "Waits for a lock"} {
				tab.Click(chart + " as a table")
			}
			tab.See("ITEM_LIMIT_MATERIAL_TYPE")
		}},
	}
}

func tryScenes() []scene {
	return []scene{
		pageScene("try-lent", "/try?itemBarcode=B-1010&userBarcode=P-1003", "Would be lent"),
		pageScene("try-refused", "/try?itemBarcode=D-2005&userBarcode=P-1001", "Would be refused"),
		pageScene("try-error", "/try?itemBarcode=&userBarcode=P-1001", "Please look at this again"),
	}
}

func otherScenes() []scene {
	return []scene{
		pageScene("not-found", "/switch?to=sideways", "Give this number to your support"),
		{"tenant", func(_ *testing.T, p *pair, tab *browser.Page) {
			tab.Goto(p.Circulations[0] + "/staff/")
			tab.See("Which library?")
		}},
	}
}

func readerScenes() []scene {
	return []scene{
		pageScene("read-only", "/timing", "You may look at this, but not change it."),
		pageScene("read-only-feature", "/", "You may look at this, but not change it."),
		pageScene("read-only-locks", "/locks", "Locks now"),
		pageScene("error", "/check-outs", "Access requires permission"),
	}
}

// documented are the scenes in the documentation.
var documented = []string{
	"feature-off", "switch", "feature-on", "switch-off", "timing", "timing-warning", "timing-error", "read-only",
	"locks", "locks-empty", "release", "released", "check-outs", "check-outs-empty", "contention", "contention-empty",
	"try", "try-lent", "try-refused", "tenant", "error",
}

// darkPictures are the names of pictures in dark colours, by scene.
var darkPictures = map[string]string{"feature-on": "feature-dark", "locks": "locks-dark"}

// TestStaffScreenshots makes the pictures of docs/staff.md for make screenshots.
func TestStaffScreenshots(t *testing.T) {
	t.Parallel()
	if os.Getenv("SCREENSHOTS") == "" {
		t.Skip("SCREENSHOTS names no folder for the pictures")
	}
	all := startVenues(t)
	german := all[1].openFirstPage(t)
	german.Goto(all[1].staffURL(0, "/?language=de"))
	german.See("Die Sperre ist ein")
	german.Screenshot("feature-german")
	for _, venue := range all {
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
