package settings_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const on = `{"checkOutLockFeatureEnabled":true}`

func TestStore_OverridesTheEnvironmentFieldByField(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		value string
		want  string
	}{
		"no entry":     {"", "false environment 3s environment [500ms 1s] environment"},
		"enabled only": {on, "true tenant 3s environment [500ms 1s] environment"},
		"FOLIO's string": {
			`"{\"checkOutLockFeatureEnabled\":true,\"noOfRetryAttempts\":2,\"retryInterval\":250,\"lockTtl\":2500}"`,
			"true tenant 2.5s tenant [250ms 250ms] tenant",
		},
		"our list":        {`{"retryIntervals":[100,0]}`, "false environment 3s environment [100ms 0s] tenant"},
		"one try":         {`{"retryIntervals":[]}`, "false environment 3s environment [] tenant"},
		"an empty object": {`{}`, "false environment 3s environment [500ms 1s] environment"},
		"off, said so": {
			`{"checkOutLockFeatureEnabled":false}`, "false tenant 3s environment [500ms 1s] environment",
		},
		"a TTL of its own only": {`{"lockTtl":300}`, "false environment 300ms tenant [500ms 1s] environment"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, problem, err := newHarness(tt.value).Read(inTenant(t, "diku"))
			if problem != nil || err != nil {
				t.Fatal(problem, err)
			}
			got := fmt.Sprint(s.Enabled, " ", s.EnabledSource, " ", s.TTL, " ", s.TTLSource, " ", s.Waits, " ", s.WaitsSource)
			if got != tt.want || s.Version != "1" {
				t.Errorf("got %s, version %q\nwant %s, version 1", got, s.Version, tt.want)
			}
		})
	}
}

func TestStore_AppliesAChangeElsewhereWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newHarness("")
		b.storage.delay = 200 * time.Millisecond
		ctx := inTenant(t, "diku")
		for range 10 {
			if b.Current(ctx).Enabled {
				t.Fatal("enabled too early")
			}
		}
		if n := b.storage.timesRead(); n != 1 {
			t.Errorf("10 check-outs read the settings %d times, want once", n)
		}
		b.storage.set(on)
		changed := time.Now()
		for !b.Current(ctx).Enabled {
			<-time.After(10 * time.Millisecond)
		}
		if took := time.Since(changed); took > 2*time.Second {
			t.Errorf("in force after %s", took)
		}
	})
}

func TestStore_SharesOneReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newHarness(on)
		b.storage.delay = 100 * time.Millisecond
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if !b.Current(inTenant(t, "diku")).Enabled {
					t.Error("not enabled")
				}
			})
		}
		wg.Wait()
		if n := b.storage.timesRead(); n != 1 {
			t.Errorf("read %d times, want once", n)
		}
	})
}

func TestStore_StaysOnDuringAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newHarness(on)
		ctx := inTenant(t, "diku")
		if !b.Current(ctx).Enabled {
			t.Fatal("not enabled")
		}
		b.storage.fail(errors.New("down"))
		for range 250 { // 25 s
			<-time.After(100 * time.Millisecond)
			if s := b.Current(ctx); !s.Enabled || s.Version != "1" {
				t.Fatalf("got %+v, want the last good values", s)
			}
		}
		if n := strings.Count(b.log.String(), "level=ERROR"); n < 2 || n > 3 {
			t.Errorf("logged %d times in 25 s, want every 10 s:\n%s", n, b.log)
		}
		if n := b.storage.timesRead(); n > 30 {
			t.Errorf("read %d times in 25 s, want about once a second", n)
		}
		if b.fallbacks[settings.ReasonUnreadable] < 20 {
			t.Errorf("counted %v", b.fallbacks)
		}
		b.storage.fail(nil)
		b.storage.set("")
		<-time.After(1100 * time.Millisecond)
		if s := b.Current(ctx); s.Enabled || s.Version != "2" {
			t.Errorf("got %+v after the outage, want what is stored", s)
		}
	})
}

