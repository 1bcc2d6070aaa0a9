package httpapi_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

const (
	settingsPath = "/check-out-lock-settings-storage"
	changesPath  = "/check-out-lock-changes-storage"
)

// newChangeAPI is the locks, their settings and who changed what, on a tenant of
// its own.
func newChangeAPI(t *testing.T) *lockAPI {
	t.Helper()
	db, id := pgtest.New(t)
	line := newWaitingLine()
	locks := lock.NewService(postgres.NewLockStore(db), line, slog.New(slog.NewTextHandler(t.Output(), nil)))
	return &lockAPI{newAPI(t, changeRoutes(locks, db)), locks, line, db, id}
}

func changeRoutes(locks *lock.Service, db *postgres.DB) []web.Route {
	return slices.Concat(
		httpapi.CheckoutLockRoutes(locks, defaultTTL),
		httpapi.LockSettingsRoutes(postgres.NewLockSettingsStore(db)),
		httpapi.LockChangeRoutes(postgres.NewLockChangeStore(db)),
	)
}

// at sends a request of the API's own tenant to any path.
func (a *lockAPI) at(method, target, body string, headers map[string]string) (status int, answer string) {
	all := map[string]string{okapi.TenantHeader: a.tenant.String()}
	for name, value := range headers {
		all[name] = value
	}
	w := a.call(method, target, body, all)
	return w.Code, w.Body.String()
}

// changes reads the page that query names.
func (a *lockAPI) changes(t *testing.T, query string) schemas.LockChanges {
	t.Helper()
	status, body := a.at(http.MethodGet, changesPath+query, "", nil)
	var page schemas.LockChanges
	if err := json.Unmarshal([]byte(body), &page); status != http.StatusOK || err != nil || page.Changes == nil {
		t.Fatalf("GET %s: %d %s, %v", query, status, body, err)
	}
	return page
}

func TestForcedRelease_FreesTheLockForAWaiter(t *testing.T) {
	t.Parallel()
	a := serve(t, newChangeAPI(t))
	ann := uuid.New()
	held := a.mustPost(t, ann, `,"ttlMs":60000,"requestId":"`+uuid.NewString()+`"`)
	waits := time.Now()
	waiter := a.send(t.Context(), ann, `,"ttlMs":60000,"waitMs":10000`)
	a.line.untilWaiting(t, 1)

	staff := uuid.NewString()
	w := a.do(http.MethodPost, "/"+held.ID+"/forced-release",
		`{"reason":" the machine\r\nis off ","byName":"Ann Äh","more":1}`,
		map[string]string{okapi.UserIDHeader: staff, okapi.RequestIDHeader: "1/release"})
	answered := time.Now()
	got := decode[schemas.CheckoutLock](t, w)
	if w.Code != http.StatusOK || ageless(got) != ageless(held) || got.AgeMs < held.AgeMs || held.OkapiRequestID == "" {
		t.Errorf("got %d %s, want the lock as it was, %+v", w.Code, w.Body, held)
	}
	next := <-waiter
	if l := next.lock(t); l.ID == held.ID {
		t.Errorf("the waiter got %+v, want a new lock", l)
	}
	if took := time.Since(waits); took >= 10*time.Second {
		t.Errorf("the waiter got no notice: it waited for %s", took)
	}
	wantText(t, "the holder's release", a.do(http.MethodDelete, "/"+held.ID, ""), 404, "Lock not found")
	wantText(t, "again", a.do(http.MethodPost, "/"+held.ID+"/forced-release", `{"reason":"again"}`), 404, "Lock not found")

	page := a.changes(t, "")
	if page.TotalRecords != 1 || len(page.Changes) != 1 {
		t.Fatalf("got %+v, want one change", page)
	}
	c := page.Changes[0]
	date, err := time.Parse(schemas.FolioTime, c.Date)
	if err != nil || uuid.Validate(c.ID) != nil || date.Sub(answered).Abs() > time.Minute {
		t.Errorf("noted as %s on %s, want now", c.ID, c.Date)
	}
	if c.Kind != "release" || c.By != (schemas.ChangedBy{UserID: staff, Name: "Ann Äh"}) ||
		c.Reason != "the machine\nis off" ||
		c.RequestID != "1/release" || c.Before != nil || c.After != nil || c.Lock == nil ||
		ageless(*c.Lock) != ageless(held) {
		t.Errorf("noted %+v with %+v, want who, why and %+v", c, c.Lock, held)
	}
}

