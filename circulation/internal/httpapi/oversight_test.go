package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"checkoutlock/circulation/internal/auth"
	"checkoutlock/circulation/internal/checkout"
	"checkoutlock/circulation/internal/oversight"
	"checkoutlock/circulation/internal/settings"
	"checkoutlock/schemas"
	"checkoutlock/schemas/call"
	"checkoutlock/schemas/fault"
)

const (
	staffPassword = "correct horse battery"
	lockID        = "6b3bd9a0-1a2b-4c3d-8e4f-5a6b7c8d9e0f"
	patronID      = "f4cae63d-1227-401e-92a8-000d1a700c85"
)

// overseer is an oversight that notes what it was asked, and by whom.
type overseer struct {
	mode  auth.Mode // of the guard; empty is None
	host  string    // that requests are sent to; empty is localhost
	fault error     // of every call but PatronID

	asked string
	by    string
}

func (o *overseer) note(ctx context.Context, format string, args ...any) error {
	o.asked, o.by = fmt.Sprintf(format, args...), call.FromContext(ctx).UserName
	return o.fault
}

var shownSettings = settings.View{
	Enabled:          settings.Field[bool]{Value: true, Source: settings.FromTenant},
	LockTTLMs:        settings.Field[int]{Value: 3000, Source: settings.FromEnvironment},
	RetryIntervalsMs: settings.Field[[]int]{Value: []int{500}, Source: settings.FromEnvironment},
	Version:          "7", LongestWaitMs: 500,
}

const shownSettingsJSON = `{"enabled":{"value":true,"source":"tenant"},"lockTtlMs":{"value":3000,"source":"environment"},` +
	`"retryIntervalsMs":{"value":[500],"source":"environment"},"version":"7","longestWaitMs":500}`

func (o *overseer) Settings(ctx context.Context) (settings.View, error) {
	return shownSettings, o.note(ctx, "settings")
}

func (o *overseer) ChangeSettings(ctx context.Context, body json.RawMessage) (settings.View, error) {
	return shownSettings, o.note(ctx, "change %s", body)
}

func (o *overseer) Changes(ctx context.Context, kind string, offset, limit int) (schemas.LockChanges, error) {
	return schemas.LockChanges{Changes: []schemas.LockChange{}, TotalRecords: 3}, o.note(ctx, "changes %q %d %d", kind, offset, limit)
}

func (o *overseer) Locks(ctx context.Context, f oversight.LockFilter) (schemas.CheckoutLocks, error) {
	outdated := "any"
	if f.Outdated != nil {
		outdated = fmt.Sprint(*f.Outdated)
	}
	err := o.note(ctx, "locks %q %q %s %d %d", f.UserID, f.Holder, outdated, f.Offset, f.Limit)
	return schemas.CheckoutLocks{CheckoutLocks: []schemas.CheckoutLock{{ID: lockID}}, TotalRecords: 1}, err
}

func (o *overseer) Release(ctx context.Context, lockID, reason string) (schemas.CheckoutLock, error) {
	return schemas.CheckoutLock{ID: lockID, AgeMs: 9}, o.note(ctx, "release %s %q", lockID, reason)
}

func (o *overseer) CheckOuts(ctx context.Context, f schemas.HistoryFilter) (schemas.PastCheckOuts, error) {
	return schemas.PastCheckOuts{CheckOuts: []schemas.PastCheckOut{}, More: true}, o.note(ctx, "%+v", f)
}

func (o *overseer) Figures(ctx context.Context, minutes int) (schemas.Figures, error) {
	return schemas.Figures{Waiting: 4}, o.note(ctx, "figures %d", minutes)
}

func (o *overseer) Explain(ctx context.Context, req checkout.DryRunRequest) (checkout.Explanation, error) {
	return checkout.Explanation{Errors: []fault.Detail{{Message: "no"}}}, o.note(ctx, "explain %s %s %s", req.ItemBarcode, req.UserBarcode, req.ProxyUserBarcode)
}

func (o *overseer) PatronID(_ context.Context, barcode string) (string, error) {
	if barcode != "P-1" {
		return "", fault.New(fault.NotFound, "Not found")
	}
	return patronID, nil
}

