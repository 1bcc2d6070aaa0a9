package postgres_test

import (
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas/fault"
)

// Rows are locked for sharing by whoever comes, also past somebody who waits to
// change them: on a busy day the feature could then never be switched on.
func TestAChangeOfTheLockSettingsIsNotPassedByLaterCheckOuts(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(desk) error{
		"own endpoint": func(l desk) error {
			_, err := l.settings.Change(l.ctx(), changeTo(`{"checkOutLockFeatureEnabled":true}`, ""))
			return err
		},
		"removal": func(l desk) error { return l.settings.Remove(l.ctx()) },
		"settings entry": func(l desk) error {
			_, err := postgres.NewRecordStore(l.db, func() {}).Create(l.ctx(), records.SettingsEntry(), records.Record{
				"id": "6c4d6f0e-7e7a-4f5b-8b4c-2d1c0a9b8e77", "scope": "mod-circulation", "key": "checkoutLockFeature",
				"value": map[string]any{"checkOutLockFeatureEnabled": true},
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newDesk(t)
			first, second := l.addItem("Available", ""), l.addItem("Available", "")
			pause, stay := l.begin(lockItem, first), l.begin(lockItem, second)
			early, late := l.withoutLock(first), l.withoutLock(second)
			committed := l.start(early)
			l.waitUntilBlocked(1)
			changed := make(chan error, 1)
			go func() { changed <- change(l) }()
			l.waitUntilBlocked(2)
			refused := l.start(late)
			l.waitUntilBlocked(3)

			if err := pause.Rollback(l.ctx()); err != nil {
				t.Fatal(err)
			}
			l.wantCommitted(committed)
			select {
			case err := <-changed:
				if err != nil {
					t.Errorf("change: %v", err)
				}
			case <-time.After(time.Minute):
				t.Error("the change waits for a check-out that came after it")
			}
			if err := stay.Rollback(l.ctx()); err != nil {
				t.Fatal(err)
			}
			if got := <-refused; !fault.Is(got.err, fault.SettingsChanged) {
				t.Errorf("late check-out: got %s, %v, want %s", got.outcome, got.err, fault.SettingsChanged)
			}
		})
	}
}