func TestForcedRelease_RefusesBadRequests(t *testing.T) {
	t.Parallel()
	a := newChangeAPI(t)
	held := a.mustPost(t, uuid.New(), `,"ttlMs":60000`)
	for name, tt := range map[string]struct {
		id, body string
		status   int
		want     []string
	}{
		"no body": {id: held.ID, body: "", status: 400, want: []string{"empty"}},
		"no JSON": {id: held.ID, body: "reason=x", status: 400, want: []string{"not valid JSON"}},
		"a list":  {id: held.ID, body: "[]", status: 400, want: []string{"of type object, not array"}},
		"no reason": {
			id: held.ID, body: `{}`, status: 422, want: []string{`"key":"reason"`, "reason is required"},
		},
		"null":           {id: held.ID, body: `null`, status: 422, want: []string{`"key":"reason"`}},
		"null as reason": {id: held.ID, body: `{"reason":null}`, status: 422, want: []string{`"key":"reason"`}},
		"a blank reason": {
			id: held.ID, body: `{"reason":" \t\r\n "}`, status: 422, want: []string{`"key":"reason"`, "reason is required"},
		},
		"a number as reason": {
			id: held.ID, body: `{"reason":7}`, status: 400, want: []string{"reason must be of type string, not number"},
		},
		"too long a reason": {
			id: held.ID, body: `{"reason":"` + strings.Repeat("ü", 501) + `"}`, status: 422,
			want: []string{`"key":"reason"`, "at most 500 characters, not 501"},
		},
		"a reason with a NUL": {id: held.ID, body: `{"reason":"a\u0000b"}`, status: 422, want: []string{`\\u0000`}},
		"half a character":    {id: held.ID, body: `{"reason":"a\ud83d"}`, status: 422, want: []string{`\\ud83d`}},
		"a reason with a bell": {
			id: held.ID, body: `{"reason":"a\u0007b"}`, status: 422, want: []string{`"key":"reason"`, "control characters"},
		},
		"too long a name": {
			id: held.ID, body: `{"reason":"x","byName":"` + strings.Repeat("ü", 101) + `"}`, status: 422,
			want: []string{`"key":"byName"`, "100"},
		},
		"a name of two lines": {
			id: held.ID, body: `{"reason":"x","byName":"a\nb"}`, status: 422, want: []string{`"key":"byName"`},
		},
		"all of it": {
			id: held.ID, body: `{"reason":"","byName":"a\nb"}`, status: 422, want: []string{`"key":"byName"`, `"key":"reason"`},
		},
		"an id that is none": {id: "abcd", body: `{"reason":"x"}`, status: 400, want: []string{"Invalid lock id"}},
		"an id of no lock":   {id: uuid.NewString(), body: `{"reason":"x"}`, status: 404, want: []string{"Lock not found"}},
	} {
		w := a.do(http.MethodPost, "/"+tt.id+"/forced-release", tt.body)
		wantStatus(t, name, w, tt.status)
		for _, want := range tt.want {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %q is missing in %s", name, want, w.Body)
			}
		}
	}
	if got := a.changes(t, ""); got.TotalRecords != 0 {
		t.Errorf("bad requests noted %+v", got)
	}
	wantStatus(t, "the lock is still there", a.do(http.MethodGet, "/"+held.ID, ""), 200)
	wantStatus(t, "no tenant", a.do(http.MethodPost, "/"+held.ID+"/forced-release", `{"reason":"x"}`,
		map[string]string{okapi.TenantHeader: ""}), 400)
}

