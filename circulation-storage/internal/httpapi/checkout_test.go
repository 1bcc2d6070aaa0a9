package httpapi_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/tenantjob"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web"
)

// commitAPI is the commits and the small endpoints beside them, on a tenant of
// its own.
type commitAPI struct {
	api
	t  *testing.T
	db *postgres.DB
	id okapi.Tenant
}

func newCommitAPI(t *testing.T) commitAPI {
	db, id := pgtest.New(t)
	return commitAPI{newAPI(t, commitRoutes(t, db)), t, db, id}
}

func commitRoutes(t *testing.T, db *postgres.DB) []web.Route {
	return slices.Concat(
		httpapi.CommitRoutes(postgres.NewCommitStore(db, pgtest.Uncounted{}), newLocks(t, db, newWaitingLine())),
		httpapi.LockSettingsRoutes(postgres.NewLockSettingsStore(db)),
		httpapi.RulesRoutes(postgres.NewRecordStore(db, func() {})),
	)
}

func (a commitAPI) do(method, target, body string) *httptest.ResponseRecorder {
	return a.call(method, target, body, map[string]string{okapi.TenantHeader: a.id.String()})
}

// add stores a row by SQL, in which S is the tenant's schema.
func (a commitAPI) add(statement string, args ...any) {
	a.t.Helper()
	if _, err := a.db.Pool().Exec(a.t.Context(), strings.ReplaceAll(statement, "S.", postgres.SchemaName(a.id)+"."),
		args...); err != nil {
		a.t.Fatal(err)
	}
}

func (a commitAPI) addItem() uuid.UUID {
	a.t.Helper()
	id := uuid.New()
	a.add(`INSERT INTO S.item (id, jsonb) VALUES ($1, $2)`, id,
		fmt.Sprintf(`{"id":%q,"_version":1,"status":{"name":"Available"}}`, id))
	return id
}

// wantNothingWritten checks that no request of a test left anything.
func (a commitAPI) wantNothingWritten() {
	a.t.Helper()
	var n int
	err := a.db.Pool().QueryRow(a.t.Context(), strings.ReplaceAll(`SELECT (SELECT count(*)
		FROM S.loan) + (SELECT count(*) FROM S.outbox)
		+ (SELECT count(*) FROM S.settings_entry) + (SELECT count(*) FROM S.circulation_rules WHERE rules <> '')
		+ (SELECT count(*) FROM S.item WHERE jsonb->>'_version' <> '1')`, "S.", postgres.SchemaName(a.id)+".")).Scan(&n)
	if err != nil || n != 0 {
		a.t.Errorf("got %d rows written, %v, want none", n, err)
	}
}

func (a commitAPI) settingsVersion() string {
	a.t.Helper()
	return decode[schemas.LockSettingsState](a.t, a.do(http.MethodGet, "/check-out-lock-settings-storage", "")).Version
}

func checkOutBody(loan, user, item uuid.UUID, fence string) string {
	return fmt.Sprintf(`{"loan":{"id":%q,"userId":%q,"itemId":%q,"loanDate":"2026-03-04T05:06:00Z",`+
		`"action":"checkedout"},"itemVersion":1,%s}`,
		loan, user, item, fence)
}

