package httpapi_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation/internal/admin"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web/auth"
)

const (
	staffPassword = "correct horse battery"
	lockID        = "6b3bd9a0-1a2b-4c3d-8e4f-5a6b7c8d9e0f"
	patronID      = "f4cae63d-1227-401e-92a8-000d1a700c85"
)

// adminFake is an Admin that notes what it was asked and who asked.
type adminFake struct {
	admin.Desk            // what no route asks
	mode       auth.Mode  // of the guard; empty is None
	host       string     // that requests are sent to; empty is localhost
	fault      error      // of every call but PatronID
	real       admin.Desk // asked instead, if set

	asked string
	by    string
}

func (o *adminFake) note(ctx context.Context, format string, args ...any) error {
	o.asked, o.by = fmt.Sprintf(format, args...), okapi.FromContext(ctx).UserName
	return o.fault
}

var shownSettings = settings.View{
	Enabled:          settings.Field[bool]{Value: true, Source: settings.FromTenant},
	LockTTLMs:        settings.Field[int]{Value: 3000, Source: settings.FromEnvironment},
	RetryIntervalsMs: settings.Field[[]int]{Value: []int{500}, Source: settings.FromEnvironment},
	Version:          "7", Timing: settings.Timing{LongestWaitMs: 500, MachinePatienceMs: 5000, LongestAnswerMs: 42000},
}

const shownSettingsJSON = `{"enabled":{"value":true,"source":"tenant"},"lockTtlMs":{"value":3000,` +
	`"source":"environment"},` +
	`"retryIntervalsMs":{"value":[500],"source":"environment"},"version":"7","longestWaitMs":500,` + shownTiming + `}`

const shownTiming = `"machinePatienceMs":5000,"longestAnswerMs":42000`

func (o *adminFake) Settings(ctx context.Context) (settings.View, error) {
	return shownSettings, o.note(ctx, "settings")
}

func (o *adminFake) ChangeSettings(ctx context.Context, c settings.Change) (settings.View, error) {
	return shownSettings, o.note(ctx, "change %t %v %v of %s", c.Own.Enabled != nil && *c.Own.Enabled, c.Own.TTL,
		c.Own.Waits, c.Version)
}

func (o *adminFake) Environment() settings.Environment {
	return settings.Environment{TTL: 3 * time.Second, Waits: []time.Duration{500 * time.Millisecond}}
}

func (o *adminFake) LockChanges(ctx context.Context, kind string, offset, limit int) (schemas.LockChanges, error) {
	return schemas.LockChanges{
		Changes: []schemas.LockChange{}, TotalRecords: 3,
	}, o.note(ctx, "changes %q %d %d", kind, offset, limit)
}

func (o *adminFake) Locks(ctx context.Context, f admin.LockFilter) (schemas.CheckoutLocks, error) {
	outdated := "any"
	if f.Outdated != nil {
		outdated = fmt.Sprint(*f.Outdated)
	}
	err := o.note(ctx, "locks %q %q %s %d %d", f.UserID, f.Holder, outdated, f.Offset, f.Limit)
	return schemas.CheckoutLocks{CheckoutLocks: []schemas.CheckoutLock{{ID: lockID}}, TotalRecords: 1}, err
}

func (o *adminFake) Release(ctx context.Context, lockID, reason string) (schemas.CheckoutLock, error) {
	return schemas.CheckoutLock{ID: lockID, AgeMs: 9}, o.note(ctx, "release %s %q", lockID, reason)
}

func (o *adminFake) PastCheckOuts(ctx context.Context, f schemas.HistoryFilter) (schemas.PastCheckOuts, error) {
	return schemas.PastCheckOuts{CheckOuts: []schemas.PastCheckOut{}, More: true}, o.note(ctx, "%+v", f)
}

func (o *adminFake) Figures(ctx context.Context, f schemas.FigureFilter) (schemas.Figures, error) {
	return schemas.Figures{Waiting: 4}, o.note(ctx, "figures %d", f.Minutes)
}

func (o *adminFake) Explain(ctx context.Context, req checkout.DryRunRequest) (checkout.Explanation, error) {
	return checkout.Explanation{
		Errors: []fault.Detail{{Message: "no"}},
	}, o.note(ctx, "explain %s %s %s", req.ItemBarcode, req.UserBarcode, req.ProxyUserBarcode)
}

