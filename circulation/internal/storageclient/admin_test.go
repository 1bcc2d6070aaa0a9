package storageclient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

func TestClient_SendsWhatStaffAskFor(t *testing.T) {
	t.Parallel()
	yes := true
	tests := map[string]struct {
		ask    func(context.Context, *Client) (any, error)
		want   string // the request
		status int
		body   string
		answer string
	}{
		"all locks": {
			ask: func(ctx context.Context, c *Client) (any, error) {
				return c.Locks(ctx, admin.LockFilter{Limit: 10})
			},
			want: "GET /check-out-lock-storage?limit=10&offset=0 ", status: 200,
			body: `{"checkoutLocks":[{"id":"l","ageMs":7,"holder":"h"}],"totalRecords":1}`, answer: `{[{l   0  false 7   h}] 1}`,
		},
		"some locks": {
			ask: func(ctx context.Context, c *Client) (any, error) {
				return c.Locks(ctx, admin.LockFilter{UserID: someID, Holder: "a&b", Outdated: &yes, Offset: 20, Limit: 10})
			},
			want: "GET /check-out-lock-storage?holder=a%26b&limit=10&offset=20&outdated=true&userId=" + someID +
				" ", status: 200,
			body: `{"checkoutLocks":[],"totalRecords":0}`, answer: `{[] 0}`,
		},
		"a forced release": {
			ask: func(ctx context.Context, c *Client) (any, error) {
				return c.ForceRelease(ctx, someID, schemas.ForcedRelease{Reason: "stuck", ByName: "Ann"})
			},
			want: "POST /check-out-lock-storage/" + someID + `/forced-release {"reason":"stuck","byName":"Ann"}`, status: 200,
			body: `{"id":"l","ageMs":7,"requestId":"r"}`, answer: `{l   0  false 7 r  }`,
		},
		"all changes": {
			ask:  func(ctx context.Context, c *Client) (any, error) { return c.LockChanges(ctx, "", 0, 20) },
			want: "GET /check-out-lock-changes-storage?limit=20&offset=0 ", status: 200,
			body: `{"changes":[],"totalRecords":0}`, answer: `{[] 0}`,
		},
		"releases": {
			ask: func(ctx context.Context, c *Client) (any, error) {
				return c.LockChanges(ctx, schemas.ChangeRelease, 1, 2)
			},
			want: "GET /check-out-lock-changes-storage?kind=release&limit=2&offset=1 ", status: 200,
			body:   `{"changes":[{"id":"c","kind":"release","by":{"name":"Ann"},"reason":"stuck"}],"totalRecords":9}`,
			answer: `{[{c  release { Ann} stuck  [] [] <nil>}] 9}`,
		},
		"a change of the settings": {
			ask: func(ctx context.Context, c *Client) (any, error) {
				return c.Put(ctx, schemas.LockSettingsChange{Value: []byte(`{}`), Version: "7", Reason: "exams", ByName: "Ann"})
			},
			want: `PUT /check-out-lock-settings-storage {"value":{},"version":"7","reason":"exams","byName":"Ann"}`, status: 200,
			body: `{"version":"8"}`, answer: `{8 [] <nil>}`,
		},
		"an announcement of the environment": {
			ask: func(ctx context.Context, c *Client) (any, error) {
				state, err := c.Announce(ctx, schemas.LockEnvironment{Enabled: true, Version: "7"})
				return *state.EnvironmentOnMs, err
			},
			want: `POST /check-out-lock-settings-storage/environment {"enabled":true,"version":"7"}`, status: 200,
			body: `{"version":"8","environmentOnMs":60000}`, answer: `60000`,
		},
		"past check-outs": {
			ask: func(ctx context.Context, c *Client) (any, error) {
				return c.PastCheckOuts(ctx, schemas.HistoryFilter{
					UserBarcode: "u 1", ItemBarcode: "i", ServicePointID: "d", Outcome: "lent", From: "2026-03-01T10:00:00+01:00",
					Until: "2026-03-02T00:00:00Z", Offset: 50, Limit: 25,
				})
			},
			want: "GET /check-out-history-storage/check-outs?from=2026-03-01T10%3A00%3A00%2B01%3A00&itemBarcode=i" +
				"&limit=25&offset=50&outcome=lent" +
				"&servicePointId=d&until=2026-03-02T00%3A00%3A00Z&userBarcode=u+1 ", status: 200,
			body: `{"checkOuts":[],"more":true}`, answer: `{[] true}`,
		},
		"figures": {
			ask: func(ctx context.Context, c *Client) (any, error) {
				return c.Figures(ctx, schemas.FigureFilter{Minutes: 60})
			},
			want: "GET /check-out-history-storage/figures?minutes=60 ", status: 200,
			body: `{"date":"d","waiting":1,"held":2,"minutes":[{"date":"m","checkOuts":3}],"total":{"lent":4},` +
				`"causes":[{"count":5}]}`,
			answer: `{d 1 2 [{m {3 0 0 <nil> <nil> <nil>}}] {0 4 0 <nil> <nil> <nil>} [{   5}]}`,
		},
		"a report": {
			ask: func(ctx context.Context, c *Client) (any, error) {
				return nil, c.Report(ctx, schemas.CheckOutReport{
					CheckOuts: []schemas.PastCheckOut{{ID: "e", Outcome: "lent"}}, Waiting: 2,
				})
			},
			want: `POST /check-out-history-storage/check-outs {"waiting":2,` +
				`"checkOuts":[{"id":"e","outcome":"lent","tookMs":0}]}`,
			status: 204, body: ``, answer: `<nil>`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked string
			c := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				asked = r.Method + " " + r.URL.String() + " " + string(body)
				answer(w, tt.status, "", tt.body)
			})
			got, err := tt.ask(inTenant(t, "diku"), c)
			if err != nil || fmt.Sprint(got) != tt.answer {
				t.Errorf("got %v, %v, want %s", got, err, tt.answer)
			}
			if asked != tt.want {
				t.Errorf("asked %s\nwant  %s", asked, tt.want)
			}
		})
	}
}

