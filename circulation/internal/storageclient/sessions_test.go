package storageclient

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"checkoutlock/circulation/internal/checkin"
	"checkoutlock/schemas/fault"
)

var someSession = checkin.EndSession{ActionType: "Check-out", PatronID: someID}

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
	if err := c.DeleteSessions(inTenant(t, "diku"), someSession, time.Time{}); err != nil {
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
	if err := c.DeleteSessions(inTenant(t, "diku"), someSession, time.Time{}); !fault.Is(err, fault.Internal) {
		t.Errorf("got %v, want %s", err, fault.Internal)
	}
}

func TestClient_EndsExpiredSessions(t *testing.T) {
	t.Parallel()
	const limit = "2026-03-01T09:57:00.000Z"
	var asked []string
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if strings.HasSuffix(r.URL.Path, "/expired-session-patron-ids") {
			asked = append(asked, q.Get("session_inactivity_time_limit")+" "+q.Get("limit"))
			answer(w, 200, "", `{"expiredSessions":[{"patronId":"`+someID+`","actionType":"Check-out"}]}`)
			return
		}
		asked = append(asked, q.Get("query"))
		answer(w, 200, "", `{"patronActionSessions":[]}`)
	})
	before := time.Date(2026, 3, 1, 9, 57, 0, 0, time.UTC)
	expired, err := c.ExpiredSessions(inTenant(t, "diku"), before, 7)
	if err != nil || !slices.Equal(expired, []checkin.EndSession{someSession}) {
		t.Fatalf("got %v, %v", expired, err)
	}
	if err := c.DeleteSessions(inTenant(t, "diku"), someSession, before); err != nil {
		t.Fatal(err)
	}
	want := []string{
		limit + " 7", `patronId=="` + someID + `" and actionType=="Check-out" and metadata.createdDate<"` + limit + `"`,
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
}
