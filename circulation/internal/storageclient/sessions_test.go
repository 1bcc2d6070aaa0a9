package storageclient

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"checkoutlock/schemas/fault"
)

func TestClient_DeletesSessionsPageByPage(t *testing.T) {
	t.Parallel()
	var lists, deletes atomic.Int32
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			if deletes.Add(1) == 1 { // another caller deleted it first
				answer(w, 404, fault.NotFound, "Not found")
				return
			}
			answer(w, 204, "", "")
			return
		}
		if got, want := r.URL.Query().Get("query"), `patronId=="`+someID+`" and actionType=="Check-out"`; got != want {
			t.Errorf("asked for %s, want %s", got, want)
		}
		n := 100
		if lists.Add(1) == 2 {
			n = 3
		}
		session := `{"id":"` + anotherID + `"}`
		answer(w, 200, "", `{"patronActionSessions":[`+strings.TrimSuffix(strings.Repeat(session+",", n), ",")+`]}`)
	})
	if err := c.DeleteSessions(inTenant(t, "diku"), someID, "Check-out"); err != nil {
		t.Fatal(err)
	}
	if lists.Load() != 2 || deletes.Load() != 103 {
		t.Errorf("got %d pages and %d deletes, want 2 and 103", lists.Load(), deletes.Load())
	}
}

func TestClient_DeleteSessionsFails(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			answer(w, 500, fault.Internal, "boom")
			return
		}
		answer(w, 200, "", `{"patronActionSessions":[{"id":"`+anotherID+`"}]}`)
	})
	if err := c.DeleteSessions(inTenant(t, "diku"), someID, "Check-out"); !fault.Is(err, fault.Internal) {
		t.Errorf("got %v, want %s", err, fault.Internal)
	}
}
