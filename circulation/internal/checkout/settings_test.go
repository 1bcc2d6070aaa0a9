package checkout_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/library/librarytest"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas/fault"
)

func TestSettings_OneChangeNeedsNoBudget(t *testing.T) {
	t.Parallel()
	for name, enabled := range map[string]bool{"the feature stays off": false, "it is switched on": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			w.set = settings.Settings{Version: "7"} // without waits, so the lock is tried for once
			w.fresh = &settings.Settings{
				Version: "8", Enabled: enabled, TTL: 3 * time.Second, Waits: []time.Duration{time.Millisecond},
			}
			w.held = 1 // so that the wait of the new settings is needed
			w.commit = []error{fault.New(fault.SettingsChanged, "settings have version 8")}
			if _, err := w.checkOut(t); err != nil {
				t.Errorf("got %v, want a loan", err)
			}
		})
	}
}

// inTurn are the settings that each reading finds.
type inTurn []settings.Settings

func (i *inTurn) Current(ctx context.Context) settings.Settings { return i.Refresh(ctx) }

func (i *inTurn) Refresh(context.Context) settings.Settings {
	next := (*i)[0]
	*i = (*i)[1:]
	return next
}

func TestSettings_WaitAfterTheFeatureWasOffMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBackend()
		s := w.service()
		waits := []time.Duration{time.Second}
		s.Settings = &inTurn{
			{Version: "7", Enabled: true, Announced: true, TTL: 3 * time.Second}, // without waits, so the first try is the last
			{Version: "8", Waits: waits},
			{Version: "9", Enabled: true, TTL: 3 * time.Second, Waits: waits},
		}
		changed := fault.New(fault.SettingsChanged, "settings have another version")
		w.commit, w.acquire = []error{changed, changed}, []error{nil, errHeld}
		_, err := s.CheckOut(t.Context(), checkout.Request{
			ItemBarcode: "book", UserBarcode: "ann", ServicePointID: librarytest.DeskID,
		})
		if err != nil || len(w.requests) != 3 {
			t.Errorf("got %v after %d tries for the lock, want a loan after the wait of the new settings", err, len(w.requests))
		}
	})
}

func TestSettings_ChangeUnderALockAddsNoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBackend()
		w.set.Waits = w.set.Waits[:1]
		w.commit = []error{fault.New(fault.SettingsChanged, "settings have another version")}
		w.acquire = []error{errHeld, nil, errHeld} // the first lock needs the wait
		if _, err := w.checkOut(t); !fault.Is(err, fault.LockNotAcquired) || len(w.requests) != 3 {
			t.Errorf("got %v after %d tries for the lock, want none after the last wait", err, len(w.requests))
		}
	})
}

func TestCommit_ShowsTheVersionOfSettingsThatCanEnd(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		set     settings.Settings
		lock    bool
		version string
	}{
		"no lock":                         {set: settings.Settings{Version: "7"}, version: "7"},
		"a lock that the tenant asks for": {set: settings.Settings{Enabled: true, Version: "7"}, lock: true},
		"a lock that is announced": {
			set: settings.Settings{Enabled: true, Version: "7", Announced: true}, lock: true, version: "7",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBackend()
			w.set = tt.set
			if _, err := w.checkOut(t); err != nil {
				t.Fatal(err)
			}
			if c := w.commits[0]; (c.LockID != "") != tt.lock || c.SettingsVersion != tt.version {
				t.Errorf("the commit shows the lock %q and version %q, want a lock: %t, version %q", c.LockID, c.SettingsVersion,
					tt.lock, tt.version)
			}
		})
	}
}

func TestCommit_AfterAnAnnouncementEnded(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.set.Version, w.set.Announced = "7", true
	fresh := w.set
	fresh.Version = "9"
	w.fresh = &fresh
	w.commit = []error{fault.New(fault.SettingsChanged, "settings have version 8")}
	if _, err := w.checkOut(t); err != nil {
		t.Fatal(err)
	}
	if len(w.commits) != 2 || w.commits[1].SettingsVersion != "9" || w.commits[1].LockID == w.commits[0].LockID ||
		w.commits[1].LockID == "" {
		t.Errorf("committed %+v, want the second under a new lock and the new version", w.commits)
	}
	if len(w.released) != 2 || len(w.commits[0].Limits) != 1 || len(w.commits[1].Limits) != 1 {
		t.Errorf("released %v, committed %+v, want both locks released and a count under each", w.released, w.commits)
	}
}