func TestStaffsEndpointsAskAndAnswer(t *testing.T) {
	t.Parallel()
	const (
		base    = "/circulation/check-out-"
		locks   = base + "locks"
		history = base + "history"
		oneLock = `{"checkoutLocks":[{"id":"` + lockID + `"`
	)
	tests := map[string]struct {
		method, path, body string
		asked, want        string // of oversight; beginning of the answer
	}{
		"settings":            {"GET", base + "lock-settings", ``, `settings`, shownSettingsJSON},
		"change of settings":  {"PUT", base + "lock-settings", shownSettingsJSON, `change ` + shownSettingsJSON, shownSettingsJSON},
		"changes":             {"GET", base + "lock-changes", ``, `changes "" 0 20`, `{"changes":[],"totalRecords":3}`},
		"changes of a kind":   {"GET", base + "lock-changes?kind=release&offset=40&limit=200", ``, `changes "release" 40 200`, `{"changes":[]`},
		"locks":               {"GET", locks, ``, `locks "" "" any 0 10`, oneLock},
		"locks, narrowed":     {"GET", locks + "?userId=" + strings.ToUpper(patronID) + "&holder=desk%201&outdated=true&offset=1&limit=1000", ``, `locks "` + patronID + `" "desk 1" true 1 1000`, oneLock},
		"locks in force":      {"GET", locks + "?outdated=false", ``, `locks "" "" false 0 10`, oneLock},
		"a patron's locks":    {"GET", locks + "?userBarcode=P-1", ``, `locks "` + patronID + `" "" any 0 10`, oneLock},
		"release":             {"POST", locks + "/" + strings.ToUpper(lockID) + "/release", `{"reason":"kiosk died"}`, `release ` + lockID + ` "kiosk died"`, `{"id":"` + lockID + `"`},
		"release, no reason":  {"POST", locks + "/" + lockID + "/release", `{}`, `release ` + lockID + ` ""`, `{"id":`}, // oversight refuses it
		"history":             {"GET", history, ``, `{UserBarcode: ItemBarcode: Outcome: From: Until: Offset:0 Limit:50}`, `{"checkOuts":[],"more":true}`},
		"history, narrowed":   {"GET", history + "?userBarcode=P-1&itemBarcode=D%202&outcome=lent&from=2026-08-22T14:00:00Z&until=2026-08-22T14:10:00.5%2B02:00&offset=10000&limit=200", ``, `{UserBarcode:P-1 ItemBarcode:D 2 Outcome:lent From:2026-08-22T14:00:00Z Until:2026-08-22T14:10:00.5+02:00 Offset:10000 Limit:200}`, `{"checkOuts"`},
		"figures":             {"GET", base + "figures", ``, `figures 60`, `{"date":"","waiting":4`},
		"figures of a day":    {"GET", base + "figures?minutes=1440", ``, `figures 1440`, `{"date"`},
		"explanation":         {"POST", base + "explanation", `{"itemBarcode":"i","userBarcode":"u","proxyUserBarcode":"p"}`, `explain i u p`, `{"wouldLend":false,"errors":[{"message":"no","parameters":[]}]}`},
		"explanation, nobody": {"POST", base + "explanation", `{}`, `explain   `, `{"wouldLend":false`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &backend{}
			status, _, answer := b.send(t, tt.method, tt.path, tt.body)
			if status != http.StatusOK || !strings.HasPrefix(answer, tt.want) {
				t.Errorf("got %d %s, want 200 %s", status, answer, tt.want)
			}
			if b.overseer.asked != tt.asked {
				t.Errorf("asked for %s, want %s", b.overseer.asked, tt.asked)
			}
		})
	}
}

