package mutexapi_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"checkoutlock/resource-locks/internal/engine"
)

func TestPost_Answers(t *testing.T) {
	t.Parallel()
	s := startHarness(t)
	s.want(t, "POST", "/api/lock/u/", "1", 200, `"uid":"u","user_id":1,`)
	s.store.Advance(40 * time.Second)
	s.want(t, "POST", "/api/lock/u/", "1", 200, `"user_id":1,`)
	s.store.Advance(40 * time.Second) // the time-out started anew
	status, body := s.send(t, "POST", "/api/lock/u/", "2")
	if want := `{"message":"Resource is already in use by another user","user_id":1}`; status != 423 || body != want {
		t.Errorf("got %d %s, want 423 %s", status, body, want)
	}
	s.store.Advance(20 * time.Second) // the refused call did not lengthen it
	s.want(t, "POST", "/api/lock/u/", "2", 200, `"user_id":2,`)
	s.want(t, "POST", "/api/lock/other/", "1", 200, `"uid":"other"`)
	counts, err := s.store.Count(t.Context())
	if err != nil || len(counts) != 1 || counts[0] != (engine.KindCount{Namespace: "mutex", Kind: "mutex", Locks: 2}) {
		t.Errorf("got %v, %v, want two of the kind", counts, err)
	}
}

func TestDelete_IsAlways204(t *testing.T) {
	t.Parallel()
	s := startHarness(t)
	for _, step := range []struct{ method, user, holder string }{
		{method: "DELETE", user: "1", holder: ""},
		{method: "POST", user: "1", holder: `"user_id":1,`},
		{method: "DELETE", user: "2", holder: `"user_id":1,`},
		{method: "DELETE", user: "1", holder: ""},
		{method: "DELETE", user: "1", holder: ""},
		{method: "POST", user: "2", holder: `"user_id":2,`},
		{method: "DELETE", user: "1", holder: `"user_id":2,`}, // late, by the former holder
	} {
		status, body := s.send(t, step.method, "/api/lock/u/", step.user)
		if step.method == "DELETE" && (status != 204 || body != "") {
			t.Errorf("got %d %q", status, body)
		}
		if step.holder == "" {
			s.want(t, "GET", "/api/lock/u/", "9", 404, `{"message":"Resource is not in use"}`)
		} else {
			s.want(t, "GET", "/api/lock/u/", "9", 200, step.holder)
		}
	}
}

func TestGet_ShowsTheLock(t *testing.T) {
	t.Parallel()
	s := startHarness(t)
	s.want(t, "POST", "/api/lock/u", "ann", 200, "")
	s.store.Advance(10 * time.Second)
	s.want(t, "POST", "/api/lock/u/", "ann", 200, "") // the same lock, with its last slash
	_, body := s.send(t, "GET", "/api/lock/u", "bob")
	var lock struct {
		UID       string    `json:"uid"`
		UserID    any       `json:"user_id"`
		LockedAt  time.Time `json:"locked_at"`
		RenewedAt time.Time `json:"renewed_at"`
		ExpiresAt time.Time `json:"expires_at"`
		Fence     int64     `json:"fence"`
	}
	if err := json.Unmarshal([]byte(body), &lock); err != nil {
		t.Fatal(err)
	}
	renewed, ends := lock.RenewedAt.Sub(lock.LockedAt), lock.ExpiresAt.Sub(lock.RenewedAt)
	if lock.UID != "u" || lock.UserID != "ann" || lock.Fence == 0 || renewed < 10*time.Second || ends != time.Minute {
		t.Errorf("got %s", body)
	}
	s.want(t, "HEAD", "/api/lock/u", "bob", 200, "")
}

func TestUserID_IsANumberIfJSONKeepsIt(t *testing.T) {
	t.Parallel()
	s := startHarness(t)
	for i, tt := range []struct{ user, want string }{
		{"1", "1"},
		{"0", "0"},
		{"-7", "-7"},
		{"9007199254740991", "9007199254740991"},
		{"-9007199254740991", "-9007199254740991"},
		{"9007199254740992", `"9007199254740992"`},
		{"-9007199254740992", `"-9007199254740992"`},
		{"99999999999999999999", `"99999999999999999999"`},
		{"01", `"01"`},
		{"+1", `"+1"`},
		{"1.5", `"1.5"`},
		{"1e3", `"1e3"`},
		{"ann", `"ann"`},
		{"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`},
	} {
		path := fmt.Sprintf("/api/lock/u%d/", i)
		s.want(t, "POST", path, tt.user, 200, `"user_id":`+tt.want+`,`)
		s.want(t, "POST", path, "other", 423, `"user_id":`+tt.want+`}`)
	}
}

func TestPost_HasOneWinner(t *testing.T) {
	t.Parallel()
	s := startHarness(t)
	const users = 32
	begin, answers := make(chan struct{}), make(chan int, users)
	for i := range users {
		go func() {
			<-begin
			status, _ := s.send(t, "POST", "/api/lock/u/", fmt.Sprint(i))
			answers <- status
		}()
	}
	close(begin)
	got := map[int]int{}
	for range users {
		got[<-answers]++
	}
	if got[200] != 1 || got[423] != users-1 {
		t.Errorf("got %v, want one 200 and %d times 423", got, users-1)
	}
}
