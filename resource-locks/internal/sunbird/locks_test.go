package sunbird

import (
	"context"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"checkoutlock/resource-locks/internal/engine"
)

const none = "00000000-0000-4000-8000-000000000000"

func TestCreate(t *testing.T) {
	t.Parallel()
	t.Run("a free resource", func(t *testing.T) {
		t.Parallel()
		f := newHarness(t, nil)
		before := time.Now()
		a := f.user("u1", "Ann", "d1").create("do_1").wants(t, "api.lock.create")
		expires, err := time.Parse("2006-01-02T15:04:05.000Z", a.Result.ExpiresAt)
		if err != nil || expires.Before(before.Add(time.Hour-time.Second)) || expires.After(time.Now().Add(time.Hour)) {
			t.Errorf("the lock ends at %s, %v", a.Result.ExpiresAt, err)
		}
		if a.Result.ExpiresIn == nil || *a.Result.ExpiresIn != 60 || len(a.Result.LockKey) != 36 {
			t.Errorf("got %s, want 60 minutes and a UUID", a.text())
		}
		if a.Ver != "1.0" || *a.Params.MsgID != "m-1" || len(a.Params.ResMsgID) != 36 ||
			!regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`).MatchString(a.TS) {
			t.Errorf("the envelope is %s", a.text())
		}
	})
	t.Run("again by the same user and device", func(t *testing.T) {
		t.Parallel()
		f := newHarness(t, func(c *Settings) { c.LockTTL = 90 * time.Second })
		u := f.user("u1", "Ann", "d1")
		first := u.create("do_1").wants(t, "api.lock.create")
		f.store.Advance(time.Minute)
		second := u.create("do_1").wants(t, "api.lock.create")
		if second.Result.LockKey != first.Result.LockKey || second.Result.ExpiresAt != first.Result.ExpiresAt ||
			*second.Result.ExpiresIn != 1.5 {
			t.Errorf("got %s after %s", second.text(), first.text())
		}
	})
	t.Run("by the same user from another device", func(t *testing.T) {
		t.Parallel()
		u := newHarness(t, nil).user("u1", "Ann", "d1")
		u.create("do_1").wants(t, "api.lock.create")
		u.on("d2").create("do_1").refused(t, 400, "RESOURCE_SELF_LOCKED",
			"The resource is already locked by you in a different window/device")
	})
	t.Run("by another user", func(t *testing.T) {
		t.Parallel()
		f := newHarness(t, nil)
		f.user("u1", "Ann", "d1").create("do_1").wants(t, "api.lock.create")
		f.user("u2", "Bo", "d1").create("do_1").refused(t, 423, "RESOURCE_LOCKED", "The resource is already locked by Ann")
	})
	t.Run("a holder without a readable name", func(t *testing.T) {
		t.Parallel()
		f := newHarness(t, nil)
		u := f.user("u1", "", "d1")
		f.call("POST", "/v1/lock/create", body("resourceId", "do_1", "resourceType", "content", "resourceInfo", "no JSON",
			"createdBy", "u1", "creatorInfo", "no JSON"), u.headers()...).wants(t, "api.lock.create")
		f.user("u2", "Bo", "d1").create("do_1").refused(t, 423, "RESOURCE_LOCKED",
			"The resource is already locked by another user")
	})
	t.Run("after the end of the lock", func(t *testing.T) {
		t.Parallel()
		f := newHarness(t, nil)
		first := f.user("u1", "Ann", "d1").create("do_1").wants(t, "api.lock.create")
		f.store.Advance(time.Hour)
		second := f.user("u2", "Bo", "d1").create("do_1").wants(t, "api.lock.create")
		if second.Result.LockKey == first.Result.LockKey {
			t.Error("a new lock has the key of the former one")
		}
	})
	t.Run("many resources by one user, each type apart", func(t *testing.T) {
		t.Parallel()
		f := newHarness(t, func(c *Settings) { c.ResourceTypes = []string{"content", "Org"} })
		u := f.user("u1", "Ann", "d1")
		u.create("do_1").wants(t, "api.lock.create")
		u.create("do_2").wants(t, "api.lock.create")
		b := f.user("u2", "Bo", "d1")
		f.call("POST", "/v1/lock/create",
			body("resourceId", "do_1", "resourceType", "org", "resourceInfo", "{}", "createdBy", "u2", "creatorInfo", "{}"),
			b.headers()...).wants(t, "api.lock.create")
	})
}

func TestRetire_GoesOnWithoutItsClient(t *testing.T) {
	t.Parallel()
	f := newHarness(t, nil)
	u := f.user("u1", "Ann", "d1")
	u.create("do_1")
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(ctx, "DELETE", "/v1/lock/retire",
		strings.NewReader(body("resourceId", "do_1", "resourceType", "content")))
	for headers := u.headers(); len(headers) > 0; headers = headers[2:] {
		r.Header.Set(headers[0], headers[1])
	}
	f.server.ServeHTTP(httptest.NewRecorder(), r)
	if a := f.list(""); *a.Result.Count != 0 {
		t.Errorf("the lock stays: %s", a.text())
	}
}

// forcingStore releases each resumed lock by force before the front sees it.
type forcingStore struct{ engine.LockStore }

func (s forcingStore) Refresh(ctx context.Context, r engine.Refresh) (engine.Result, error) {
	renewal, err := s.LockStore.Refresh(ctx, r)
	if err == nil && renewal.Outcome == engine.Granted {
		_, err = s.ForceRelease(ctx, r.Key, renewal.Lock.ID, engine.Note{By: "eve", Reason: "stuck"})
	}
	return renewal, err
}

func TestRetire(t *testing.T) {
	t.Parallel()
	const failed = "ERR_LOCK_RETIRING_FAILED"
	f := newHarness(t, nil)
	u, other := f.user("u1", "Ann", "d1"), f.user("u2", "Bo", "d1")
	u.retire("do_1").refused(t, 400, failed, "Resource is not locked")
	u.create("do_1")
	other.retire("do_1").refused(t, 403, failed, "You are not authorized to retire this resource")
	a := u.on("d2").retire("do_1").wants(t, "api.lock.retire")
	if a.Result.LockKey != "" || a.Result.ExpiresIn != nil {
		t.Errorf("the result is not empty: %s", a.text())
	}
	u.retire("do_1").refused(t, 400, failed, "Resource is not locked")
	other.create("do_1").wants(t, "api.lock.create")
	f.store.Advance(time.Hour)
	other.retire("do_1").refused(t, 400, failed, "Resource is not locked")
}

func TestList(t *testing.T) {
	t.Parallel()
	f := newHarness(t, nil)
	f.user("u1", "Ann", "d1").create("do_1")
	f.store.Advance(30 * time.Minute)
	f.user("u2", "Bo", "d2").create("do_2")
	tests := map[string]struct {
		body string
		want string // the ids in order
	}{
		"no body":                   {``, "do_1 do_2"},
		"no request":                {`{}`, "do_1 do_2"},
		"no filters":                {`{"request":{}}`, "do_1 do_2"},
		"an empty text":             {`{"request":{"filters":{"resourceId":""}}}`, "do_1 do_2"},
		"empty filters":             {`{"request":{"filters":""}}`, "do_1 do_2"},
		"an array":                  {`{"request":{"filters":{"resourceId":["do_2"]}}}`, "do_2"},
		"a text":                    {`{"request":{"filters":{"resourceId":"do_1"}}}`, "do_1"},
		"ids named twice":           {`{"request":{"filters":{"resourceId":["do_1","do_1","x"]}}}`, "do_1"},
		"an empty array":            {`{"request":{"filters":{"resourceId":[]}}}`, ""},
		"another text":              {`{"request":{"filters":{"resourceId":"DO_1"}}}`, ""},
		"a filter that is unknown":  {`{"request":{"filters":{"x":1}}}`, "do_1 do_2"},
		"a resourceId that is null": {`{"request":{"filters":{"resourceId":null}}}`, "do_1 do_2"},
	}
	for name, tt := range tests {
		a := f.list(tt.body).wants(t, "api.lock.list")
		var ids []string
		for _, entry := range a.Result.Data {
			ids = append(ids, entry["resourceId"].(string))
		}
		if got := strings.Join(ids, " "); got != tt.want || *a.Result.Count != len(ids) {
			t.Errorf("%s: got %q, %s", name, got, a.text())
		}
	}
	for _, wrong := range []string{
		`{"request":{"filters":{"resourceId":7}}}`, `{"request":{"filters":{"resourceId":[7]}}}`,
		`{"request":{"filters":{"resourceId":{}}}}`,
		`{"request":{"filters":7}}`, `{"request":7}`, `[]`, `x`, `{"request":{"filters":{"resourceId":["` +
			strings.Repeat("n", 300) + `"]}}}`,
	} {
		f.list(wrong).refused(t, 400, "ERR_LISTING_LOCK_FAILED", "")
	}
	f.call("POST", "/v1/lock/list", "").refused(t, 400, "ERR_LISTING_LOCK_FAILED", "X-device-Id is missing in headers")
	entry := f.list("").Result.Data[1]
	for field, want := range map[string]string{
		"resourceType": "Content", "resourceInfo": `{"contentType":"Course"}`, "createdBy": "u2",
		"creatorInfo": `{"id":"u2","name":"Bo"}`, "deviceId": "d2",
	} {
		if entry[field] != want {
			t.Errorf("%s is %v, want %s", field, entry[field], want)
		}
	}
	f.store.Advance(45 * time.Minute)
	if a := f.list(""); *a.Result.Count != 1 {
		t.Errorf("an ended lock is listed: %s", a.text())
	}
}

func TestForce(t *testing.T) {
	t.Parallel()
	const failed = "ERR_LOCK_FORCING_FAILED"
	f := newHarness(t, func(c *Settings) { c.Admins, c.AdminRole = []string{"admin"}, "LOCK_ADMIN" })
	holder, admin, other := f.user("u1", "Ann", "d1"), f.user("admin", "Ada", ""), f.user("u2", "Bo", "d1")
	admin.force("do_1", "left").refused(t, 400, failed, "Resource is not locked")
	key := holder.create("do_1").Result.LockKey
	other.force("do_1", "I want it").refused(t, 403, failed, "")
	holder.force("do_1", "mine").refused(t, 403, failed, "")
	admin.force("do_1", "").refused(t, 400, "ERR_LOCK_FORCING_FIELDS_MISSING", `"reason" is not allowed to be empty`)
	admin.force("do_1", strings.Repeat("r", engine.MaxReason+1)).refused(t, 400, "ERR_LOCK_FORCING_FIELDS_MISSING", "")
	admin.force("do_1", "left the house").wants(t, "api.lock.force")
	holder.refresh("do_1", key).refused(t, 422, "ERR_LOCK_REFRESHING_FAILED", "Invalid lock id")
	holder.retire("do_1").refused(t, 400, "ERR_LOCK_RETIRING_FAILED", "Resource is not locked")
	other.create("do_1").wants(t, "api.lock.create")
	holder.refresh("do_1", key).refused(t, 422, "ERR_LOCK_REFRESHING_FAILED", "Invalid lock id")
	holder.retire("do_1").refused(t, 403, "ERR_LOCK_RETIRING_FAILED", "")

	byRole := f.user("u3", "Cy", "")
	byRole.extra = jwt.MapClaims{"realm_access": map[string]any{"roles": []string{"x", "LOCK_ADMIN"}}}
	byRole.force("do_1", "by role").wants(t, "api.lock.force")
	kept, err := f.store.Releases(t.Context(), 10)
	if err != nil || len(kept) != 2 || kept[0].By != "u3" || kept[1].Reason != "left the house" || kept[1].Owner != "u1" {
		t.Errorf("the kept releases are %v, %v", kept, err)
	}
}

// Unicode folds the long s (U+017F) to s, but does not lower it to s.
func TestCreate_OneLockForAllSpellingsOfAType(t *testing.T) {
	t.Parallel()
	f := newHarness(t, func(c *Settings) { c.ResourceTypes = []string{"Course"} })
	for _, kind := range []string{"course", "Course", "cour\u017fe"} {
		u := f.user("of "+kind, kind, "d")
		a := f.call("POST", "/v1/lock/create", body("resourceId", "do_1", "resourceType", kind, "resourceInfo", "{}",
			"createdBy", u.id, "creatorInfo", "{}"), u.headers()...)
		if first := kind == "course"; first != (a.Status == 200) || !first && a.Status != 423 {
			t.Errorf("%s: %s", kind, a.text())
		}
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	f := newHarness(t, nil)
	holder, asker := f.user("u1", "Ann", "d1"), f.user("u2", "Bo", "")
	asker.ask("do_1", "please").refused(t, 400, "ERR_LOCK_REQUESTING_FAILED", "Resource is not locked")
	first := holder.create("do_1")
	if a := asker.ask("do_1", "please").wants(t, "api.lock.request"); a.Result.LockedBy != "Ann" {
		t.Errorf("the answer does not name the holder: %s", a.text())
	}
	asker.ask("do_1", "").refused(t, 400, "ERR_LOCK_REQUESTING_FIELDS_MISSING", `"message" is not allowed to be empty`)
	asker.ask("do_1", strings.Repeat("m", engine.MaxMessage+1)).refused(t, 400, "ERR_LOCK_REQUESTING_FIELDS_MISSING", "")
	again := holder.create("do_1")
	if again.Result.ExpiresAt != first.Result.ExpiresAt || again.Result.LockKey != first.Result.LockKey {
		t.Errorf("a request changed the lock: %s", again.text())
	}
	for _, a := range []answer{again, holder.refresh("do_1", first.Result.LockKey)} {
		if got := a.Result.Requests; len(got) != 1 || got[0].By != "u2" || got[0].Name != "Bo" || got[0].Message != "please" {
			t.Errorf("the holder sees %v", got)
		}
	}
	if entry := f.list("").Result.Data[0]; len(entry["requests"].([]any)) != 1 {
		t.Errorf("the list has %v", entry)
	}
	holder.retire("do_1").wants(t, "api.lock.retire")
	if a := holder.create("do_1"); len(a.Result.Requests) != 0 {
		t.Errorf("a request outlives its lock: %s", a.text())
	}
}

func TestRaces(t *testing.T) {
	t.Parallel()
	const callers = 32
	// race counts the answers to calls at once by status and code.
	race := func(call func(i int) answer) map[string]int {
		var mu sync.Mutex
		var running sync.WaitGroup
		got := map[string]int{}
		for i := range callers {
			running.Go(func() {
				a := call(i)
				mu.Lock()
				defer mu.Unlock()
				if a.Params.Err != nil {
					got[*a.Params.Err]++
				} else {
					got["OK "+a.Result.LockKey]++
				}
			})
		}
		running.Wait()
		return got
	}
	f := newHarness(t, nil)
	users := make([]*user, callers)
	for i := range users {
		users[i] = f.user(string(rune('a'+i%26))+string(rune('a'+i/26)), "Ann", "d")
	}
	if got := race(func(i int) answer { return users[i].create("users") }); len(got) != 2 ||
		got["RESOURCE_LOCKED"] != callers-1 {
		t.Errorf("users at once: %v", got)
	}
	one := f.user("one", "Ann", "d")
	if got := race(func(i int) answer { return one.on(string(rune('A' + i))).create("devices") }); len(got) != 2 ||
		got["RESOURCE_SELF_LOCKED"] != callers-1 {
		t.Errorf("devices at once: %v", got)
	}
	if got := race(func(int) answer { return one.create("same") }); len(got) != 1 {
		t.Errorf("the same device at once: %v", got)
	}
	if got := race(func(int) answer { return one.retire("same") }); got["OK "] != 1 ||
		got["ERR_LOCK_RETIRING_FAILED"] != callers-1 {
		t.Errorf("retires at once: %v", got)
	}
	key := one.create("lapsed").Result.LockKey
	f.store.Advance(time.Hour)
	got := race(func(i int) answer {
		if i%2 == 0 {
			return one.refresh("lapsed", key)
		}
		return users[i].create("lapsed")
	})
	if len(got) < 2 || len(got) > 4 || *f.list(`{"request":{"filters":{"resourceId":"lapsed"}}}`).Result.Count != 1 {
		t.Errorf("refresh and create at once: %v", got)
	}
	winners := 0 // a device that resumes the lock gets the same key by each call
	for text := range got {
		if strings.HasPrefix(text, "OK ") {
			winners++
		}
	}
	if winners != 1 {
		t.Errorf("refresh and create at once have %d winners: %v", winners, got)
	}
}