func TestCommitRoutes_CheckOutAndCheckIn(t *testing.T) {
	t.Parallel()
	a := newCommitAPI(t)
	loan, user, item, lockID := uuid.New(), uuid.New(), a.addItem(), uuid.New()
	a.add(`INSERT INTO S.check_out_lock (id, user_id, ttl_ms) VALUES ($1, $2, 3000)`, lockID, user)
	body := checkOutBody(loan, user, item, fmt.Sprintf(`"lockId":%q`, lockID))

	for _, what := range []string{"check-out", "the same again"} {
		w := a.do(http.MethodPost, "/loan-storage/check-outs", body)
		wantStatus(t, what, w, http.StatusCreated)
		if got, want := w.Header().Get("Location"), "/loan-storage/loans/"+loan.String(); got != want {
			t.Errorf("%s: Location is %q, want %q", what, got, want)
		}
		if got := w.Body.String(); !strings.Contains(got, loan.String()) || !strings.Contains(got, `"Checked out"`) {
			t.Errorf("%s: got %s, want the loan and the lent item", what, got)
		}
	}
	more := checkOutBody(uuid.New(), user, a.addItem(), fmt.Sprintf(`"lockId":%q,"limit":{"max":1}`, lockID))
	over := a.do(http.MethodPost, "/loan-storage/check-outs", more)
	if over.Code != http.StatusConflict || over.Header().Get(fault.Header) != "LIMIT_REACHED" ||
		!strings.Contains(over.Body.String(), `{"key":"openLoans","value":"1"}`) {
		t.Errorf("beyond the limit: got %d %v %s, want 409 with the number of loans", over.Code, over.Header(), over.Body)
	}

	checkIn := fmt.Sprintf(`{"itemId":%q,"servicePointId":%q,"checkInDate":"2026-03-05T00:00:00Z","itemVersion":2,`+
		`"itemStatus":"Available"}`, item, uuid.New())
	w := a.do(http.MethodPost, "/loan-storage/check-ins", checkIn)
	wantStatus(t, "check-in", w, http.StatusOK)
	if got := w.Body.String(); !strings.Contains(got, `"Closed"`) || !strings.Contains(got, `"Available"`) {
		t.Errorf("check-in: got %s, want the closed loan and the item", got)
	}
	wantStatus(t, "check-in of an old version", a.do(http.MethodPost, "/loan-storage/check-ins", checkIn),
		http.StatusConflict)
	wantStatus(t, "check-out after the check-in", a.do(http.MethodPost, "/loan-storage/check-outs", more),
		http.StatusCreated)
}

func TestCommitRoutes_CheckOutTakesTheLock(t *testing.T) {
	t.Parallel()
	a := newCommitAPI(t)
	user, item := uuid.New(), a.addItem()
	send := func(fence string) *httptest.ResponseRecorder {
		return a.do(http.MethodPost, "/loan-storage/check-outs", checkOutBody(uuid.New(), user, item, fence))
	}
	fence := fmt.Sprintf(`"lockId":%q,"releaseLock":true,"takeLock":{"requestId":%q,"waitMs":250}`, uuid.New(), uuid.New())
	for name, wrong := range map[string]string{
		"no release":    strings.Replace(fence, `"releaseLock":true`, `"releaseLock":false`, 1),
		"no lock id":    strings.Replace(fence, `"lockId"`, `"lock"`, 1) + `,"settingsVersion":"1"`,
		"a long wait":   strings.Replace(fence, `"waitMs":250`, `"waitMs":251`, 1),
		"no request id": strings.Replace(fence, "requestId", "request", 1),
	} {
		if w := send(wrong); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "takeLock") {
			t.Errorf("%s: got %d %s, want 422 that names takeLock", name, w.Code, w.Body)
		}
	}
	a.add(`INSERT INTO S.check_out_lock (id, user_id, ttl_ms) VALUES ($1, $2, 3000)`, uuid.New(), user)
	held := send(fence)
	if held.Code != http.StatusServiceUnavailable || held.Header().Get(fault.Header) != string(fault.LockHeld) {
		t.Errorf("a held lock: got %d %v %s, want 503 %s", held.Code, held.Header(), held.Body, fault.LockHeld)
	}
	a.wantNothingWritten()
	a.add(`DELETE FROM S.check_out_lock`)
	w := send(fence)
	wantStatus(t, "a free lock", w, http.StatusCreated)
	if got := decode[schemas.CheckOutResult](t, w); !got.LockReleased || got.LockWaitMs > 250 {
		t.Errorf("got %+v, want the lock released", got)
	}
}

