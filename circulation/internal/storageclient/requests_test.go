package storageclient

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestClient_ListsTheQueueOfAnItemOrATitle(t *testing.T) {
	t.Parallel()
	const open = ` and status==("Open - Not yet filled" or "Open - Awaiting pickup" or "Open - In transit" or "Open - ` +
		`Awaiting delivery")` +
		` sortBy position/sort.ascending`
	var want string
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("query"); r.URL.Path != "/request-storage/requests" || got != want+open {
			t.Errorf("asked %s for %s", r.URL.Path, got)
		}
		answer(w, 200, "", `{"requests":[{"id":"r1","itemId":"i","requesterId":"u","requestType":"Hold",`+
			`"requestLevel":"Item","status":"Open - In transit","position":3}],"totalRecords":1}`)
	})
	ctx := inTenant(t, "diku")
	want = `itemId=="` + someID + `"`
	queue, err := c.ItemQueue(ctx, someID)
	if err != nil || len(queue) != 1 || !strings.Contains(string(queue[0]), `"id":"r1"`) {
		t.Errorf("got %+v, %v", queue, err)
	}
	want = `instanceId=="` + someID + `"`
	if queue, err := c.TitleQueue(ctx, someID); err != nil || len(queue) != 1 {
		t.Errorf("got %+v, %v", queue, err)
	}
}

func TestClient_RefusesAnUnreadableQueue(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"no list": `{}`, "null": `null`, "no list of records": `{"requests":1}`} {
		c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, "", body) })
		if queue, err := c.ItemQueue(inTenant(t, "diku"), someID); !fault.Is(err, fault.Internal) {
			t.Errorf("%s: got %v, %v", name, queue, err)
		}
	}
}

func TestClient_TitleLevelRequests(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status int
		code   fault.Code
		body   string
		want   bool
		fault  fault.Code
	}{
		"no setting": {status: 200, code: "", body: `{"circulationSettings":[]}`, want: false, fault: ""},
		"on": {
			status: 200, code: "",
			body: `{"circulationSettings":[{"name":"generalTlr","value":{"titleLevelRequestsFeatureEnabled":true}}]}`,
			want: true, fault: "",
		},
		"off": {
			status: 200, code: "",
			body: `{"circulationSettings":[{"name":"generalTlr","value":{"titleLevelRequestsFeatureEnabled":false}}]}`,
			want: false, fault: "",
		},
		"says nothing": {
			status: 200, code: "", body: `{"circulationSettings":[{"name":"generalTlr","value":{"other":1}}]}`, want: false,
			fault: "",
		},
		"says text": {
			status: 200, code: "",
			body: `{"circulationSettings":[{"name":"generalTlr","value":{"titleLevelRequestsFeatureEnabled":"true"}}]}`,
			want: false, fault: fault.Internal,
		},
		"a storage outage":  {status: 500, code: fault.Internal, body: `boom`, want: false, fault: fault.Internal},
		"storage is absent": {status: 404, code: "", body: ``, want: false, fault: fault.Unavailable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
				if got := r.URL.Query().Get("query"); got != `name==("generalTlr" or "TLR") sortBy name` {
					t.Errorf("asked for %s", got)
				}
				answer(w, tt.status, tt.code, tt.body)
			})
			if got, err := c.TitleLevelRequests(inTenant(t, "diku")); got != tt.want || fault.CodeOf(err) != tt.fault {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestClient_TitleHoldsObeyRules(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		`{}`: false, `{"tlrHoldShouldFollowCirculationRules":true}`: true,
		`{"tlrHoldShouldFollowCirculationRules":"yes"}`: false,
	} {
		c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
			answer(w, 200, "", `{"circulationSettings":[{"value":`+value+`}]}`)
		})
		if got, err := c.TitleHoldsObeyRules(inTenant(t, "diku")); got != want || err != nil {
			t.Errorf("%s: got %v, %v", value, got, err)
		}
	}
}

func TestClient_KeepsTheTitleLevelSetting(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		answer(w, 200, "", `{"circulationSettings":[{"value":{"titleLevelRequestsFeatureEnabled":true}}]}`)
	})
	stopClock(c)
	for range 5 {
		if on, err := c.TitleLevelRequests(inTenant(t, "diku")); !on || err != nil {
			t.Fatalf("got %v, %v", on, err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times at once", n)
	}
	if _, err := c.TitleLevelRequests(inTenant(t, "other")); err != nil || asked.Load() != 2 {
		t.Errorf("got %v; another tenant's switch is another", err)
	}
}

func TestClient_KeepsSchedules(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if !strings.HasSuffix(r.URL.Path, "/fixed-due-date-schedules/"+someID) {
			answer(w, 404, fault.NotFound, "")
			return
		}
		answer(w, 200, "", `{"schedules":[{"from":"2026-01-01","to":"2026-02-01","due":"2026-03-01"}]}`)
	})
	ctx := inTenant(t, "diku")
	stopClock(c)
	for range 3 {
		if _, err := c.FixedSchedule(ctx, someID); err != nil {
			t.Fatal(err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times at once", n)
	}
	if _, err := c.FixedSchedule(ctx, anotherID); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want %s", err, fault.NotFound)
	}
}

// Storage refuses a commit after the setting for titles changed. The client reads the setting again.
func TestClient_ReadsTheSettingForTitlesAgain(t *testing.T) {
	t.Parallel()
	on := false
	c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			on = true
			answer(w, 409, fault.RequestChanged, "turned on")
			return
		}
		answer(w, 200, "", fmt.Sprintf(
			`{"circulationSettings":[{"name":"generalTlr","value":{"titleLevelRequestsFeatureEnabled":%t}}]}`, on,
		))
	})
	ctx := inTenant(t, "diku")
	for name, commit := range map[string]func() error{
		"place":  func() error { _, err := c.Place(ctx, schemas.Placement{}); return err },
		"move":   func() error { _, err := c.MoveRequest(ctx, schemas.RequestMove{}); return err },
		"order":  func() error { _, err := c.OrderQueue(ctx, schemas.QueueOrder{}); return err },
		"change": func() error { return c.ChangeRequest(ctx, schemas.RequestChange{}) },
	} {
		on = false
		if err := c.noteQueueChange(ctx, fault.New(fault.RequestChanged, "forget")); err == nil {
			t.Error("the error is lost")
		}
		if got, err := c.TitleLevelRequests(ctx); err != nil || got {
			t.Fatalf("%s: got %t, %v before", name, got, err)
		}
		if err := commit(); !fault.Is(err, fault.RequestChanged) {
			t.Errorf("%s: got %v", name, err)
		}
		if got, err := c.TitleLevelRequests(ctx); err != nil || !got {
			t.Errorf("%s: got %t, %v afterwards, want what is stored now", name, got, err)
		}
	}
}

func TestClient_NotFoundIsThatOfARecord(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, 404, fault.NotFound, "") })
	ctx := inTenant(t, "diku")
	_, ordered := c.OrderQueue(ctx, schemas.QueueOrder{})
	_, moved := c.MoveRequest(ctx, schemas.RequestMove{})
	_, rules := c.Rules(ctx)
	if changed := c.ChangeRequest(ctx, schemas.RequestChange{}); !fault.Is(changed, fault.NotFound) ||
		!fault.Is(ordered, fault.NotFound) || !fault.Is(moved, fault.NotFound) || !fault.Is(rules, fault.Unavailable) {
		t.Errorf("got %v, %v, %v and %v for the rules", changed, ordered, moved, rules)
	}
}
