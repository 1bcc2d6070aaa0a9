package sunbird

import (
	"strings"
	"testing"
	"time"

	"checkoutlock/resource-locks/internal/engine"
)

func TestRefresh(t *testing.T) {
	t.Parallel()
	const failed = "ERR_LOCK_REFRESHING_FAILED"
	t.Run("by the owner from any device", func(t *testing.T) {
		t.Parallel()
		f := newHarness(t, nil)
		u := f.user("u1", "Ann", "d1")
		first := u.create("do_1")
		f.store.Advance(50 * time.Minute)
		a := u.on("d2").refresh("do_1", first.Result.LockKey).wants(t, "api.lock.refresh")
		if a.Result.LockKey != first.Result.LockKey || a.Result.ExpiresAt <= first.Result.ExpiresAt ||
			*a.Result.ExpiresIn != 60 {
			t.Errorf("got %s after %s", a.text(), first.text())
		}
		f.store.Advance(50 * time.Minute)
		entry := f.list("").Result.Data[0]
		if entry["deviceId"] != "d1" || entry["createdOn"] == entry["expiresAt"] {
			t.Errorf("a refresh changed more than the end: %v", entry)
		}
	})
	t.Run("with another key", func(t *testing.T) {
		t.Parallel()
		u := newHarness(t, nil).user("u1", "Ann", "d1")
		u.create("do_1")
		for _, key := range []string{none, "no key", strings.Repeat("k", 5000)} {
			u.refresh("do_1", key).refused(t, 422, failed, "Invalid lock id")
		}
		u.refresh("do_2", none).refused(t, 422, failed, "Invalid lock id")
	})
	t.Run("by another user with the right key", func(t *testing.T) {
		t.Parallel()
		f := newHarness(t, nil)
		key := f.user("u1", "Ann", "d1").create("do_1").Result.LockKey
		other := f.user("u2", "Bo", "d1")
		other.refresh("do_1", key).refused(t, 403, failed, "You are not authorized to refresh this resource")
		f.store.Advance(time.Hour)
		other.refresh("do_1", key).refused(t, 422, failed, "Invalid lock id") // only the former holder resumes
	})
	for name, end := range map[string]func(u *user){
		"after the end of the lock": func(u *user) { u.f.store.Advance(2 * time.Hour) },
		"after a retire":            func(u *user) { u.retire("do_1") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newHarness(t, nil)
			u := f.user("u1", "Ann", "d1")
			key := u.create("do_1").Result.LockKey
			end(u)
			u.name = "Ann Lee"
			again := u.on("d2")
			a := again.refresh("do_1", key).wants(t, "api.lock.refresh")
			if a.Result.LockKey == key || a.Result.LockKey == "" || *a.Result.ExpiresIn != 60 {
				t.Errorf("got %s, want a new key", a.text())
			}
			entry := f.list("").Result.Data[0]
			if entry["deviceId"] != "d2" || entry["createdBy"] != "u1" ||
				entry["creatorInfo"] != `{"id":"u1","name":"Ann Lee"}` ||
				entry["resourceInfo"] != `{"contentType":"Course"}` || entry["lockId"] != a.Result.LockKey {
				t.Errorf("the lock is %v", entry)
			}
			u.refresh("do_1", key).refused(t, 422, failed, "Invalid lock id")
			if b := again.refresh("do_1", key).wants(t, "api.lock.refresh"); b.Result.LockKey != a.Result.LockKey {
				t.Errorf("got %s for a repeat, want the new key again", b.text())
			}
			f.user("u2", "Bo", "d2").refresh("do_1", key).refused(t, 422, failed, "Invalid lock id")
			u.refresh("do_1", a.Result.LockKey).wants(t, "api.lock.refresh")
		})
	}
	t.Run("repeated once the resumed lock has ended", func(t *testing.T) {
		t.Parallel()
		u := newHarness(t, nil).user("u1", "Ann", "d1")
		key := u.create("do_1").Result.LockKey
		u.retire("do_1")
		u.refresh("do_1", key).wants(t, "api.lock.refresh")
		u.retire("do_1")
		u.refresh("do_1", key).refused(t, 422, failed, "Invalid lock id")
	})
	t.Run("after the end of the lock, forced free before the answer", func(t *testing.T) {
		t.Parallel()
		f := newHarness(t, nil)
		f.server.Locks = engine.NewLocks(forcingStore{f.store}, observer{})
		u := f.user("u1", "Ann", "d1")
		key := u.create("do_1").Result.LockKey
		u.retire("do_1")
		u.refresh("do_1", key)
		if a := f.list(""); *a.Result.Count != 0 {
			t.Errorf("the former holder has locked it anew: %s", a.text())
		}
	})
	t.Run("once another user has locked it", func(t *testing.T) {
		t.Parallel()
		f := newHarness(t, nil)
		u := f.user("u1", "Ann", "d1")
		key := u.create("do_1").Result.LockKey
		f.store.Advance(time.Hour)
		f.user("u2", "Bo", "d1").create("do_1").wants(t, "api.lock.create")
		u.refresh("do_1", key).refused(t, 422, failed, "Invalid lock id")
	})
	t.Run("later than the setting allows", func(t *testing.T) {
		t.Parallel()
		f := newHarness(t, nil)
		u := f.user("u1", "Ann", "d1")
		key := u.create("do_1").Result.LockKey
		f.store.Advance(25 * time.Hour)
		u.refresh("do_1", key).refused(t, 422, failed, "Invalid lock id")
	})
}