func (o *adminFake) PatronID(_ context.Context, barcode string) (string, error) {
	if barcode != "P-1" {
		return "", fault.New(fault.NotFound, "Not found")
	}
	return patronID, nil
}

func TestAdminRoutes(t *testing.T) {
	t.Parallel()
	const (
		base    = "/circulation/check-out-"
		locks   = base + "locks"
		history = base + "history"
		oneLock = `{"checkoutLocks":[{"id":"` + lockID + `"`
	)
	tests := map[string]struct {
		method, path, body string
		asked, want        string // of the service; beginning of the answer
	}{
		"settings": {
			method: "GET", path: base + "lock-settings", body: ``, asked: `settings`, want: shownSettingsJSON,
		},
		"timing": {
			method: "GET", path: base + "timing", body: ``, asked: `settings`, want: `{"longestWaitMs":500,` + shownTiming + `}`,
		},
		"change of settings": {
			method: "PUT", path: base + "lock-settings", body: shownSettingsJSON, asked: `change true <nil> [] of 7`,
			want: shownSettingsJSON,
		},
		"changes": {
			method: "GET", path: base + "lock-changes", body: ``, asked: `changes "" 0 20`,
			want: `{"changes":[],"totalRecords":3}`,
		},
		"changes of a kind": {
			method: "GET", path: base + "lock-changes?kind=release&offset=40&limit=200", body: ``,
			asked: `changes "release" 40 200`, want: `{"changes":[]`,
		},
		"locks": {method: "GET", path: locks, body: ``, asked: `locks "" "" any 0 10`, want: oneLock},
		"locks, narrowed": {
			method: "GET", path: locks + "?userId=" + patronID + "&holder=desk%201&outdated=true&offset=1&limit=1000", body: ``,
			asked: `locks "` + patronID + `" "desk 1" true 1 1000`, want: oneLock,
		},
		"locks in force": {
			method: "GET", path: locks + "?outdated=false", body: ``, asked: `locks "" "" false 0 10`, want: oneLock,
		},
		"a patron's locks": {
			method: "GET", path: locks + "?userBarcode=P-1", body: ``, asked: `locks "` + patronID + `" "" any 0 10`,
			want: oneLock,
		},
		"release": {
			method: "POST", path: locks + "/" + strings.ToUpper(lockID) + "/release", body: `{"reason":"kiosk died"}`,
			asked: `release ` + lockID + ` "kiosk died"`, want: `{"id":"` + lockID + `"`,
		},
		// the service refuses it
		"release, no reason": {
			method: "POST", path: locks + "/" + lockID + "/release", body: `{}`, asked: `release ` + lockID + ` ""`,
			want: `{"id":`,
		},
		"history": {
			method: "GET", path: history, body: ``,
			asked: `{UserBarcode: ItemBarcode: ServicePointID: Outcome: Code: From: Until: Offset:0 Limit:50}`,
			want:  `{"checkOuts":[],"more":true}`,
		},
		"history, narrowed": {
			method: "GET",
			path: history + "?userBarcode=P-1&itemBarcode=D%202&servicePointId=desk&outcome=lent&from=2026-08-22T14:00:00Z" +
				"&until=2026-08-22T14:10:00.5%2B02:00&offset=10000&limit=200",
			body: ``,
			asked: `{UserBarcode:P-1 ItemBarcode:D 2 ServicePointID:desk Outcome:lent Code: From:2026-08-22T14:00:00Z ` +
				`Until:2026-08-22T14:10:00.5+02:00 Offset:10000 Limit:200}`,
			want: `{"checkOuts"`,
		},
		"figures": {
			method: "GET", path: base + "figures", body: ``, asked: `figures 60`, want: `{"date":"","waiting":4`,
		},
		"figures of a day": {
			method: "GET", path: base + "figures?minutes=1440", body: ``, asked: `figures 1440`, want: `{"date"`,
		},
		"explanation": {
			method: "POST", path: base + "explanation", body: `{"itemBarcode":"i","userBarcode":"u","proxyUserBarcode":"p"}`,
			asked: `explain i u p`, want: `{"wouldLend":false,"errors":[{"message":"no","parameters":[]}]}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &backend{}
			status, _, answer := b.send(t, tt.method, tt.path, tt.body)
			if status != http.StatusOK || !strings.HasPrefix(answer, tt.want) {
				t.Errorf("got %d %s, want 200 %s", status, answer, tt.want)
			}
			if b.adminFake.asked != tt.asked {
				t.Errorf("asked for %s, want %s", b.adminFake.asked, tt.asked)
			}
		})
	}
}

func TestAdminRoutes_DescribeABadRequest(t *testing.T) {
	t.Parallel()
	const (
		base    = "/circulation/check-out-"
		locks   = base + "locks"
		history = base + "history"
	)
	tests := map[string]struct {
		method, path, body string
		status             int
		want               []string
	}{
		"settings, no JSON": {
			method: "PUT", path: base + "lock-settings", body: `enabled`, status: 400, want: []string{"not valid JSON"},
		},
		"changes, all wrong": {
			method: "GET", path: base + "lock-changes?kind=&offset=x&limit=1.5", body: ``, status: 422,
			want: []string{
				`"kind must have 1 to 255 characters"`, `"offset must be an integer from 0`, `{"key":"limit","value":"1.5"}`,
			},
		},
		"locks, all wrong": {
			method: "GET", path: locks + "?userId=&holder=&outdated=yes&offset=a&limit=99999999999999999999&userBarcode=",
			body: ``, status: 422,
			want: []string{
				"userId must have", "holder must have", `"outdated must be true or false"`, "offset must be", "limit must be",
				"userBarcode must have",
			},
		},
		"locks, no such patron": {
			method: "GET", path: locks + "?userBarcode=P-2", body: ``, status: 422,
			want: []string{`"userBarcode is no patron's barcode"`, `{"key":"userBarcode","value":"P-2"}`},
		},
		"locks, named twice": {
			method: "GET", path: locks + "?userBarcode=P-1&userId=" + patronID, body: ``, status: 422,
			want: []string{"userBarcode must not be given together with userId"},
		},
		"locks of version 15": {
			method: "GET", path: locks + "?userId=f4cae63d-1227-f01e-92a8-000d1a700c85", body: ``, status: 422,
			want: []string{"userId must be a UUID, of the versions 1 to 5"},
		},
		"release, an id of none": {
			method: "POST", path: locks + "/all/release", body: `{"reason":"x"}`, status: 400,
			want: []string{"The id of the lock must be a UUID"},
		},
		"release, no JSON": {
			method: "POST", path: locks + "/" + lockID + "/release", body: `reason=x`, status: 400,
			want: []string{"not valid JSON"},
		},
		"release, no body": {
			method: "POST", path: locks + "/" + lockID + "/release", body: ``, status: 400, want: []string{"The body is empty"},
		},
		"release, reason a list": {
			method: "POST", path: locks + "/" + lockID + "/release", body: `{"reason":["x"]}`, status: 400,
			want: []string{"reason must be of type string, not array"},
		},
		"history, all wrong": {
			method: "GET", path: history + "?userBarcode=&itemBarcode=&servicePointId=&outcome=x&from=&until=&offset=&limit=x",
			body: ``, status: 422,
			want: []string{
				"userBarcode must", "itemBarcode must", "servicePointId must", "outcome must be lent or", "from must",
				"until must", "offset must", "limit must",
			},
		},
		"figures in words": {
			method: "GET", path: base + "figures?minutes=an+hour", body: ``, status: 422,
			want: []string{`"minutes must be an integer from 1 to 1440"`, `"value":"an hour"`},
		},
		"settings, parameters": {
			method: "GET", path: base + "lock-settings?enabled=true", body: ``, status: 422,
			want: []string{"enabled is unknown; no parameters are allowed"},
		},
		"change, parameters": {
			method: "PUT", path: base + "lock-settings?enabled=true", body: shownSettingsJSON, status: 422,
			want: []string{"enabled is unknown"},
		},
		"changes, a typo": {
			method: "GET", path: base + "lock-changes?kinds=release", body: ``, status: 422,
			want: []string{"kinds is unknown; allowed are kind, offset, limit"},
		},
		"locks, a typo": {
			method: "GET", path: locks + "?user=" + patronID, body: ``, status: 422,
			want: []string{"user is unknown; allowed are userId, holder, outdated, offset, limit, userBarcode"},
		},
		"release, parameters": {
			method: "POST", path: locks + "/" + lockID + "/release?reason=x", body: `{"reason":"x"}`, status: 422,
			want: []string{"reason is unknown"},
		},
		"history, a typo": {
			method: "GET", path: history + "?userbarcode=P-1", body: ``, status: 422,
			want: []string{
				"userbarcode is unknown; allowed are userBarcode, itemBarcode, servicePointId, outcome, code, from, until, " +
					"offset, limit",
			},
		},
		"history, two limits": {
			method: "GET", path: history + "?limit=5&limit=6", body: ``, status: 422,
			want: []string{"limit must be given once, not 2 times"},
		},
		"figures, a typo": {
			method: "GET", path: base + "figures?minuts=5", body: ``, status: 422,
			want: []string{"minuts is unknown; allowed are minutes"},
		},
		"explanation, parameters": {
			method: "POST", path: base + "explanation?itemBarcode=i", body: `{"itemBarcode":"i","userBarcode":"u"}`, status: 422,
			want: []string{"itemBarcode is unknown"},
		},
		"explanation, a number": {
			method: "POST", path: base + "explanation", body: `{"itemBarcode":1}`, status: 400,
			want: []string{"itemBarcode must be of type string"},
		},
		"explanation of nothing": {
			method: "POST", path: base + "explanation", body: `{}`, status: 422,
			want: []string{"itemBarcode is required", "userBarcode is required"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &backend{}
			status, _, answer := b.send(t, tt.method, tt.path, tt.body)
			if status != tt.status || b.adminFake.asked != "" {
				t.Errorf("got %d %s, want %d; the service was asked for %q", status, answer, tt.status, b.adminFake.asked)
			}
			for _, want := range tt.want {
				if !strings.Contains(answer, want) {
					t.Errorf("%s is missing in %s", want, answer)
				}
			}
		})
	}
}

