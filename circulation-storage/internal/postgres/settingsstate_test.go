package postgres_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/records"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func (l harness) state() schemas.LockSettingsState {
	l.t.Helper()
	state, err := l.settings.State(l.ctx())
	if err != nil {
		l.t.Fatal(err)
	}
	return state
}

// changeTo is a change without a reason; version "" is based on any.
func changeTo(value, version string) schemas.LockSettingsChange {
	return schemas.LockSettingsChange{Value: []byte(value), Version: version}
}

func TestLockSettings_ChangeAndRemove(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	first := l.state()
	if first.Version == "" || first.Entry != nil {
		t.Errorf("a new tenant has %+v, want a version and no entry", first)
	}
	// Other entries with the same scope or key, and one of a user, are not the lock settings.
	l.exec(`INSERT INTO {schema}.settings_entry (id, jsonb) VALUES
		(gen_random_uuid(), '{"scope":"mod-circulation","key":"checkoutLockFeature",
		"userId":"6c4d6f0e-7e7a-4f5b-8b4c-2d1c0a9b8e77","value":1}'),
		(gen_random_uuid(), '{"scope":"other","key":"checkoutLockFeature","value":2}'),
		(gen_random_uuid(), '{"scope":"mod-circulation","key":"other","value":3}')`)

	made, err := l.settings.Change(l.ctx(), changeTo(`{"checkOutLockFeatureEnabled":true,"lockTtl":null}`, first.Version))
	if err != nil {
		t.Fatal(err)
	}
	if field(t, made.Entry, "value", "checkOutLockFeatureEnabled") != true ||
		field(t, made.Entry, "scope") != "mod-circulation" ||
		field(t, made.Entry, "key") != "checkoutLockFeature" || made.Version == first.Version {
		t.Errorf("got %+v %s, want the entry and a new version", made, made.Entry)
	}
	if got := l.state(); got.Version != made.Version || string(got.Entry) != string(made.Entry) {
		t.Errorf("got %+v afterwards, want what was answered", got)
	}

	const folio = `"{\"checkOutLockFeatureEnabled\":false}"`
	changed, err := l.settings.Change(l.ctx(), changeTo(folio, ""))
	if err != nil {
		t.Fatal(err)
	}
	if field(t, changed.Entry, "value") != `{"checkOutLockFeatureEnabled":false}` ||
		field(t, changed.Entry, "id") != field(t, made.Entry, "id") ||
		field(t, changed.Entry, "metadata", "createdDate") != field(t, made.Entry, "metadata", "createdDate") ||
		changed.Version == made.Version {
		t.Errorf("got %+v %s, want the same entry with FOLIO's string", changed, changed.Entry)
	}

	if err := l.settings.Remove(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if got := l.state(); got.Entry != nil || got.Version == changed.Version {
		t.Errorf("got %+v after the removal, want a new version and no entry", got)
	}
	if err := l.settings.Remove(l.ctx()); err != nil {
		t.Errorf("removing nothing: %v", err)
	}
	if n := l.count(`SELECT count(*) FROM {schema}.settings_entry`); n != 3 {
		t.Errorf("got %d entries of others, want 3", n)
	}
}

func TestLockSettings_OldVersionIsAConflict(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	before := l.state()
	for _, version := range []string{"0", "abc", before.Version + "0", "1' OR '1'='1", strings.Repeat("9", 1000)} {
		if _, err := l.settings.Change(l.ctx(), changeTo(`{"lockTtl":300}`, version)); !fault.Is(err, fault.Conflict) {
			t.Errorf("version %.20s: got %v, want %s", version, err, fault.Conflict)
		}
	}
	if got := l.state(); got.Version != before.Version || got.Entry != nil {
		t.Errorf("got %+v, want what was before", got)
	}
}

// A failover to a standby that lags, a restore, or a purge takes the version back.
func TestLockSettings_NoOtherChangeMakesALostVersionAgain(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	before := l.state().Version
	lost, err := l.settings.Change(l.ctx(), changeTo(`{"checkOutLockFeatureEnabled":false}`, before))
	if err != nil {
		t.Fatal(err)
	}
	l.exec(`DELETE FROM {schema}.settings_entry`)
	l.exec(`UPDATE {schema}.lock_settings_version SET version = $1::text::bigint`, before)
	if _, err := l.settings.Change(l.ctx(), changeTo(`{"checkOutLockFeatureEnabled":true}`, before)); err != nil {
		t.Fatal(err)
	}
	c := l.withoutLock(l.addItem("Available", ""))
	c.settings = lost.Version
	if got := <-l.start(c); !fault.Is(got.err, fault.SettingsChanged) {
		t.Errorf("a check-out under the lost settings: got %v, want %s", got.err, fault.SettingsChanged)
	}
	if _, err := l.settings.Change(l.ctx(), changeTo(`{"lockTtl":300}`, lost.Version)); !fault.Is(err, fault.Conflict) {
		t.Errorf("a change of the lost settings: got %v, want %s", err, fault.Conflict)
	}
}

func TestLockSettings_TwentyChangesOfOneVersion(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	version := l.state().Version
	got := parallel(20, func() error {
		_, err := l.settings.Change(l.ctx(), changeTo(`{"lockTtl":300}`, version))
		return err
	})
	if got[""] != 1 || got[fault.Conflict] != 19 {
		t.Errorf("got %v, want one change and 19 conflicts", got)
	}
}

// The same entry can be written among the other settings, which must lock in the
// same order: the version first, the entry second.
func TestLockSettings_GenericEndpointWaitsForTheVersionFirst(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	made, err := l.settings.Change(l.ctx(), changeTo(`{"lockTtl":300}`, ""))
	if err != nil {
		t.Fatal(err)
	}
	entry, err := records.SettingsEntry.Parse(made.Entry, "")
	if err != nil {
		t.Fatal(err)
	}
	change := l.begin(`UPDATE {schema}.lock_settings_version SET version = version + 1`)
	updated := make(chan error, 1)
	go func() {
		updated <- postgres.NewRecordStore(l.db, func() {}).Update(l.ctx(), records.SettingsEntry, entry)
	}()
	l.waitUntilBlocked(1)
	if _, err := change.Exec(l.ctx(), l.sql(`SELECT FROM {schema}.settings_entry FOR UPDATE NOWAIT`)); err != nil {
		t.Errorf("the entry is locked by a change that waits for the version: %v", err)
	}
	if err := change.Rollback(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if err := <-updated; err != nil {
		t.Errorf("plain update: %v", err)
	}
}

// parallel runs fn n times at once and counts the fault codes; "" is success.
func parallel(n int, fn func() error) map[fault.Code]int {
	var mu sync.Mutex
	var wg sync.WaitGroup
	got := map[fault.Code]int{}
	for range n {
		wg.Go(func() {
			err := fn()
			mu.Lock()
			defer mu.Unlock()
			got[fault.CodeOf(err)]++
		})
	}
	wg.Wait()
	return got
}

func TestRulesStore_KeepsTheRules(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	store := postgres.NewRecordStore(l.db, func() {})
	first, err := store.Rules(l.ctx())
	if err != nil || first.ID == "" || first.RulesAsText != "" {
		t.Errorf("a new tenant has %+v, %v, want an id and no text", first, err)
	}
	const text = "priority: last-line\nfallback-policy: l 'x\\ ü\t; DROP TABLE item; --"
	if err := store.SetRules(l.ctx(), text, true); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Rules(l.ctx()); err != nil || got.RulesAsText != text || got.ID != first.ID {
		t.Errorf("got %+v, %v, want the text under the same id", got, err)
	}
}

// Tables of one row have no statistics, because autovacuum analyzes a table after 50
// changes only. PostgreSQL takes them for thousands of rows, and compiles a plan that
// seems to cost more than 100,000, which takes 200 ms at each execution.
func TestLockSettings_PlansAreCheapWithoutStatistics(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	for name, explain := range map[string]struct {
		statement string
		args      []any
	}{
		"state": {statement: postgres.SettingsStateSQL, args: []any{schemas.LockEnvironmentLeaseMs}},
		"fence": {statement: postgres.LockVersionSQL},
	} {
		var plans []struct {
			Plan struct {
				Cost float64 `json:"Total Cost"`
			}
		}
		if err := l.db.Pool().QueryRow(l.ctx(), "EXPLAIN (FORMAT JSON) "+l.sql(explain.statement),
			explain.args...).Scan(&plans); err != nil {
			t.Fatal(err)
		}
		if cost := plans[0].Plan.Cost; cost > 10_000 {
			t.Errorf("the statement for the %s costs %.0f, want at most 10000", name, cost)
		}
	}
}

// PostgreSQL grants shared row locks past a transaction that waits to change the row. So
// check-outs at a busy desk could keep the feature from ever being switched on.
func TestLockSettings_LaterCheckOutsDoNotPassAChange(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(harness) error{
		"own endpoint": func(l harness) error {
			_, err := l.settings.Change(l.ctx(), changeTo(`{"checkOutLockFeatureEnabled":true}`, ""))
			return err
		},
		"removal": func(l harness) error { return l.settings.Remove(l.ctx()) },
		"settings entry": func(l harness) error {
			_, err := postgres.NewRecordStore(l.db, func() {}).Create(l.ctx(), records.SettingsEntry, records.Record{
				"id": "6c4d6f0e-7e7a-4f5b-8b4c-2d1c0a9b8e77", "scope": "mod-circulation", "key": "checkoutLockFeature",
				"value": map[string]any{"checkOutLockFeatureEnabled": true},
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHarness(t)
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
