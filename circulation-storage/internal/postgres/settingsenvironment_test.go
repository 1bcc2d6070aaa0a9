package postgres_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// announce announces an instance's environment, based on the stored version.
func (l harness) announce(enabled bool) schemas.LockSettingsState {
	l.t.Helper()
	state, err := l.settings.Announce(l.ctx(), schemas.LockEnvironment{
		Enabled: enabled, Version: l.state().Version,
	}, "one")
	if err != nil {
		l.t.Fatal(err)
	}
	return state
}

// announcedUntil sets when the announcement lapses, as an interval from now.
func (l harness) announcedUntil(interval string) {
	l.t.Helper()
	l.exec(`UPDATE {schema}.check_out_lock_environment SET on_until = clock_timestamp() + $1::text::interval`, interval)
}

// fresh is the desk for another test, with neither announcement nor settings.
func (l harness) fresh(t *testing.T) harness {
	l.t = t
	l.exec(`DELETE FROM {schema}.settings_entry`)
	l.exec(`UPDATE {schema}.check_out_lock_environment SET on_until = NULL`)
	return l
}

// wantAnnounced checks until when an announcement counts; none is least -1.
func wantAnnounced(t *testing.T, what string, s schemas.LockSettingsState, least, most int64) {
	t.Helper()
	got := int64(-1)
	if s.EnvironmentOnMs != nil {
		got = *s.EnvironmentOnMs
	}
	if got < least || got > most {
		t.Errorf("%s: heard for %d ms, want %d to %d", what, got, least, most)
	}
}

// wantRaised checks whether the version was raised.
func wantRaised(t *testing.T, what string, before, after schemas.LockSettingsState, raised bool) {
	t.Helper()
	old, err := strconv.Atoi(before.Version)
	if err != nil {
		t.Fatal(err)
	}
	now, err := strconv.Atoi(after.Version)
	if err != nil || (now > old) != raised || now < old {
		t.Errorf("%s: version %d became %s, want it raised: %t", what, old, after.Version, raised)
	}
}