func TestCommitRoutes_CheckOutAnswersTheStatusOnly(t *testing.T) {
	t.Parallel()
	a := newCommitAPI(t)
	item, fence := a.addItem(), fmt.Sprintf(`"settingsVersion":%q,"statusOnly":true`, a.settingsVersion())
	w := a.do(http.MethodPost, "/loan-storage/check-outs", checkOutBody(uuid.New(), uuid.New(), item, fence))
	answered := decode[schemas.CheckOutResult](t, w).Item
	sql := "SELECT jsonb->>'id' = $1 AND jsonb_build_object('status', jsonb->'status') = $2 FROM "
	var same bool
	err := a.db.Pool().QueryRow(t.Context(), sql+postgres.SchemaName(a.id)+".item", item.String(), answered).Scan(&same)
	if err != nil || !same {
		t.Errorf("got the item %s, %v; want its status as it is stored with the rest", answered, err)
	}
}

func TestCommitRoutes_SettleACheckOut(t *testing.T) {
	t.Parallel()
	a := newCommitAPI(t)
	lent, given, item := uuid.New(), uuid.New(), a.addItem()
	fence := fmt.Sprintf(`"settingsVersion":%q`, a.settingsVersion())
	settle := func(id string) *httptest.ResponseRecorder {
		return a.do(http.MethodPost, "/loan-storage/check-outs/"+id+"/settlement", "")
	}
	for _, what := range []string{"no loan", "no loan, again"} {
		w := settle(given.String())
		wantStatus(t, what, w, http.StatusOK)
		if got := strings.TrimSpace(w.Body.String()); got != `{"givenUp":true}` {
			t.Errorf("%s: got %s, want it given up", what, got)
		}
	}
	late := a.do(http.MethodPost, "/loan-storage/check-outs", checkOutBody(given, uuid.New(), item, fence))
	if late.Code != http.StatusConflict || late.Header().Get(fault.Header) != string(fault.GivenUp) {
		t.Errorf("a commit after that: got %d %v %s, want 409 %s", late.Code, late.Header(), late.Body, fault.GivenUp)
	}
	a.wantNothingWritten()
	w := a.do(http.MethodPost, "/loan-storage/check-outs", checkOutBody(lent, uuid.New(), item, fence))
	wantStatus(t, "check-out", w, http.StatusCreated)
	got := decode[schemas.SettledCheckOut](t, settle(lent.String()))
	if got.GivenUp || !strings.Contains(string(got.Loan), lent.String()) ||
		!strings.Contains(string(got.Item), item.String()) {
		t.Errorf("a loan: got %s %s, want it and its item", got.Loan, got.Item)
	}
	for _, id := range []string{"1", "%00", "'", uuid.NewString() + "0", strings.Repeat("a", 1000)} {
		if w := settle(id); w.Code < 400 || w.Code >= 500 {
			t.Errorf("the id %.40q: got %d %s, want the caller's mistake named", id, w.Code, w.Body)
		}
	}
}

func TestCommitRoutes_NameTheCauseOfARefusal(t *testing.T) {
	t.Parallel()
	a := newCommitAPI(t)
	item, version := a.addItem(), a.settingsVersion()
	tests := map[string]struct {
		body   string
		status int
		code   fault.Code
	}{
		"lock lost": {
			body: checkOutBody(uuid.New(), uuid.New(), item, fmt.Sprintf(`"lockId":%q`, uuid.New())), status: 409,
			code: fault.LockLost,
		},
		"settings changed": {
			body: checkOutBody(uuid.New(), uuid.New(), item, `"settingsVersion":"0"`), status: 409, code: fault.SettingsChanged,
		},
		"item changed": {
			body: strings.Replace(checkOutBody(uuid.New(), uuid.New(), item, fmt.Sprintf(`"settingsVersion":%q`, version)),
				`"itemVersion":1`, `"itemVersion":9`, 1),
			status: 409, code: fault.ItemChanged,
		},
		"unknown item": {
			body: checkOutBody(uuid.New(), uuid.New(), uuid.New(), fmt.Sprintf(`"settingsVersion":%q`, version)), status: 422,
			code: fault.Invalid,
		},
	}
	for name, tt := range tests {
		w := a.do(http.MethodPost, "/loan-storage/check-outs", tt.body)
		if w.Code != tt.status || w.Header().Get(fault.Header) != string(tt.code) {
			t.Errorf("%s: got %d %s %s, want %d %s", name, w.Code, w.Header().Get(fault.Header), w.Body, tt.status, tt.code)
		}
	}
	a.wantNothingWritten()
}

