package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/schemas/fault"
)

// deleteRequest releases the lock that the request has.
func deleteRequest(a *lockAPI, user, request string) int {
	return a.do(http.MethodDelete, "?userId="+user+"&requestId="+request, "").Code
}

func TestCheckoutLockRoutes_ReleaseTheLockOfARequest(t *testing.T) {
	t.Parallel()
	a := newLockAPI(t)
	ann, request := uuid.New(), uuid.NewString()
	a.mustPost(t, ann, `,"ttlMs":60000,"requestId":"`+request+`"`)
	for what, ids := range map[string][2]string{
		"another request": {ann.String(), uuid.NewString()},
		"another patron":  {uuid.NewString(), request},
	} {
		if got := deleteRequest(a, ids[0], ids[1]); got != http.StatusNoContent || a.countLocks(t) != 1 {
			t.Errorf("%s: %d and %d locks, want 204 and the lock", what, got, a.countLocks(t))
		}
	}
	for range 2 {
		if got := deleteRequest(a, strings.ToUpper(ann.String()), request); got != http.StatusNoContent ||
			a.countLocks(t) != 0 {
			t.Errorf("its request: %d and %d locks, want 204 and none", got, a.countLocks(t))
		}
	}
	wantStatus(t, "the next", a.post(ann, ""), 201)
	if got := a.line.countReleased(); got != 1 {
		t.Errorf("observed %d releases, want 1", got)
	}
}

func TestCheckoutLockRoutes_ReleaseNothingWithoutBothIDs(t *testing.T) {
	t.Parallel()
	a := newLockAPI(t)
	ann, request := uuid.New(), uuid.NewString()
	a.mustPost(t, ann, `,"ttlMs":60000,"requestId":"`+request+`"`)
	a.mustPost(t, uuid.New(), `,"ttlMs":60000`)
	const nilID = "00000000-0000-0000-0000-000000000000"
	good := "?userId=" + ann.String() + "&requestId=" + request
	tests := map[string]struct {
		query  string
		status int
		want   string // part of the answer
	}{
		"no parameter": {query: "", status: 400, want: "Parameter userId must be a UUID"},
		"no userId":    {query: "?requestId=" + request, status: 400, want: "Parameter userId must be a UUID"},
		"no requestId": {
			query: "?userId=" + ann.String(), status: 400, want: "Parameter requestId must be a UUID",
		},
		"an empty userId": {
			query: "?userId=&requestId=" + request, status: 400, want: "Parameter userId must be a UUID",
		},
		"an empty requestId": {
			query: "?userId=" + ann.String() + "&requestId=", status: 400, want: "Parameter requestId must be a UUID",
		},
		"a bad userId": {
			query: "?userId=ann&requestId=" + request, status: 400, want: `Parameter userId must be a UUID, but it is "ann"`,
		},
		"a bad requestId": {
			query: "?userId=" + ann.String() + "&requestId=%25", status: 400,
			want: `Parameter requestId must be a UUID, but it is "%"`,
		},
		"braces": {
			query: "?userId=" + ann.String() + "&requestId={" + request + "}", status: 400,
			want: "Parameter requestId must be a UUID",
		},
		"the nil UUID": {
			query: "?userId=" + ann.String() + "&requestId=" + nilID, status: 400,
			want: "Parameter requestId must not be the nil UUID",
		},
		"two patrons": {
			query: good + "&userId=" + uuid.NewString(), status: 422, want: "userId must be given once",
		},
		"a parameter that is new": {query: good + "&holder=ann", status: 422, want: "holder"},
		"names in lower case":     {query: "?userid=" + ann.String() + "&requestid=" + request, status: 422, want: "userid"},
	}
	for name, tt := range tests {
		w := a.do(http.MethodDelete, tt.query, "")
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s: %d %s, want %d and %q", name, w.Code, w.Body, tt.status, tt.want)
		}
	}
	if n := a.countLocks(t); n != 2 {
		t.Errorf("%d locks are left, want 2", n)
	}
}

func TestCheckoutLockRoutes_AReleaseEndsAWaitingCall(t *testing.T) {
	t.Parallel()
	a := serve(t, newLockAPI(t))
	ann, request := uuid.New(), uuid.NewString()
	held := a.mustPost(t, ann, `,"ttlMs":60000`)
	waiter := a.send(t.Context(), ann, `,"ttlMs":60000,"waitMs":10000,"requestId":"`+request+`"`)
	a.line.untilWaiting(t, 1)
	next := a.send(t.Context(), ann, `,"ttlMs":60000,"waitMs":10000`)
	a.line.untilWaiting(t, 2)
	if got := deleteRequest(a.lockAPI, ann.String(), request); got != http.StatusNoContent {
		t.Errorf("DELETE: %d, want 204", got)
	}
	got := <-waiter
	if got.status != http.StatusServiceUnavailable || got.header.Get(fault.Header) != string(fault.LockHeld) ||
		got.took >= patience {
		t.Errorf("the waiting call got %d %s after %s, want 503 LOCK_HELD at once", got.status, got.body, got.took)
	}
	wantStatus(t, "release", a.do(http.MethodDelete, "/"+held.ID, ""), 204)
	(<-next).lock(t)
}