func TestStore_KeepsGoodValuesUnderAMalformedEntry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newHarness(on)
		ctx := inTenant(t, "diku")
		b.Current(ctx)
		b.storage.set(`{"checkoutlockfeatureenabled":"yes"}`)
		s, problem, err := b.Read(ctx)
		if err != nil || problem == nil || !s.Enabled || s.Version != "2" {
			t.Errorf("got %+v, problem %v, error %v", s, problem, err)
		}
		if s := b.Current(ctx); !s.Enabled || s.Version != "2" {
			t.Errorf("got %+v, want the last good values with the stored version", s)
		}
		if known := b.ListEnabled(); !maps.Equal(known, map[string]bool{"diku": true}) {
			t.Errorf("lists %v, want the last good value", known)
		}
		if b.fallbacks[settings.ReasonMalformed] == 0 || !strings.Contains(b.log.String(), `using="last good"`) {
			t.Errorf("not noted: %v %s", b.fallbacks, b.log)
		}
	})
}

func TestStore_UsesTheEnvironmentWithoutGoodValues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newHarness(`17`)
		ctx := inTenant(t, "diku")
		if s := b.Current(ctx); s.TTL != environment.TTL || s.TTLSource != settings.FromEnvironment || s.Version != "1" {
			t.Errorf("malformed: got %+v", s)
		}
		if known := b.ListEnabled(); len(known) > 0 {
			t.Errorf("lists %v of a tenant whose own settings were never read", known)
		}
		b = newHarness(on)
		b.storage.fail(errors.New("down"))
		if s := b.Current(ctx); s.Enabled || s.Version != "" || s.TTL != environment.TTL {
			t.Errorf("unreadable: got %+v, want the environment's and no version", s)
		}
		b.storage.fail(nil)
		if s := b.Current(ctx); !s.Enabled {
			t.Errorf("got %+v, want storage asked again at once, since nothing is known", s)
		}
	})
}

func TestStore_AppliesAnUpdateAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newHarness("")
		b.storage.delay = 500 * time.Millisecond
		ctx := inTenant(t, "diku")
		var wg sync.WaitGroup
		wg.Go(func() { b.Refresh(ctx) }) // has read "off" and has not returned
		synctest.Wait()
		enabled := true
		s, err := b.Update(ctx, settings.Change{
			Own: schemas.LockSettings{Enabled: &enabled}, Version: "1", Reason: "exams", ByName: "Ann",
		})
		if err != nil || !s.Enabled || s.EnabledSource != settings.FromTenant || s.Version != "2" {
			t.Fatalf("got %+v, %v", s, err)
		}
		if got := b.storage.changed; got.Reason != "exams" || got.ByName != "Ann" {
			t.Errorf("storage got %+v, want the name and the reason", got)
		}
		if !b.Current(ctx).Enabled {
			t.Error("not in force at once")
		}
		wg.Wait()
		if !b.Current(ctx).Enabled {
			t.Error("a reading from before the change undid it")
		}
		if _, err := b.Update(ctx, settings.Change{Version: "1"}); !fault.Is(err, fault.Conflict) {
			t.Errorf("got %v, want %s for a change of an old version", err, fault.Conflict)
		}
	})
}

// overtaken is a storage in which another change follows at once.
type overtaken struct{ *storage }

func (s overtaken) State(ctx context.Context) (schemas.LockSettingsState, error) {
	s.set(on)
	return s.storage.State(ctx)
}

func TestStore_UpdateReturnsItsOwnVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage := overtaken{&storage{version: 1}}
		store := settings.NewStore(storage, environment, slog.New(slog.DiscardHandler), func(string) {})
		enabled := false
		s, err := store.Update(inTenant(t, "diku"), settings.Change{Own: schemas.LockSettings{Enabled: &enabled}})
		if err != nil || s.Version != "2" || s.Enabled {
			t.Errorf("got %+v, %v, want what this change stored", s, err)
		}
	})
}

func TestStore_RefreshBeginsAReadingOfItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newHarness("")
		b.storage.delay = 500 * time.Millisecond
		ctx := inTenant(t, "diku")
		var wg sync.WaitGroup
		wg.Go(func() { b.Current(ctx) })
		synctest.Wait()
		b.storage.set(on)
		if s := b.Refresh(ctx); !s.Enabled || s.Version != "2" {
			t.Errorf("got %+v, want what is stored now", s)
		}
		wg.Wait()
	})
}

