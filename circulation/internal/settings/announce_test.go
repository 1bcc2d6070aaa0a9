package settings_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
)

// instances are two stores on one storage, with environments that differ.
type instances struct {
	storage *storage
	on, off *harness
}

func newInstances(value string) instances {
	s := &storage{value: value, version: 1}
	turnsOn := environment
	turnsOn.Enabled = true
	return instances{storage: s, on: s.harness(turnsOn), off: s.harness(environment)}
}

// decision is the part of the settings that these tests check.
type decision struct {
	enabled   bool
	source    settings.Source
	announced bool
	version   string
}

func decided(s settings.Settings) decision {
	return decision{enabled: s.Enabled, source: s.EnabledSource, announced: s.Announced, version: s.Version}
}

// want checks what a store decides.
func (b *harness) want(ctx context.Context, t *testing.T, what string, want decision) {
	t.Helper()
	if got := decided(b.Current(ctx)); got != want {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

func (s *storage) wantAnnounced(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := s.announcements(); !slices.Equal(got, want) {
		t.Errorf("%s: announced %q, want %q", what, got, want)
	}
}

// waitUntilAged waits for the time after which settings are read again.
func waitUntilAged() { <-time.After(1100 * time.Millisecond) }

func TestStore_FollowsTheStricterEnvironment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newInstances("")
		ctx := inTenant(t, "diku")
		p.off.want(ctx, t, "before any announcement", decision{source: settings.FromEnvironment, version: "1"})
		p.storage.wantAnnounced(t, "off alone")
		p.on.want(ctx, t, "announces", decision{
			enabled: true, source: settings.FromEnvironment, announced: true, version: "2",
		})
		p.storage.wantAnnounced(t, "on", "true 1")
		waitUntilAged()
		followed := decision{enabled: true, source: settings.FromOtherInstance, announced: true, version: "2"}
		p.off.want(ctx, t, "follows", followed)
		if s := p.off.Current(ctx); s.TTL != environment.TTL || s.TTLSource != settings.FromEnvironment {
			t.Errorf("TTL is %s of %s, want the environment's own", s.TTL, s.TTLSource)
		}

		for range 300 { // 5.5 minutes
			waitUntilAged()
			p.on.want(ctx, t, "keeps announcing", decision{
				enabled: true, source: settings.FromEnvironment, announced: true, version: "2",
			})
			p.off.want(ctx, t, "keeps following", followed)
		}
		if n := len(p.storage.announcements()); n < 8 || n > 12 {
			t.Errorf("announced %d times in 5.5 minutes, want about twice a minute", n)
		}
		if n := strings.Count(p.off.log.String(), "CHECKOUT_LOCK_FEATURE_ENABLED"); n < 30 || n > 34 {
			t.Errorf("logged %d times in 5.5 minutes, want every 10 s:\n%.500s", n, p.off.log)
		}
		if !strings.Contains(p.off.log.String(), "level=WARN") || p.on.log.Len() != 0 {
			t.Errorf("logs: off %.300s, on %s", p.off.log, p.on.log)
		}
		if n := p.off.fallbacks[settings.ReasonEnvironmentDiffers]; n < 300 || len(p.on.fallbacks) != 0 {
			t.Errorf("counted %v and %v", p.off.fallbacks, p.on.fallbacks)
		}
	})
}

func TestStore_EndsAnAnnouncementThatLapsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newInstances("")
		ctx := inTenant(t, "diku")
		p.on.Current(ctx)
		p.storage.announcements()
		<-time.After(59 * time.Second)
		p.off.want(ctx, t, "59 s later", decision{
			enabled: true, source: settings.FromOtherInstance, announced: true, version: "2",
		})
		waitUntilAged()
		off := decision{source: settings.FromEnvironment, version: "3"}
		p.off.want(ctx, t, "lapsed", off)
		p.storage.wantAnnounced(t, "lapsed", "false 2")
		for range 100 {
			waitUntilAged()
			p.off.want(ctx, t, "stays off", off)
		}
		p.storage.wantAnnounced(t, "no announcement remains")

		p.on.want(ctx, t, "lends after a long pause", decision{
			enabled: true, source: settings.FromEnvironment, announced: true, version: "4",
		})
		<-time.After(2 * time.Minute)
		p.on.want(ctx, t, "lends again before any other", decision{
			enabled: true, source: settings.FromEnvironment, announced: true, version: "4",
		})
		p.storage.wantAnnounced(t, "begun again, and renewed", "true 3", "true 4")
	})
}