func TestClient_RefusesAPageWithoutItsList(t *testing.T) {
	t.Parallel()
	c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, "", `{}`) })
	ctx := inTenant(t, "diku")
	_, locks := c.Locks(ctx, admin.LockFilter{})
	_, changes := c.LockChanges(ctx, "", 0, 1)
	_, past := c.PastCheckOuts(ctx, schemas.HistoryFilter{})
	_, figures := c.Figures(ctx, schemas.FigureFilter{Minutes: 1})
	for name, err := range map[string]error{
		"locks": locks, "changes": changes, "past check-outs": past, "figures": figures,
	} {
		if !fault.Is(err, fault.Internal) {
			t.Errorf("%s: got %v, want %s", name, err, fault.Internal)
		}
	}
}

func TestClient_ForceReleaseOfAMissingLock(t *testing.T) {
	t.Parallel()
	status, code := http.StatusNotFound, fault.NotFound
	c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, status, code, "no such lock") })
	ctx, why := inTenant(t, "diku"), schemas.ForcedRelease{Reason: "stuck"}
	if _, err := c.ForceRelease(ctx, someID, why); !fault.Is(err, fault.NotFound) {
		t.Errorf("gone: got %v, want %s", err, fault.NotFound)
	}
	code = "" // from a storage that does not know the path
	if _, err := c.ForceRelease(ctx, someID, why); !fault.Is(err, fault.Unavailable) {
		t.Errorf("an older storage: got %v, want %s", err, fault.Unavailable)
	}
	if _, err := c.ForceRelease(ctx, "../x", why); !fault.Is(err, fault.NotFound) {
		t.Errorf("no id at all: got %v, want %s", err, fault.NotFound)
	}
}