// unread is a storage that must not be asked.
type unread struct {
	admin.Storage
	admin.Settings
}

func TestAdminRoutes_AnswerRefusals(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ method, path, body, want string }{
		"settings, a wrong type": {
			method: "PUT", path: "lock-settings", body: `{"enabled":"yes"}`, want: "enabled must be true or false",
		},
		"settings, no object": {
			method: "PUT", path: "lock-settings", body: `true`, want: "The body must be a JSON object",
		},
		"too many changes": {
			method: "GET", path: "lock-changes?limit=201", body: ``, want: "limit must be an integer from 1 to 200",
		},
		"too many locks": {
			method: "GET", path: "locks?limit=1001", body: ``, want: "limit must be an integer from 1 to 1000",
		},
		"locks of no patron": {method: "GET", path: "locks?userId=me", body: ``, want: "userId must be a UUID"},
		"locks of a barcode": {
			method: "GET", path: "locks?userBarcode=%00", body: ``, want: "userBarcode must be UTF-8 without NUL",
		},
		"release, no reason": {
			method: "POST", path: "locks/" + lockID + "/release", body: `{}`, want: "reason is required",
		},
		"release, a blank one": {
			method: "POST", path: "locks/" + lockID + "/release", body: `{"reason":" "}`, want: "reason is required",
		},
		"the end of the history": {
			method: "GET", path: "history?offset=10001&limit=0", body: ``, want: "offset must be an integer from 0 to 10000",
		},
		"figures of a week": {
			method: "GET", path: "figures?minutes=10080", body: ``, want: "minutes must be an integer from 1 to 1440",
		},
	}
	service := admin.NewService(unread{}, unread{}, settings.Environment{}, nil, slog.New(slog.DiscardHandler))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &backend{adminFake: adminFake{real: service}}
			status, header, answer := b.send(t, tt.method, "/circulation/check-out-"+tt.path, tt.body)
			if status != http.StatusUnprocessableEntity || header.Get(fault.Header) != string(fault.Invalid) ||
				!strings.Contains(answer, tt.want) {
				t.Errorf("got %d %s, want 422 with %s", status, answer, tt.want)
			}
		})
	}
}

func TestAdminRoutes_KeepTheStatusOfFaults(t *testing.T) {
	t.Parallel()
	for _, g := range guarded {
		for _, code := range []fault.Code{
			fault.Unavailable, fault.Conflict, fault.Internal, fault.Timeout, fault.Invalid, fault.NotFound,
		} {
			b := &backend{adminFake: adminFake{fault: fault.New(code, "x")}}
			status, header, _ := b.send(t, g.method, g.path, g.body)
			if status != fault.Status(code) || header.Get(fault.Header) != string(code) {
				t.Errorf("%s %s: got %d %s, want %d %s", g.method, g.path, status, header.Get(fault.Header), fault.Status(code),
					code)
			}
		}
	}
}