func TestStore_AnnouncesOnlyWhatMatters(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		value string
		want  []string // announced by an instance whose environment says on
		// follows is whether one whose environment says off takes the lock.
		follows bool
	}{
		"no entry":                       {value: "", want: []string{"true 1"}, follows: true},
		"an entry without a decision":    {value: `{"lockTtl":300}`, want: []string{"true 1"}, follows: true},
		"an entry that turns it on":      {value: on, want: nil, follows: true},
		"an entry that turns it off":     {value: `{"checkOutLockFeatureEnabled":false}`, want: nil, follows: false},
		"an entry that cannot be parsed": {value: `17`, want: []string{"true 1"}, follows: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newInstances(tt.value)
				ctx := inTenant(t, "diku")
				p.on.Current(ctx)
				p.storage.wantAnnounced(t, "on", tt.want...)
				if got := p.off.Current(ctx).Enabled; got != tt.follows {
					t.Errorf("off: enabled is %t, want %t", got, tt.follows)
				}
				p.storage.wantAnnounced(t, "off")
			})
		})
	}
}

func TestStore_AnnouncesOnceForManyCheckOuts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newInstances("")
		p.storage.delay, p.storage.announceDelay = 100*time.Millisecond, 100*time.Millisecond
		ctx := inTenant(t, "diku")
		for range 50 {
			go p.on.Current(ctx)
		}
		p.on.want(ctx, t, "shared", decision{enabled: true, source: settings.FromEnvironment, announced: true, version: "2"})
		synctest.Wait()
		p.storage.wantAnnounced(t, "shared", "true 1")
	})
}

func TestStore_KeepsTheLockAfterAFailedAnnouncement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newInstances("")
		ctx := inTenant(t, "diku")
		p.storage.announceErr = errors.New("no such endpoint")
		for range 20 {
			p.on.want(ctx, t, "nothing is announced", decision{enabled: true, source: settings.FromEnvironment, version: "1"})
			waitUntilAged()
		}
		if n := strings.Count(p.on.log.String(), "level=ERROR"); n < 2 || n > 3 ||
			p.on.fallbacks[settings.ReasonNotAnnounced] != 20 || !strings.Contains(p.on.log.String(), "no such endpoint") {
			t.Errorf("logged %d times in 22 s, counted %v:\n%s", n, p.on.fallbacks, p.on.log)
		}
		p.storage.announceErr = nil
		p.on.want(ctx, t, "storage answers again", decision{
			enabled: true, source: settings.FromEnvironment, announced: true, version: "2",
		})

		p.storage.announceErr = errors.New("down")
		counted := p.on.fallbacks[settings.ReasonNotAnnounced]
		<-time.After(2 * time.Minute)
		p.on.want(ctx, t, "a renewal fails", decision{
			enabled: true, source: settings.FromEnvironment, announced: true, version: "2",
		})
		p.off.want(ctx, t, "an end fails", decision{
			enabled: true, source: settings.FromOtherInstance, announced: true, version: "2",
		})
		if p.on.fallbacks[settings.ReasonNotAnnounced] != counted {
			t.Errorf("counted %v, but the announcement is stored", p.on.fallbacks)
		}
	})
}

func TestStore_WaitsForASlowAnnouncement(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		announced bool // by an earlier one
		want      time.Duration
	}{
		"the first one as long as for any call":    {announced: false, want: 10 * time.Second},
		"a renewal, which can do without, for 2 s": {announced: true, want: 2 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newInstances("")
				ctx := inTenant(t, "diku")
				if tt.announced {
					p.on.Current(ctx)
					<-time.After(40 * time.Second)
				}
				p.storage.announceDelay = time.Hour
				start := time.Now()
				if s := p.on.Current(ctx); !s.Enabled || s.Announced != tt.announced {
					t.Errorf("got %+v", s)
				}
				if took := time.Since(start); took != tt.want {
					t.Errorf("waited %s, want %s", took, tt.want)
				}
			})
		})
	}
}

