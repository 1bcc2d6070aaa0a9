package admin_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
)

func TestReviewLimit(t *testing.T) {
	t.Parallel()
	change := func(daysAgo int, before, after string) schemas.LockChange {
		return schemas.LockChange{
			Kind: schemas.ChangeSettings, Date: time.Now().UTC().AddDate(0, 0, -daysAgo).Format(schemas.FolioTime),
			Before: []byte(before), After: []byte(after),
		}
	}
	const on, off = `{"checkOutLockFeatureEnabled":true}`, `{"checkOutLockFeatureEnabled":false}`
	changed := slices.Repeat([]schemas.LockChange{change(1, on, on)}, schemas.MaxChangePage)
	offNow := environment.Settings()
	offNow.EnabledSource, offNow.Version = settings.FromTenant, "7"
	byDefault := environment.Settings()
	byDefault.Enabled, byDefault.Version = true, "7"
	onNow := environment.Settings()
	onNow.Enabled, onNow.EnabledSource, onNow.Version = true, settings.FromTenant, "7"
	for name, tt := range map[string]struct {
		current     settings.Settings
		changes     []schemas.LockChange
		onFor       int // days; -1 for not known
		countedDays int
	}{
		"on since the last time": {
			current: onNow, changes: []schemas.LockChange{
				change(1, on, on), change(1, off, off), change(2, `{"lockTtl":300}`, on), change(9, "", on),
			},
			onFor: 2, countedDays: 2,
		},
		"on for longer than kept": {
			current: onNow, changes: []schemas.LockChange{change(90, "", on)}, onFor: 90, countedDays: 30,
		},
		"on since a change on the second page": {
			current: onNow, changes: append(changed, change(3, off, on)), onFor: 3, countedDays: 3,
		},
		"on by default": {
			current: byDefault, changes: []schemas.LockChange{change(2, off, on)}, onFor: -1, countedDays: 30,
		},
		"no change is known": {
			current: onNow, onFor: -1, countedDays: 30,
		},
		"off": {
			current: offNow, changes: []schemas.LockChange{change(1, on, off), change(2, off, on)}, onFor: -1, countedDays: 30,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &backend{current: tt.current, changes: tt.changes}
			s := b.service()
			ctx := inTenant(t, "diku")
			r, err := s.ReviewLimit(ctx)
			if err != nil || r.LimitReached != 3 || r.OnSince.IsZero() != (tt.onFor < 0) {
				t.Fatalf("got %+v, %v", r, err)
			}
			if days := int(time.Since(r.OnSince).Hours()+1) / 24; tt.onFor >= 0 && days != tt.onFor {
				t.Errorf("on for %d days, want %d", days, tt.onFor)
			}
			want := "limit since " + time.Now().UTC().AddDate(0, 0, -tt.countedDays).Format(time.DateOnly)
			if _, err := s.ReviewLimit(ctx); err != nil || strings.Count(strings.Join(b.asked, "\n"), want) != 1 {
				t.Errorf("asked %q, %v, want once %q", b.asked, err, want)
			}
		})
	}
}

func TestReviewLimit_FollowsTheSwitchAtOnce(t *testing.T) {
	t.Parallel()
	off := environment.Settings()
	off.Version = "7"
	on := off
	on.Enabled, on.EnabledSource, on.Version = true, settings.FromTenant, "8"
	turnedOn := []schemas.LockChange{{
		Kind: schemas.ChangeSettings, Date: time.Now().UTC().Format(schemas.FolioTime),
		After: []byte(`{"checkOutLockFeatureEnabled":true}`),
	}}
	for name, steps := range map[string][]settings.Settings{"turned on": {off, on}, "turned off": {on, off}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &backend{changes: turnedOn}
			s := b.service()
			for _, b.current = range steps {
				r, err := s.ReviewLimit(inTenant(t, "diku"))
				counts := time.Since(r.Since) < time.Hour // since it was turned on, in place of 30 days
				if err != nil || r.OnSince.IsZero() == b.current.Enabled || counts != b.current.Enabled {
					t.Errorf("on %t: got %+v, %v", b.current.Enabled, r, err)
				}
			}
		})
	}
}
