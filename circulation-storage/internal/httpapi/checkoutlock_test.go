package httpapi_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/lock"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/database"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/okapi"
)

const (
	locksPath  = "/check-out-lock-storage"
	defaultTTL = 3 * time.Second
)

// lockAPI is the lock API of one storage instance, on PostgreSQL.
type lockAPI struct {
	api
	locks  *lock.Service
	line   *waitingLine
	db     *postgres.DB
	tenant okapi.Tenant
}

func newLockAPI(t *testing.T) *lockAPI {
	t.Helper()
	db, id := pgtest.New(t)
	return sharedLockAPI(t, db, id)
}

// sharedLockAPI is one more storage instance on a database.
func sharedLockAPI(t *testing.T, db *postgres.DB, id okapi.Tenant) *lockAPI {
	t.Helper()
	line := newWaitingLine()
	locks := newLocks(t, db, line)
	return &lockAPI{newAPI(t, httpapi.CheckoutLockRoutes(locks, defaultTTL)), locks, line, db, id}
}

func newLocks(t *testing.T, db *postgres.DB, obs lock.Observer) *lock.Service {
	return lock.NewService(postgres.NewLockStore(db), obs, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

// do sends a request of the API's own tenant; headers are added, or replace.
func (a *lockAPI) do(method, path, body string, headers ...map[string]string) *httptest.ResponseRecorder {
	all := map[string]string{okapi.TenantHeader: a.tenant.String()}
	for _, h := range headers {
		maps.Copy(all, h)
	}
	return a.call(method, locksPath+path, body, all)
}

// post asks for a patron's lock; more is the rest of the body.
func (a *lockAPI) post(user uuid.UUID, more string) *httptest.ResponseRecorder {
	return a.do(http.MethodPost, "", fmt.Sprintf(`{"userId":%q%s}`, user, more))
}

func (a *lockAPI) mustPost(t *testing.T, user uuid.UUID, more string) schemas.CheckoutLock {
	t.Helper()
	w := a.post(user, more)
	if w.Code != http.StatusCreated {
		t.Fatalf("POST with %s: %d %s, want 201", more, w.Code, w.Body)
	}
	return decode[schemas.CheckoutLock](t, w)
}

func decode[T any](t *testing.T, w *httptest.ResponseRecorder) (v T) {
	t.Helper()
	if ct := w.Header().Get("Content-Type"); !strings.HasPrefix(ct, "application/json") {
		t.Errorf("content type is %q, want JSON", ct)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%q: %v", w.Body, err)
	}
	return v
}

// ageless is a lock for comparing: its age grows from answer to answer.
func ageless(l schemas.CheckoutLock) schemas.CheckoutLock {
	l.AgeMs = 0
	return l
}

func wantText(t *testing.T, what string, w *httptest.ResponseRecorder, status int, text string) {
	t.Helper()
	if w.Code != status || w.Body.String() != text || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("%s: %d %q as %s, want %d %q as text", what, w.Code, w.Body, w.Header().Get("Content-Type"), status, text)
	}
}

func wantStatus(t *testing.T, what string, w *httptest.ResponseRecorder, status int) {
	t.Helper()
	if w.Code != status {
		t.Errorf("%s: %d %s, want %d", what, w.Code, w.Body, status)
	}
}

// The cases of mod-circulation-storage's CheckOutLockAPITest.
func TestCheckoutLockRoutes_CreateAsFolio(t *testing.T) {
	t.Parallel()
	a := newLockAPI(t)
	ann, bob := uuid.New(), uuid.New()
	wantStatus(t, "a first lock", a.post(ann, `,"ttlMs":60000`), 201)
	wantText(t, "a second one", a.post(ann, `,"ttlMs":100000`), 503, "Unable to acquire lock")
	wantStatus(t, "an empty userId", a.do(http.MethodPost, "", `{"userId":"","ttlMs":1000}`), 422)
	wantStatus(t, "another patron", a.post(bob, `,"ttlMs":1000`), 201)
	wantStatus(t, "a lock that 0 makes outdated", a.post(bob, `,"ttlMs":0`), 201)
}

func TestCheckoutLockRoutes_GetAsFolio(t *testing.T) {
	t.Parallel()
	a := newLockAPI(t)
	created := a.mustPost(t, uuid.New(), `,"ttlMs":60000`)
	w := a.do(http.MethodGet, "/"+created.ID, "")
	if got := decode[schemas.CheckoutLock](t, w); w.Code != 200 || ageless(got) != ageless(created) ||
		got.AgeMs < created.AgeMs {
		t.Errorf("GET answers %d %s, POST answered %+v", w.Code, w.Body, created)
	}
	wantText(t, "GET of no id", a.do(http.MethodGet, "/abcd", ""), 400, "Invalid lock id")
}

func TestCheckoutLockRoutes_ListAsFolio(t *testing.T) {
	t.Parallel()
	a := newLockAPI(t)
	ann := uuid.New()
	want := a.mustPost(t, ann, `,"ttlMs":60000`)
	a.mustPost(t, uuid.New(), `,"ttlMs":60000`)
	w := a.do(http.MethodGet, "?userId="+ann.String()+"&offset=0&limit=10", "")
	got := decode[schemas.CheckoutLocks](t, w)
	if w.Code != 200 || got.TotalRecords != 1 || len(got.CheckoutLocks) != 1 ||
		ageless(got.CheckoutLocks[0]) != ageless(want) {
		t.Errorf("got %d %+v, want %+v alone", w.Code, got, want)
	}
}

func TestCheckoutLockRoutes_DeleteAsFolio(t *testing.T) {
	t.Parallel()
	a := newLockAPI(t)
	ann := uuid.New()
	l := a.mustPost(t, ann, `,"ttlMs":100000`)
	if w := a.do(http.MethodDelete, "/"+l.ID, ""); w.Code != 204 || w.Body.Len() != 0 {
		t.Errorf("DELETE: %d %q, want 204 without a body", w.Code, w.Body)
	}
	wantStatus(t, "POST after DELETE", a.post(ann, `,"ttlMs":100000`), 201)
	wantText(t, "DELETE of no id", a.do(http.MethodDelete, "/1234", ""), 400, "Invalid lock id")
}

func TestCheckoutLockRoutes_AnswerALock(t *testing.T) {
	t.Parallel()
	a := newLockAPI(t)
	ann, request := uuid.New(), uuid.New()
	body := fmt.Sprintf(`{"userId":%q,"ttlMs":60000,"requestId":%q,"ttl":3000,"extra":{"a":[1]}}`,
		strings.ToUpper(ann.String()), request)
	w := a.do(http.MethodPost, "", body, map[string]string{
		schemas.HolderHeader: "circulation-1 (Zürich)", okapi.RequestIDHeader: "17/check-out",
	})
	got := decode[schemas.CheckoutLock](t, w)
	created, err := time.Parse(schemas.FolioTime, got.CreationDate)
	if err != nil || !strings.HasSuffix(got.CreationDate, "+00:00") || time.Since(created).Abs() > time.Minute {
		t.Errorf("creationDate is %q, want now, as FOLIO writes it", got.CreationDate)
	}
	want := schemas.CheckoutLock{
		ID: got.ID, UserID: ann.String(), CreationDate: got.CreationDate, TTLMs: 60000,
		ExpirationDate: created.Add(time.Minute).Format(schemas.FolioTime), AcquisitionID: request.String(),
		OkapiRequestID: "17/check-out", Holder: "circulation-1 (Zürich)",
	}
	if w.Code != 201 || ageless(got) != want || got.AgeMs < 0 || got.AgeMs > 60_000 ||
		!strings.Contains(w.Body.String(), `"ageMs":`) {
		t.Errorf("got %d %s, want %+v, just made", w.Code, w.Body, want)
	}
	if w.Header().Get("Location") != "" {
		t.Error("there is a Location, which FOLIO's has not")
	}
	plain := a.mustPost(t, uuid.New(), "")
	if plain.TTLMs != int(defaultTTL.Milliseconds()) || plain.AcquisitionID != "" || plain.Holder != "" {
		t.Errorf("a lock without more is %+v, want the default TTL and nothing else", plain)
	}
}

func TestCheckoutLockRoutes_RefuseAHeldLock(t *testing.T) {
	t.Parallel()
	a := newLockAPI(t)
	ann := uuid.New()
	a.mustPost(t, ann, `,"ttlMs":60000`)
	start := time.Now()
	w := a.post(ann, `,"ttlMs":60000,"waitMs":300`)
	wantText(t, "a held lock", w, 503, "Unable to acquire lock")
	if took := time.Since(start); took < 300*time.Millisecond || took > 10*time.Second { // which is the longest wait
		t.Errorf("answered after %s, want 300ms", took)
	}
	if w.Header().Get(fault.Header) != "LOCK_HELD" || w.Header().Get("Retry-After") != "1" {
		t.Errorf("headers are %v, want the code LOCK_HELD and Retry-After 1", w.Header())
	}
}

func TestCheckoutLockRoutes_AnswerMissingAndOutdatedLocks(t *testing.T) {
	t.Parallel()
	a := newLockAPI(t)
	missing := "/" + uuid.NewString()
	wantText(t, "GET of a missing lock", a.do(http.MethodGet, missing, ""), 404, "Lock not found")
	wantText(t, "DELETE of a missing lock", a.do(http.MethodDelete, missing, ""), 404, "Lock not found")

	l := a.mustPost(t, uuid.New(), `,"ttlMs":0`)
	w := a.do(http.MethodGet, "/"+l.ID, "")
	if got := decode[schemas.CheckoutLock](t, w); w.Code != 200 || !got.Outdated {
		t.Errorf("GET of an outdated lock: %d %+v, want it shown as outdated", w.Code, got)
	}
	if got := decode[schemas.CheckoutLocks](t, a.do(http.MethodGet, "", "")); got.TotalRecords != 1 ||
		!got.CheckoutLocks[0].Outdated {
		t.Errorf("listed %+v, want the outdated lock", got)
	}
	wantText(t, "DELETE of an outdated lock", a.do(http.MethodDelete, "/"+l.ID, ""), 404,
		"Lock not found: it was outdated")
	wantText(t, "the lock is gone", a.do(http.MethodGet, "/"+l.ID, ""), 404, "Lock not found")
}

func TestCheckoutLockRoutes_AnswerAnOutage(t *testing.T) {
	t.Parallel()
	_, id := pgtest.New(t)
	away, err := postgres.Open(t.Context(), database.Settings{
		URL: "postgres://someone:secret@127.0.0.1:1/none",
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(away.Close)
	a := sharedLockAPI(t, away, id)
	path := "/" + uuid.NewString()
	for what, w := range map[string]*httptest.ResponseRecorder{
		"POST":             a.post(uuid.New(), ""),
		"POST with a wait": a.post(uuid.New(), `,"waitMs":5000`),
		"GET":              a.do(http.MethodGet, path, ""),
		"list":             a.do(http.MethodGet, "", ""),
		"DELETE":           a.do(http.MethodDelete, path, ""),
	} {
		if w.Code != 503 || w.Header().Get(fault.Header) != "UNAVAILABLE" || w.Header().Get("Retry-After") != "1" ||
			strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: %d %s %q, want 503 UNAVAILABLE with Retry-After and without a secret", what, w.Code,
				w.Header().Get(fault.Header), w.Body)
		}
	}
}

func escaped(s string) string { return url.QueryEscape(s) }
