package checkout_test

import (
	"testing"
	"time"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas/fault"
)

func TestChangedSettingsRefuseNobodyWhoDoesNotWaitForALock(t *testing.T) {
	t.Parallel()
	for name, enabled := range map[string]bool{"the feature stays off": false, "it is switched on": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.set = settings.Settings{Version: "7"} // and no waits: the lock is tried for once
			w.fresh = &settings.Settings{Version: "8", Enabled: enabled, TTL: 3 * time.Second, Waits: []time.Duration{time.Millisecond}}
			w.held = 1 // so that the wait of the new settings is needed
			w.commit = []error{fault.New(fault.SettingsChanged, "settings have version 8")}
			if _, err := w.checkOut(t); err != nil {
				t.Errorf("got %v, want a loan", err)
			}
		})
	}
}