func TestLockSettingsRoutes(t *testing.T) {
	t.Parallel()
	const path = "/check-out-lock-settings-storage"
	a := newCommitAPI(t)
	version := a.settingsVersion()
	w := a.do(http.MethodPut, path, fmt.Sprintf(`{"value":{"checkOutLockFeatureEnabled":true},"version":%q}`, version))
	wantStatus(t, "put", w, http.StatusOK)
	made := decode[schemas.LockSettingsState](t, w)
	if made.Version == version || !strings.Contains(string(made.Entry), `"checkOutLockFeatureEnabled"`) {
		t.Errorf("put: got %s, want the entry and a new version", w.Body)
	}
	w = a.do(http.MethodPut, path, fmt.Sprintf(`{"value":{"lockTtl":300},"version":%q}`, version))
	wantStatus(t, "put on an old version", w, http.StatusConflict)
	if got := w.Header().Get(fault.Header); got != string(fault.Conflict) {
		t.Errorf("put on an old version: got %s, want %s", got, fault.Conflict)
	}
	wantStatus(t, "delete", a.do(http.MethodDelete, path, ""), http.StatusNoContent)
	if got := decode[schemas.LockSettingsState](t, a.do(http.MethodGet, path, "")); got.Entry != nil ||
		got.Version == made.Version {
		t.Errorf("after delete: got %+v, want a new version and no entry", got)
	}
}

func TestRulesRoutes(t *testing.T) {
	t.Parallel()
	const path = "/circulation-rules-storage"
	a := newCommitAPI(t)
	wantStatus(t, "put", a.do(http.MethodPut, path, `{"rulesAsText":5,"policiesExist":true,"policiesExist":null,`+
		`"rulesAsText":"priority: last-line\n# ü","RulesAsText":"x"}`), http.StatusNoContent)
	got := decode[schemas.CirculationRules](t, a.do(http.MethodGet, path, ""))
	if got.RulesAsText != "priority: last-line\n# ü" || uuid.Validate(got.ID) != nil {
		t.Errorf("got %+v, want the text and an id", got)
	}
}

func TestRulesRoutes_HaveMetadata(t *testing.T) {
	t.Parallel()
	const path = "/circulation-rules-storage"
	a := newCommitAPI(t)
	type metadata struct{ CreatedDate, CreatedByUserID, UpdatedDate, UpdatedByUserID string }
	read := func() (m metadata) {
		t.Helper()
		raw := decode[schemas.CirculationRules](t, a.do(http.MethodGet, path, "")).Metadata
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatalf("got %s: %v", raw, err)
		}
		for _, date := range []string{m.CreatedDate, m.UpdatedDate} {
			if _, err := time.Parse(schemas.FolioTime, date); err != nil {
				t.Error(err)
			}
		}
		return m
	}
	if got := decode[schemas.CirculationRules](t, a.do(http.MethodGet, path, "")).Metadata; got != nil {
		t.Errorf("rules that were never written have the metadata %s", got)
	}
	var created string
	for i, user := range []string{userID, "", groupID} {
		body := `{"rulesAsText":"","metadata":{"createdByUserId":"` + loanID + `","updatedDate":"2001-01-01"}}`
		w := a.call(http.MethodPut, path, body, map[string]string{
			okapi.TenantHeader: a.id.String(), okapi.UserIDHeader: user,
		})
		wantStatus(t, "put", w, http.StatusNoContent)
		m := read()
		if i == 0 {
			created = m.CreatedDate
		}
		if m.CreatedByUserID != userID || m.CreatedDate != created || m.UpdatedByUserID != user || m.UpdatedDate < created {
			t.Errorf("written by %q: got %+v", user, m)
		}
	}
}