func TestStore_AnnouncesAgainAfterAChange(t *testing.T) {
	t.Parallel()
	t.Run("once", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p := newInstances("")
			p.storage.announceDelay = time.Second
			ctx := inTenant(t, "diku")
			go func() {
				<-time.After(500 * time.Millisecond)
				p.storage.set(`{"lockTtl":300}`)
			}()
			p.on.want(ctx, t, "announced again", decision{
				enabled: true, source: settings.FromEnvironment, announced: true, version: "3",
			})
			p.storage.wantAnnounced(t, "changed", "true 1", "true 2")
		})
	})
	t.Run("to an entry that decides", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p := newInstances("")
			p.storage.announceDelay = time.Second
			ctx := inTenant(t, "diku")
			go func() {
				<-time.After(500 * time.Millisecond)
				p.storage.set(`{"checkOutLockFeatureEnabled":false}`)
			}()
			p.on.want(ctx, t, "decided", decision{source: settings.FromTenant, version: "2"})
			p.storage.wantAnnounced(t, "decided", "true 1")
		})
	})
	t.Run("all the time", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p := newInstances("")
			p.storage.announceDelay = time.Second
			var changes sync.WaitGroup
			defer changes.Wait()
			changes.Go(func() {
				for range 8 {
					<-time.After(500 * time.Millisecond)
					p.storage.set("")
				}
			})
			if s := p.on.Current(inTenant(t, "diku")); !s.Enabled || s.Announced ||
				p.on.fallbacks[settings.ReasonNotAnnounced] != 1 {
				t.Errorf("got %+v, counted %v, want the lock and a count", s, p.on.fallbacks)
			}
			if n := len(p.storage.announcements()); n != 3 {
				t.Errorf("announced %d times, want 3", n)
			}
		})
	})
}

func TestStore_AnnouncesAfterAnUpdate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newInstances(on)
		ctx := inTenant(t, "diku")
		p.on.Current(ctx)
		p.storage.wantAnnounced(t, "the tenant decides")
		s, err := p.on.Update(ctx, settings.Change{Version: "1"})
		if want := (decision{enabled: true, source: settings.FromEnvironment, announced: true, version: "3"}); err != nil ||
			decided(s) != want {
			t.Errorf("got %+v, %v, want %+v", decided(s), err, want)
		}
		p.storage.wantAnnounced(t, "the environment decides", "true 2")
		enabled := false
		if _, err := p.off.Update(ctx, settings.Change{Own: schemas.LockSettings{Enabled: &enabled}}); err != nil {
			t.Fatal(err)
		}
		waitUntilAged()
		p.on.want(ctx, t, "the tenant decides again", decision{source: settings.FromTenant, version: "4"})
		p.storage.wantAnnounced(t, "the tenant decides again")
	})
}

func TestStore_KeepsTheAnnouncementOfAnotherInstanceAfterAnUpdate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newInstances("")
		ctx := inTenant(t, "diku")
		p.on.Current(ctx)
		ttl := 5 * time.Second
		s, err := p.off.Update(ctx, settings.Change{Own: schemas.LockSettings{TTL: &ttl}})
		want := decision{enabled: true, source: settings.FromOtherInstance, announced: true, version: "3"}
		if err != nil || decided(s) != want || s.TTL != ttl {
			t.Errorf("got %+v, %v, want %+v and the TTL", decided(s), err, want)
		}
		p.off.want(ctx, t, "the next check-out", want)
	})
}

func TestStore_KeepsAnnouncementsDuringAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newInstances("")
		ctx := inTenant(t, "diku")
		p.on.Current(ctx)
		p.off.Current(ctx)
		p.storage.fail(errors.New("down"))
		<-time.After(2 * time.Minute)
		p.on.want(ctx, t, "on", decision{enabled: true, source: settings.FromEnvironment, announced: true, version: "2"})
		p.off.want(ctx, t, "off", decision{enabled: true, source: settings.FromOtherInstance, announced: true, version: "2"})
	})
}

func TestView_OfAnotherInstanceCanBeSentBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newInstances("")
		ctx := inTenant(t, "diku")
		p.on.Current(ctx)
		raw, err := json.Marshal(p.off.Current(ctx).View(nil))
		if err != nil || !strings.Contains(string(raw), `"enabled":{"value":true,"source":"otherInstance"}`) {
			t.Fatalf("shown as %s, %v", raw, err)
		}
		change, err := environment.ParseChange(raw)
		if err != nil || change.Own.Enabled != nil {
			t.Errorf("sent back: got %s, %v, want no setting of the tenant's own", describeChange(change.Own), err)
		}
		change, err = environment.ParseChange([]byte(strings.Replace(string(raw), "true", "false", 1)))
		if err != nil || change.Own.Enabled == nil || *change.Own.Enabled {
			t.Errorf("turned off: got %s, %v, want the tenant's own off", describeChange(change.Own), err)
		}
	})
}