func TestForcedRelease_ReleasesAnOutdatedLock(t *testing.T) {
	t.Parallel()
	a := newChangeAPI(t)
	dead := a.mustPost(t, uuid.New(), `,"ttlMs":0`)
	w := a.do(http.MethodPost, "/"+dead.ID+"/forced-release", `{"reason":"`+strings.Repeat("ü", 500)+`"}`)
	if got := decode[schemas.CheckoutLock](t, w); w.Code != http.StatusOK || !got.Outdated || got.ID != dead.ID {
		t.Errorf("got %d %s, want the outdated lock", w.Code, w.Body)
	}
	if c := a.changes(t, "?kind=release").Changes[0]; !c.Lock.Outdated || c.By != (schemas.ChangedBy{}) {
		t.Errorf("noted %+v with %+v, want an outdated lock, by an unknown user", c, c.Lock)
	}
}

func TestLockChangeRoutes_ListAChangeOfSettings(t *testing.T) {
	t.Parallel()
	a := newChangeAPI(t)
	put := func(body string) (int, string) { return a.at(http.MethodPut, settingsPath, body, nil) }
	for name, tt := range map[string]struct{ more, want string }{
		"too long a reason":      {`"reason":"` + strings.Repeat("ü", 501) + `"`, "reason must have at most 500 characters"},
		"an escape in a reason":  {`"reason":"\u001b[31m"`, "reason must have no control characters"},
		"too long a name":        {`"byName":"` + strings.Repeat("ü", 101) + `"`, "byName must have at most 100 characters"},
		"a name of two lines":    {`"byName":"a\nb"`, "byName"},
		"a reason and a version": {`"reason":"\u0001","version":"77"`, "reason"},
	} {
		if status, body := put(`{"value":{"lockTtl":300},` + tt.more + `}`); status != 422 ||
			!strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s, want 422 with %q", name, status, body, tt.want)
		}
	}
	if got := a.changes(t, ""); got.TotalRecords != 0 {
		t.Fatalf("refused changes are listed: %+v", got)
	}
	for i, more := range []string{`,"reason":" Monday ","byName":" Ann "`, ``, `,"reason":null,"byName":null`} {
		if status, body := put(fmt.Sprintf(`{"value":{"lockTtl":%d}%s}`, 300+i, more)); status != 200 {
			t.Fatalf("PUT with %s: %d %s", more, status, body)
		}
	}
	if status, body := a.at(http.MethodDelete, settingsPath, "", nil); status != 204 {
		t.Fatalf("DELETE: %d %s", status, body)
	}
	page := a.changes(t, "?kind=settings")
	if page.TotalRecords != 4 || len(page.Changes) != 4 {
		t.Fatalf("got %+v, want 4 changes", page)
	}
	slices.Reverse(page.Changes)
	for i, want := range []struct{ before, after, reason, by string }{
		{before: "", after: `{"lockTtl": 300}`, reason: "Monday", by: "Ann"},
		{before: `{"lockTtl": 300}`, after: `{"lockTtl": 301}`, reason: "", by: ""},
		{before: `{"lockTtl": 301}`, after: `{"lockTtl": 302}`, reason: "", by: ""},
		{before: `{"lockTtl": 302}`, after: "", reason: "", by: ""},
	} {
		c := page.Changes[i]
		if string(c.Before) != want.before || string(c.After) != want.after || c.Reason != want.reason ||
			c.By.Name != want.by || c.Lock != nil {
			t.Errorf("change %d is %+v from %s to %s, want %+v", i, c, c.Before, c.After, want)
		}
	}
}