func TestLockSettings_Announce(t *testing.T) {
	t.Parallel()
	t.Run("the first announcement turns the lock on with a new version", func(t *testing.T) {
		t.Parallel()
		l := newHarness(t)
		before := l.state()
		wantAnnounced(t, "new tenant", before, -1, -1)
		after := l.announce(true)
		wantAnnounced(t, "announced", after, 50_000, 60_000)
		wantAnnounced(t, "read again", l.state(), 50_000, 60_000)
		wantRaised(t, "announced", before, after, true)
	})
	t.Run("a second one renews it without a new version", func(t *testing.T) {
		t.Parallel()
		l := newHarness(t)
		for _, left := range []string{"5 seconds", "-5 seconds", "-1 day"} {
			before := l.announce(true)
			l.announcedUntil(left)
			after := l.announce(true)
			wantAnnounced(t, left, after, 50_000, 60_000)
			wantRaised(t, left, before, after, false)
		}
	})
	t.Run("twenty first ones raise the version once", func(t *testing.T) {
		t.Parallel()
		l := newHarness(t)
		before := l.state()
		var answers sync.Map
		got := parallel(20, func() error {
			state, err := l.settings.Announce(l.ctx(), schemas.LockEnvironment{Enabled: true, Version: before.Version}, "")
			answers.Store(state.Version, true)
			return err
		})
		if got[""] != 20 {
			t.Errorf("got %v, want no error", got)
		}
		after := l.state()
		wantRaised(t, "afterwards", before, after, true)
		answers.Delete(after.Version)
		answers.Range(func(version, _ any) bool {
			t.Errorf("an answer has version %s, want %s", version, after.Version)
			return true
		})
	})
	t.Run("one based on an old version is a conflict", func(t *testing.T) {
		t.Parallel()
		l := newHarness(t)
		old := l.state().Version
		if _, err := l.settings.Change(l.ctx(), changeTo(`{"lockTtl":300}`, old)); err != nil {
			t.Fatal(err)
		}
		for _, version := range []string{old, "", "0", "1' OR '1'='1"} {
			_, err := l.settings.Announce(l.ctx(), schemas.LockEnvironment{Enabled: true, Version: version}, "")
			if !fault.Is(err, fault.Conflict) {
				t.Errorf("version %q: got %v, want %s", version, err, fault.Conflict)
			}
		}
		wantAnnounced(t, "afterwards", l.state(), -1, -1)
	})
	t.Run("off changes nothing while another announcement counts, or without one", func(t *testing.T) {
		t.Parallel()
		l := newHarness(t)
		none := l.state()
		wantRaised(t, "none announced", none, l.announce(false), false)
		before := l.announce(true)
		after := l.announce(false)
		wantAnnounced(t, "heard", after, 50_000, 60_000)
		wantRaised(t, "heard", before, after, false)
	})
	t.Run("off ends a lapsed announcement with a new version", func(t *testing.T) {
		t.Parallel()
		l := newHarness(t)
		// A clock that was set back leaves a date in the far future.
		for _, left := range []string{"-1 millisecond", "1 day"} {
			before := l.announce(true)
			l.announcedUntil(left)
			wantAnnounced(t, left, l.state(), 0, 0)
			after := l.announce(false)
			wantAnnounced(t, left+", ended", after, -1, -1)
			wantRaised(t, left+", ended", before, after, true)
		}
	})
	t.Run("a renewal that finds it ended is a conflict", func(t *testing.T) {
		t.Parallel()
		l := newHarness(t)
		old := l.announce(true).Version
		end := l.begin(`LOCK TABLE {schema}.lock_settings_version IN EXCLUSIVE MODE`)
		for _, statement := range []string{
			`UPDATE {schema}.check_out_lock_environment SET on_until = NULL`,
			`UPDATE {schema}.lock_settings_version SET version = version + 1`,
		} {
			if _, err := end.Exec(l.ctx(), l.sql(statement)); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan error, 1)
		go func() {
			_, err := l.settings.Announce(l.ctx(), schemas.LockEnvironment{Enabled: true, Version: old}, "")
			done <- err
		}()
		l.waitUntilBlocked(1)
		if err := end.Commit(l.ctx()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !fault.Is(err, fault.Conflict) {
			t.Errorf("got %v, want %s", err, fault.Conflict)
		}
	})
}

func TestLockSettings_EntryThatDecidesEndsTheAnnouncement(t *testing.T) {
	t.Parallel()
	const decides, decidesNot = `{"checkOutLockFeatureEnabled":false}`, `{"lockTtl":300}`
	own := func(value string) func(harness) error {
		return func(l harness) error {
			_, err := l.settings.Change(l.ctx(), changeTo(value, ""))
			return err
		}
	}
	plain := func(value string) func(harness) error {
		return func(l harness) error {
			return l.entries().create(l.ctx(), entryOf(uuid.New(), "checkoutLockFeature", "", value))
		}
	}
	tests := map[string]struct {
		change func(harness) error
		least  int64
		most   int64
	}{
		"own endpoint, decides":     {change: own(decides), least: -1, most: -1},
		"own endpoint, decides not": {change: own(decidesNot), least: 50_000, most: 60_000},
		"settings entry, decides":   {change: plain(decides), least: -1, most: -1},
		"settings entry, FOLIO's string": {
			change: plain(`"{\"checkOutLockFeatureEnabled\":true}"`), least: -1, most: -1,
		},
		"settings entry, decides not": {change: plain(decidesNot), least: 50_000, most: 60_000},
		"removal, after which none decides": {
			change: func(l harness) error { return l.settings.Remove(l.ctx()) }, least: 50_000, most: 60_000,
		},
		"another entry, with the same fields": {
			change: func(l harness) error { return l.entries().create(l.ctx(), entryOf(uuid.New(), "other", "", decides)) },
			least:  50_000, most: 60_000,
		},
	}
	l := newHarness(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := l.fresh(t)
			l.announce(true)
			if err := tt.change(l); err != nil {
				t.Fatal(err)
			}
			wantAnnounced(t, name, l.state(), tt.least, tt.most)
		})
	}
}