func TestCommitRoutes_NameTheirPermissions(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"POST /loan-storage/check-outs":                "circulation-storage.check-outs.item.post",
		"GET /loan-storage/check-outs/:id":             "circulation-storage.check-outs.item.get",
		"POST /loan-storage/check-outs/:id/settlement": "circulation-storage.check-out-settlements.item.post",

		"POST /loan-storage/check-ins":         "circulation-storage.check-ins.item.post",
		"POST /loan-storage/renewals":          "circulation-storage.renewals.item.post",
		"POST /loan-storage/loans/:id/changes": "circulation-storage.loan-changes.item.post",

		"POST /loan-storage/loans/:id/replacements": "circulation-storage.loan-replacements.item.post",

		"POST /request-storage/placements":        "circulation-storage.request-placements.item.post",
		"POST /loan-storage/check-out-facts":      "circulation-storage.check-out-facts.post",
		"GET /check-out-lock-settings-storage":    "circulation-storage.check-out-lock-settings.item.get",
		"PUT /check-out-lock-settings-storage":    "circulation-storage.check-out-lock-settings.item.put",
		"DELETE /check-out-lock-settings-storage": "circulation-storage.check-out-lock-settings.item.delete",

		"POST /check-out-lock-settings-storage/environment": "circulation-storage.check-out-lock-settings.environment.post",
		"GET /circulation-rules-storage":                    "circulation-storage.circulation-rules.get",
		"PUT /circulation-rules-storage":                    "circulation-storage.circulation-rules.put",
	}
	for _, r := range commitRoutes(t, newCommitAPI(t).db) {
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

func TestTenantRoutes_InstallAndPurge(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	p := &platform{}
	jobs := tenantjob.New(postgres.NewTenantJobStore(db), p.loadWanted, time.Minute, slog.Default())
	a := newAPI(t, slices.Concat(httpapi.TenantRoutes(db, jobs, time.Minute, time.Minute), commitRoutes(t, db)))
	of := map[string]string{okapi.TenantHeader: id.String()}
	for _, step := range []struct {
		what, method, path, body string
		status                   int
	}{
		{
			what: "install again", method: http.MethodPost, path: "/_/tenant",
			body: `{"module_to":"mod-circulation-storage-1.0.0"}`, status: 204,
		},
		{
			what: "write", method: http.MethodPut, path: "/circulation-rules-storage", body: `{"rulesAsText":"kept"}`,
			status: 204,
		},
		{
			what: "upgrade", method: http.MethodPost, path: "/_/tenant",
			body: `{"module_from":"mod-circulation-storage-1.0.0","module_to":"mod-circulation-storage-1.1.0"}`, status: 204,
		},
		{
			what: "disable", method: http.MethodPost, path: "/_/tenant", body: `{"module_from":"mod-circulation-storage-1.1.0"}`,
			status: 204,
		},
		{what: "read", method: http.MethodGet, path: "/circulation-rules-storage", body: "", status: 200},
		{
			what: "purge", method: http.MethodPost, path: "/_/tenant",
			body: `{"module_from":"mod-circulation-storage-1.1.0","purge":true}`, status: 204,
		},
		{what: "purge again", method: http.MethodPost, path: "/_/tenant", body: `{"purge":true}`, status: 204},
		{what: "read after the purge", method: http.MethodGet, path: "/circulation-rules-storage", body: "", status: 404},
		{
			what: "install after the purge", method: http.MethodPost, path: "/_/tenant",
			body: `{"module_to":"mod-circulation-storage-1.1.0"}`, status: 204,
		},
		{what: "read what is new", method: http.MethodGet, path: "/circulation-rules-storage", body: "", status: 200},
	} {
		w := a.call(step.method, step.path, step.body, of)
		wantStatus(t, step.what, w, step.status)
		if step.what == "read" && !strings.Contains(w.Body.String(), "kept") {
			t.Errorf("after upgrade and disable: got %s, want what was written", w.Body)
		}
	}
}