func TestLockChangeRoutes_ListPages(t *testing.T) {
	t.Parallel()
	a := newChangeAPI(t)
	if status, body := a.at(http.MethodGet, changesPath, "", nil); status != 200 ||
		strings.TrimSpace(body) != `{"changes":[],"totalRecords":0}` {
		t.Errorf("without changes: %d %s", status, body)
	}
	for i := range 23 {
		if status, body := a.at(http.MethodPut, settingsPath, fmt.Sprintf(`{"value":{"lockTtl":%d}}`, 300+i),
			nil); status != 200 {
			t.Fatalf("PUT: %d %s", status, body)
		}
	}
	for query, want := range map[string]struct{ first, count, total int }{
		"":                       {first: 322, count: 20, total: 23},
		"?limit=200":             {first: 322, count: 23, total: 23},
		"?offset=20":             {first: 302, count: 3, total: 23},
		"?offset=1&limit=1":      {first: 321, count: 1, total: 23},
		"?offset=2147483647":     {first: 0, count: 0, total: 23},
		"?kind=release":          {first: 0, count: 0, total: 0},
		"?kind=settings&limit=2": {first: 322, count: 2, total: 23},
	} {
		got := a.changes(t, query)
		if len(got.Changes) != want.count || got.TotalRecords != want.total {
			t.Errorf("%s: %d of %d, want %+v", query, len(got.Changes), got.TotalRecords, want)
		} else if want.count > 0 && string(got.Changes[0].After) != fmt.Sprintf(`{"lockTtl": %d}`, want.first) {
			t.Errorf("%s begins with %s, want %d", query, got.Changes[0].After, want.first)
		}
	}
	for _, query := range []string{
		"kind=", "kind=Release", "kind=settings'", "kind=%00", "offset=-1", "offset=x", "offset=2147483648",
		"limit=0", "limit=201", "limit=", "limit=1.5", "kinds=release", "limit=5&limit=6",
	} {
		status, body := a.at(http.MethodGet, changesPath+"?"+query, "", nil)
		if name, _, _ := strings.Cut(query, "="); status != 422 || !strings.Contains(body, `"key":"`+name+`"`) {
			t.Errorf("%s: %d %s, want 422 naming %s", query, status, body, name)
		}
	}
}

func TestLockChangeRoutes_RefuseUnknownParameters(t *testing.T) {
	t.Parallel()
	a := newChangeAPI(t)
	for method, target := range map[string]string{
		http.MethodGet: settingsPath, http.MethodPut: settingsPath, http.MethodDelete: settingsPath,
		http.MethodPost: "/check-out-lock-storage/" + loanID + "/forced-release",
	} {
		status, body := a.at(method, target+"?reason=x", `{"value":{}}`, nil)
		if want := "reason is unknown; no parameters are allowed"; status != 422 || !strings.Contains(body, want) {
			t.Errorf("%s %s: %d %s, want 422 with %q", method, target, status, body, want)
		}
	}
	if status, body := a.at(http.MethodGet, "/check-out-lock-storage?lang=en", "", nil); status != 200 {
		t.Errorf("FOLIO's list with a parameter more: %d %s, want 200", status, body)
	}
}

func TestLockChangeRoutes_NameTheirPermissions(t *testing.T) {
	t.Parallel()
	const locks, settings = "checkout-lock-storage.checkout-locks.", "circulation-storage.check-out-lock-settings.item."
	want := map[string]string{
		"GET /check-out-lock-storage":                         locks + "collection.get",
		"POST /check-out-lock-storage":                        locks + "item.post",
		"GET /check-out-lock-storage/:lockId":                 locks + "item.get",
		"DELETE /check-out-lock-storage/:lockId":              locks + "item.delete",
		"DELETE /check-out-lock-storage":                      locks + "item.delete",
		"POST /check-out-lock-storage/:lockId/forced-release": locks + "item.forced-release.post",
		"GET /check-out-lock-settings-storage":                settings + "get",
		"PUT /check-out-lock-settings-storage":                settings + "put",
		"DELETE /check-out-lock-settings-storage":             settings + "delete",
		"POST /check-out-lock-settings-storage/environment":   "circulation-storage.check-out-lock-settings.environment.post",
		"GET /check-out-lock-changes-storage":                 "circulation-storage.check-out-lock-changes.collection.get",
	}
	for _, r := range changeRoutes(nil, nil) {
		route := r.Method + " " + r.Path
		if r.Permission != want[route] || r.NoTenant {
			t.Errorf("%s: got permission %q, tenant needed %t, want %q and a tenant", route, r.Permission, !r.NoTenant,
				want[route])
		}
		delete(want, route)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}