func TestStore_TakesACallerThatLeavesForNoOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newHarness(on)
		b.storage.delay = 100 * time.Millisecond
		ctx, cancel := context.WithCancel(inTenant(t, "diku"))
		cancel()
		if s := b.Current(ctx); s.TTL != environment.TTL {
			t.Errorf("got %+v, want the environment's", s)
		}
		synctest.Wait()
		<-time.After(200 * time.Millisecond)
		if !b.Current(inTenant(t, "diku")).Enabled || b.storage.timesRead() != 1 || len(b.fallbacks) != 0 {
			t.Errorf("read %d times, fallbacks %v", b.storage.timesRead(), b.fallbacks)
		}
	})
}

func TestStore_WaitsForASlowStorage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		known bool
		delay time.Duration
		want  time.Duration
		// readable is whether the settings that come back are the stored ones.
		readable bool
	}{
		"nothing is known and the first reading takes long": {
			known: false, delay: 9 * time.Second, want: 9 * time.Second, readable: true,
		},
		"nothing is known and the first reading never ends": {
			known: false, delay: time.Hour, want: 10 * time.Second, readable: false,
		},
		"good settings are known and the reading never ends": {
			known: true, delay: time.Hour, want: 2 * time.Second, readable: true,
		},
		"good settings are known and the reading takes 1.9 s": {
			known: true, delay: 1900 * time.Millisecond, want: 1900 * time.Millisecond, readable: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newHarness(on)
				ctx := inTenant(t, "diku")
				if tt.known {
					b.Current(ctx)
					<-time.After(2 * time.Second) // past their age
				}
				b.storage.delay = tt.delay
				start := time.Now()
				var wg sync.WaitGroup
				for range 20 {
					wg.Go(func() {
						if s := b.Current(ctx); s.Enabled != tt.readable || (s.Version != "") != tt.readable {
							t.Errorf("got %+v, stored ones wanted: %v", s, tt.readable)
						}
					})
				}
				wg.Wait()
				if took := time.Since(start); took != tt.want {
					t.Errorf("waited %s, want %s", took, tt.want)
				}
			})
		})
	}
}

func TestStore_WaitsOnceASecondForAStorageThatIsFrozen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newHarness(on)
		ctx := inTenant(t, "diku")
		b.Current(ctx)
		<-time.After(2 * time.Second) // past their age
		b.storage.delay = time.Hour
		for i, want := range []time.Duration{2 * time.Second, 0, 0} {
			start := time.Now()
			if s := b.Current(ctx); !s.Enabled || time.Since(start) != want {
				t.Errorf("check-out %d waited %s, want %s: %+v", i+1, time.Since(start), want, s)
			}
		}
	})
}

func TestStore_WarnsWhileStorageIsAway(t *testing.T) {
	t.Parallel()
	for _, code := range []fault.Code{fault.Unavailable, fault.Timeout} {
		b := newHarness(on)
		b.storage.fail(fault.New(code, "Storage is not available right now"))
		b.Refresh(inTenant(t, "diku"))
		if !strings.Contains(b.log.String(), "level=WARN") || strings.Contains(b.log.String(), "level=ERROR") {
			t.Errorf("%s: logged %s, want a warning: the outage has its own line", code, b.log)
		}
	}
}

func TestStore_TakesThe400OfAGatewayForAnOutage(t *testing.T) {
	t.Parallel()
	b := newHarness(on)
	ctx := inTenant(t, "diku")
	b.Current(ctx)
	b.storage.fail(fault.New(fault.Malformed, "Storage refused the request"))
	if s := b.Refresh(ctx); !s.Enabled {
		t.Errorf("got %+v, want the last good settings", s)
	}
	if b.log.Len() == 0 || len(b.fallbacks) != 1 {
		t.Errorf("log %q, fallbacks %v, want one of each", b.log, b.fallbacks)
	}
}