func TestWhatStaffAskWronglyIsNamed(t *testing.T) {
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
		"settings, no JSON":       {"PUT", base + "lock-settings", `enabled`, 400, []string{"not valid JSON"}},
		"changes, another kind":   {"GET", base + "lock-changes?kind=loans", ``, 422, []string{`"kind must be one of settings, release"`, `{"key":"kind","value":"loans"}`}},
		"changes, no kind":        {"GET", base + "lock-changes?kind=", ``, 422, []string{"kind must be one of"}},
		"changes, all wrong":      {"GET", base + "lock-changes?kind=x&offset=-1&limit=201", ``, 422, []string{"kind must be", "offset must be an integer from 0 to", "limit must be an integer from 1 to 200"}},
		"locks, all wrong":        {"GET", locks + "?userId=x&holder=&outdated=yes&offset=a&limit=0&userBarcode=", ``, 422, []string{"userId must be a UUID", "holder must have 1 to 100 characters", "outdated must be true or false", "offset must be an integer from 0", "limit must be an integer from 1 to 1000", "userBarcode must have 1 to 255 characters"}},
		"locks, no such patron":   {"GET", locks + "?userBarcode=P-2", ``, 422, []string{`"userBarcode must be a patron's"`, `{"key":"userBarcode","value":"P-2"}`}},
		"locks, named twice":      {"GET", locks + "?userBarcode=P-1&userId=" + patronID, ``, 422, []string{"userBarcode must not be given together with userId"}},
		"locks, no text":          {"GET", locks + "?holder=%ff&userBarcode=%00", ``, 422, []string{"holder must be UTF-8 without NUL", "userBarcode must be UTF-8 without NUL"}},
		"release, an id of none":  {"POST", locks + "/all/release", `{"reason":"x"}`, 400, []string{"The id of the lock must be a UUID"}},
		"release, no JSON":        {"POST", locks + "/" + lockID + "/release", `reason=x`, 400, []string{"not valid JSON"}},
		"release, no body":        {"POST", locks + "/" + lockID + "/release", ``, 400, []string{"The body is empty"}},
		"release, reason a list":  {"POST", locks + "/" + lockID + "/release", `{"reason":["x"]}`, 400, []string{"reason must be of type string, not array"}},
		"history, all wrong":      {"GET", history + "?userBarcode=&itemBarcode=&outcome=&from=14:03&until=2026-08-22&offset=10001&limit=201", ``, 422, []string{"userBarcode must have", "itemBarcode must have", "outcome must have", "from must be a date and time as in RFC 3339", "until must be a date and time", "offset must be an integer from 0 to 10000", "limit must be an integer from 1 to 200"}},
		"history, a lost plus":    {"GET", history + "?from=2026-08-22T14:00:00+02:00", ``, 422, []string{"from must be", `"value":"2026-08-22T14:00:00 02:00"`}},
		"history, a long barcode": {"GET", history + "?userBarcode=" + strings.Repeat("9", 256), ``, 422, []string{"userBarcode must have 1 to 255 characters"}},
		"figures of no minute":    {"GET", base + "figures?minutes=0", ``, 422, []string{"minutes must be an integer from 1 to 1440"}},
		"figures of a week":       {"GET", base + "figures?minutes=10080", ``, 422, []string{"minutes must be an integer from 1 to 1440"}},
		"figures in words":        {"GET", base + "figures?minutes=an+hour", ``, 422, []string{`"value":"an hour"`}},
		"explanation, a number":   {"POST", base + "explanation", `{"itemBarcode":1}`, 400, []string{"itemBarcode must be of type string"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &backend{}
			status, _, answer := b.send(t, tt.method, tt.path, tt.body)
			if status != tt.status || b.overseer.asked != "" {
				t.Errorf("got %d %s, want %d; oversight was asked for %q", status, answer, tt.status, b.overseer.asked)
			}
			for _, want := range tt.want {
				if !strings.Contains(answer, want) {
					t.Errorf("%s is missing in %s", want, answer)
				}
			}
			if n := strings.Count(answer, `"message"`); tt.status == http.StatusUnprocessableEntity && n < len(tt.want)-1 {
				t.Errorf("%d things are named, want each: %s", n, answer)
			}
		})
	}
}

// guarded are staff's endpoints with their permissions, as docs/api.md has them.
var guarded = []struct{ method, path, body, permission string }{
	{"GET", "/circulation/check-out-lock-settings", ``, "circulation.check-out-lock-settings.item.get"},
	{"PUT", "/circulation/check-out-lock-settings", `{}`, "circulation.check-out-lock-settings.item.put"},
	{"GET", "/circulation/check-out-lock-changes", ``, "circulation.check-out-lock-changes.collection.get"},
	{"GET", "/circulation/check-out-locks", ``, "circulation.check-out-locks.collection.get"},
	{"POST", "/circulation/check-out-locks/" + lockID + "/release", `{"reason":"x"}`, "circulation.check-out-locks.item.release.post"},
	{"GET", "/circulation/check-out-history", ``, "circulation.check-out-history.collection.get"},
	{"GET", "/circulation/check-out-figures", ``, "circulation.check-out-figures.get"},
	{"POST", "/circulation/check-out-explanation", `{}`, "circulation.check-out-explanation.post"},
}

