package settings_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/schemas/fault"
)

func TestStore_KeepsSettingsByTenant(t *testing.T) {
	t.Parallel()
	b := newHarness(on)
	if !b.Current(inTenant(t, "diku")).Enabled {
		t.Error("diku: not enabled")
	}
	b.storage.set("")
	if b.Current(inTenant(t, "other")).Enabled {
		t.Error("other: got diku's settings")
	}
}

func TestStore_KeepsNothingWithoutATenant(t *testing.T) {
	t.Parallel()
	b := newHarness(on)
	if s := b.Current(t.Context()); s.Enabled || s.TTL != environment.TTL || s.Version != "" {
		t.Errorf("got %+v, want the environment's", s)
	}
	if s, _, err := b.Read(t.Context()); err == nil {
		t.Errorf("read %+v, want an error", s)
	}
}

func TestStore_TakesAnUnknownTenantForNoOutage(t *testing.T) {
	t.Parallel()
	b := newHarness("")
	b.storage.fail(fault.New(fault.UnknownTenant, "Unknown tenant"))
	ctx := inTenant(t, "unknown")
	if _, _, err := b.Read(ctx); !fault.Is(err, fault.UnknownTenant) {
		t.Errorf("got %v, want %s", err, fault.UnknownTenant)
	}
	if s := b.Current(ctx); s.Version != "" || b.log.Len() != 0 || len(b.fallbacks) != 0 {
		t.Errorf("got %+v, log %s, fallbacks %v", s, b.log, b.fallbacks)
	}
}

func TestStore_DropsInventedTenantsFirst(t *testing.T) {
	t.Parallel()
	b := newHarness(on)
	b.Current(inTenant(t, "diku"))
	b.storage.fail(errors.New("unknown tenant"))
	for i := range 1500 {
		b.Current(inTenant(t, fmt.Sprintf("t%d", i)))
	}
	if n := b.Remembered(); n > 1000 {
		t.Errorf("%d tenants are remembered, want at most 1000", n)
	}
	if !b.Refresh(inTenant(t, "diku")).Enabled {
		t.Error("the last good values of a real tenant were dropped")
	}
}

func TestStore_DropsTheTenantReadLongestAgo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newHarness(on)
		for i := range 1001 {
			b.Refresh(inTenant(t, fmt.Sprintf("t%d", i)))
			<-time.After(time.Millisecond)
		}
		b.storage.fail(errors.New("unknown tenant"))
		b.Refresh(inTenant(t, "x0")) // takes the room of the oldest
		b.Refresh(inTenant(t, "x1")) // takes that of x0
		known := b.ListEnabled()
		if len(known) != 999 || known["t0"] || known["t1"] || !known["t2"] {
			t.Errorf("%d tenants are known, t2 among them: %t; want all but the two oldest", len(known), known["t2"])
		}
	})
}

// Another instance may use other settings by then, and that is no difference between the two.
func TestStore_ListsNoTenantThatIdles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newHarness(on)
		b.Current(inTenant(t, "diku"))
		b.Current(inTenant(t, "idle"))
		<-time.After(3 * time.Minute)
		b.storage.fail(errors.New("down"))
		b.Current(inTenant(t, "diku"))
		if known := b.ListEnabled(); len(known) != 2 {
			t.Errorf("lists %v after 3 minutes, want both", known)
		}
		<-time.After(2 * time.Minute)
		if known := b.ListEnabled(); !maps.Equal(known, map[string]bool{"diku": true}) {
			t.Errorf("lists %v after 5 minutes, want what was used in the last ones", known)
		}
	})
}