func TestCheckOut_IsFencedByTheAnnouncement(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		// turn is what happens after the check-out read the settings.
		turn   func(l harness)
		before func(l harness)
		locked bool
		// reads is whether the check-out reads the settings again after the turn.
		reads bool
		code  fault.Code
	}{
		"no lock, then announced": {turn: func(l harness) { l.announce(true) }, code: fault.SettingsChanged},
		"no lock, announced and read": {
			turn: func(l harness) { l.announce(true) }, reads: true, code: fault.SettingsChanged,
		},
		"no lock, announced, lapsed and read": {
			turn: func(l harness) { l.announce(true); l.announcedUntil("-1 minute") }, reads: true, code: fault.SettingsChanged,
		},
		"no lock, announced, lapsed and ended": {
			turn: func(l harness) { l.announce(true); l.announcedUntil("-1 minute"); l.announce(false) },
			code: fault.SettingsChanged,
		},
		"no lock, ended and read": {
			turn: func(l harness) { l.announce(true); l.announcedUntil("-1 minute"); l.announce(false) }, reads: true,
		},
		"lock and version, then announced": {
			turn: func(l harness) { l.announce(true) }, locked: true, code: fault.SettingsChanged,
		},
		"lock and version, announced and read": {turn: func(l harness) { l.announce(true) }, locked: true, reads: true},
		"lock and version, renewed": {
			before: func(l harness) { l.announce(true) }, turn: func(l harness) { l.announce(true) }, locked: true,
		},
		"lock and version, lapsed": {
			before: func(l harness) { l.announce(true) }, turn: func(l harness) { l.announcedUntil("-1 minute") }, locked: true,
		},
		"lock and version, lapsed and ended": {
			before: func(l harness) { l.announce(true) },
			turn:   func(l harness) { l.announcedUntil("-1 minute"); l.announce(false) },
			locked: true, code: fault.SettingsChanged,
		},
		"lock and version, ended and begun anew": {
			before: func(l harness) { l.announce(true) },
			turn:   func(l harness) { l.announcedUntil("-1 minute"); l.announce(false); l.announce(true) }, locked: true,
			code: fault.SettingsChanged,
		},
		"lock and version, then the tenant decides": {
			before: func(l harness) { l.announce(true) }, turn: func(l harness) { l.decide(false) }, locked: true,
			code: fault.SettingsChanged,
		},
		"no lock, the tenant decides and read": {
			before: func(l harness) { l.announce(true) }, turn: func(l harness) { l.decide(false) }, reads: true,
		},
	}
	l := newHarness(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := l.fresh(t)
			if tt.before != nil {
				tt.before(l)
			}
			item := l.addItem("Available", "")
			c := l.withoutLock(item)
			if tt.locked {
				c.lock = l.lock(c.user)
			}
			tt.turn(l)
			if tt.reads {
				c.settings = l.state().Version
			}
			_, outcome, err := l.send(c)
			if fault.CodeOf(err) != tt.code || (err == nil) != (outcome == commit.Committed) {
				t.Errorf("got %q, %v, want the fault %q", outcome, err, tt.code)
			}
			if err != nil {
				l.wantUntouched(item)
			}
		})
	}
}

// decide writes an entry that turns the lock on or off for the tenant.
func (l harness) decide(enabled bool) {
	l.t.Helper()
	if _, err := l.settings.Change(l.ctx(),
		changeTo(fmt.Sprintf(`{"checkOutLockFeatureEnabled":%t}`, enabled), "")); err != nil {
		l.t.Fatal(err)
	}
}

func TestLockSettings_FirstAnnouncementWaitsForCommits(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	first, second := l.addItem("Available", ""), l.addItem("Available", "")
	pause := l.begin(lockItem, first)
	early, late := l.withoutLock(first), l.withoutLock(second)
	committed := l.start(early)
	l.waitUntilBlocked(1)
	announced := make(chan error, 1)
	go func() {
		_, err := l.settings.Announce(l.ctx(), schemas.LockEnvironment{Enabled: true, Version: early.settings}, "")
		announced <- err
	}()
	l.waitUntilBlocked(2)
	refused := l.start(late)
	l.waitUntilBlocked(3)
	if err := pause.Rollback(l.ctx()); err != nil {
		t.Fatal(err)
	}
	l.wantCommitted(committed)
	if err := <-announced; err != nil {
		t.Error(err)
	}
	if got := <-refused; !fault.Is(got.err, fault.SettingsChanged) {
		t.Errorf("late check-out: got %s, %v, want %s", got.outcome, got.err, fault.SettingsChanged)
	}
}

func TestLockSettings_RenewedAnnouncementDoesNotWaitForCommits(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	version := l.announce(true).Version
	item := l.addItem("Available", "")
	pause := l.begin(lockItem, item)
	c := l.withLock(uuid.New(), item)
	c.settings = version
	committed := l.start(c)
	l.waitUntilBlocked(1)
	l.announcedUntil("1 second")
	wantAnnounced(t, "renewed", l.announce(true), 50_000, 60_000)
	if err := pause.Rollback(l.ctx()); err != nil {
		t.Fatal(err)
	}
	l.wantCommitted(committed)
}