func TestStaffsEndpointsAreForThoseWhoMay(t *testing.T) {
	t.Parallel()
	others := []string{}
	for _, g := range guarded {
		others = append(others, g.permission)
	}
	for i, g := range guarded {
		allOthers := append(append([]string{}, others[:i]...), others[i+1:]...)
		tests := map[string]struct {
			b      backend
			status int
			want   string
		}{
			"granted":           {backend{overseer: overseer{mode: auth.Gateway}, extra: granted(g.permission)}, 200, ""},
			"granted all else":  {backend{overseer: overseer{mode: auth.Gateway}, extra: granted(allOthers...)}, 403, "Access requires permission: " + g.permission},
			"granted nothing":   {backend{overseer: overseer{mode: auth.Gateway}}, 403, "Access requires permission: " + g.permission},
			"the password":      {backend{overseer: overseer{mode: auth.Basic}, extra: signedIn("ann", staffPassword)}, 200, ""},
			"a wrong password":  {backend{overseer: overseer{mode: auth.Basic}, extra: signedIn("ann", "correct horse")}, 401, "The password is wrong"},
			"no password":       {backend{overseer: overseer{mode: auth.Basic}, extra: granted(g.permission)}, 401, "Sign in"},
			"this machine":      {backend{}, 200, ""},
			"another host name": {backend{overseer: overseer{host: "rebound.example"}}, 403, "STAFF_AUTH=none"},
		}
		for name, tt := range tests {
			t.Run(g.permission+" "+name, func(t *testing.T) {
				t.Parallel()
				status, header, answer := tt.b.send(t, g.method, g.path, g.body)
				if status != tt.status || !strings.Contains(answer, tt.want) {
					t.Errorf("got %d %s, want %d with %s", status, answer, tt.status, tt.want)
				}
				if challenged := header.Get("WWW-Authenticate") != ""; challenged != (tt.status == http.StatusUnauthorized) {
					t.Errorf("asked to sign in: %t with status %d", challenged, status)
				}
				if reached := tt.b.overseer.asked != ""; reached != (tt.status == http.StatusOK) {
					t.Errorf("oversight was asked for %q with status %d", tt.b.overseer.asked, status)
				}
				if name == "the password" && tt.b.by != "ann" {
					t.Errorf("done by %q, want ann", tt.b.by)
				}
			})
		}
	}
}

func TestPagesOfOtherSitesChangeNothing(t *testing.T) {
	t.Parallel()
	for _, g := range guarded {
		if g.method == http.MethodGet {
			continue
		}
		for _, mode := range []auth.Mode{auth.Gateway, auth.Basic, auth.None} {
			extra := signedIn("ann", staffPassword)
			extra[schemas.PermissionsHeader] = granted(g.permission)[schemas.PermissionsHeader]
			extra["Sec-Fetch-Site"] = []string{"cross-site"}
			b := &backend{overseer: overseer{mode: mode}, extra: extra}
			status, _, answer := b.send(t, g.method, g.path, g.body)
			if status != http.StatusForbidden || !strings.Contains(answer, "another site") || b.overseer.asked != "" {
				t.Errorf("%s %s, %s: got %d %s, want 403", g.method, g.path, mode, status, answer)
			}
		}
	}
}

func TestFaultsOfOversightKeepTheirStatus(t *testing.T) {
	t.Parallel()
	for _, g := range guarded {
		for _, code := range []fault.Code{fault.Unavailable, fault.Conflict, fault.Internal, fault.Timeout, fault.Invalid} {
			b := &backend{overseer: overseer{fault: fault.New(code, "x")}}
			status, header, _ := b.send(t, g.method, g.path, g.body)
			if status != fault.Status(code) || header.Get(fault.Header) != string(code) {
				t.Errorf("%s %s: got %d %s, want %d %s", g.method, g.path, status, header.Get(fault.Header), fault.Status(code), code)
			}
		}
	}
	b := &backend{overseer: overseer{fault: fault.New(fault.NotFound, "Not found")}}
	status, _, answer := b.send(t, "POST", "/circulation/check-out-locks/"+lockID+"/release", `{"reason":"x"}`)
	if status != http.StatusNotFound || !strings.Contains(answer, "There is no lock with the id "+lockID) {
		t.Errorf("got %d %s, want 404", status, answer)
	}
}

func granted(permissions ...string) http.Header {
	list, _ := json.Marshal(permissions) // strings can always be written
	return http.Header{schemas.PermissionsHeader: {string(list)}}
}

func signedIn(name, password string) http.Header {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(name, password)
	return r.Header
}
