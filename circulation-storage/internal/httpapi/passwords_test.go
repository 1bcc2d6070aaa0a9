package httpapi_test

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/httpapi"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const terminalsPath = "/self-check-terminals"

func newPasswordAPI(t *testing.T) (recordAPI, *postgres.DB) {
	t.Helper()
	db, id := pgtest.New(t)
	store := postgres.NewRecordStore(db, func() {})
	a := recordAPI{newAPI(t, slices.Concat(httpapi.RecordRoutes(store), httpapi.PasswordRoutes(store))), id}
	a.must(t, http.MethodPost, "/service-points", samples()["/service-points"], http.StatusCreated)
	return a, db
}

// newTerminal returns a terminal with more fields.
func newTerminal(more string) string {
	return strings.TrimSuffix(samples()[terminalsPath], "}") + more + "}"
}

// login sends a login and returns the answer.
func (a recordAPI) login(login, password string) *httptest.ResponseRecorder {
	return a.do(http.MethodPost, terminalsPath+"/verify", `{"login":"`+login+`","password":"`+password+`"}`)
}

func (a recordAPI) wantLogin(t *testing.T, login, password string, status int) {
	t.Helper()
	w := a.login(login, password)
	if w.Code != status || status != http.StatusOK && w.Header().Get(fault.Header) != string(fault.LoginRefused) {
		t.Errorf("login %s, %s: got %d %s, want %d", login, password, w.Code, w.Body, status)
	}
	if status == http.StatusOK && parseJSON(t, w.Body.String())["id"] != terminalID {
		t.Errorf("login %s: got %s, want the terminal", login, w.Body)
	}
}

func TestSelfCheckTerminal_PasswordIsVerifiedAndNeverShown(t *testing.T) {
	t.Parallel()
	a, db := newPasswordAPI(t)
	one := terminalsPath + "/" + terminalID
	first := a.must(t, http.MethodPost, terminalsPath, newTerminal(`,"password":"first-secret"`), http.StatusCreated)
	a.wantLogin(t, "desk-1", "first-secret", http.StatusOK)
	a.wantLogin(t, "DESK-1", "first-secret", http.StatusOK)
	a.wantLogin(t, "desk-1", "FIRST-SECRET", http.StatusUnprocessableEntity)
	a.wantLogin(t, "desk-1", "", http.StatusUnprocessableEntity)
	a.wantLogin(t, "desk-2", "first-secret", http.StatusUnprocessableEntity)

	a.must(t, http.MethodPut, one, newTerminal(`,"_version":1,"hasPassword":false`), http.StatusNoContent)
	a.wantLogin(t, "desk-1", "first-secret", http.StatusOK)
	a.must(t, http.MethodPut, one, newTerminal(`,"_version":2,"password":"second-secret"`), http.StatusNoContent)
	a.wantLogin(t, "desk-1", "first-secret", http.StatusUnprocessableEntity)
	a.wantLogin(t, "desk-1", "second-secret", http.StatusOK)
	a.must(t, http.MethodPut, one, newTerminal(`,"_version":3,"enabled":false`), http.StatusNoContent)
	a.wantLogin(t, "desk-1", "second-secret", http.StatusUnprocessableEntity)
	a.must(t, http.MethodPut, one, newTerminal(`,"_version":4`), http.StatusNoContent)

	seen := []string{first.Body.String(), a.login("desk-1", "second-secret").Body.String()}
	for _, target := range []string{one, terminalsPath, terminalsPath + "?query=login==desk-1"} {
		seen = append(seen, a.do(http.MethodGet, target, "").Body.String())
	}
	var stored, hash string
	statement := "SELECT jsonb::text, password_hash FROM " + postgres.SchemaName(a.tenant) + ".self_check_terminal"
	if err := db.Pool().QueryRow(t.Context(), statement).Scan(&stored, &hash); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(hash, "$argon2id$v=19$m=7168,t=5,p=1$") {
		t.Errorf("the column has %q, want a hash of argon2id", hash)
	}
	for _, text := range append(seen, stored) {
		if strings.Contains(text, "secret") || strings.Contains(text, "$argon2") || strings.Contains(text, "passwordHash") {
			t.Errorf("the password or its hash is shown: %s", text)
		}
		if strings.Contains(text, terminalID) && !strings.Contains(strings.ReplaceAll(text, " ", ""), `"hasPassword":true`) {
			t.Errorf("hasPassword is not true: %s", text)
		}
	}
}

// A machine that comes back costs no comparison: each takes 7 MiB of memory.
func TestSelfCheckTerminal_ComesBackWithoutAComparison(t *testing.T) { //nolint:paralleltest // it counts allocations
	a, _ := newPasswordAPI(t)
	a.must(t, http.MethodPost, terminalsPath, newTerminal(`,"password":"first-secret"`), http.StatusCreated)
	for _, tt := range []struct {
		name            string
		password        string
		logins          int
		status          int
		wantComparisons uint64
	}{
		{name: "the first login", password: "first-secret", logins: 1, status: http.StatusOK, wantComparisons: 1},
		{name: "later logins", password: "first-secret", logins: 20, status: http.StatusOK, wantComparisons: 0},
		{
			name: "a wrong password", password: "other-secret", logins: 1, status: http.StatusUnprocessableEntity,
			wantComparisons: 1,
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range tt.logins {
			a.wantLogin(t, "desk-1", tt.password, tt.status)
		}
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) / (7 << 20); got != tt.wantComparisons {
			t.Errorf("%s: %d comparisons, want %d", tt.name, got, tt.wantComparisons)
		}
	}
}

func TestSelfCheckTerminal_RefusesBadInput(t *testing.T) {
	t.Parallel()
	a, _ := newPasswordAPI(t)
	a.must(t, http.MethodPost, terminalsPath, samples()[terminalsPath], http.StatusCreated)
	a.wantLogin(t, "desk-1", "any-password", http.StatusUnprocessableEntity)
	const place = `"servicePointFromLogin":true`
	for name, tt := range map[string]struct{ login, more, want string }{
		"a login that is there in another case": {login: "DESK-1", more: place, want: "login value already exists"},
		"a login with a tenant":                 {login: "desk-2@diku", more: place, want: "login"},
		"a login with a delimiter":              {login: "desk|2", more: place, want: "login"},
		"a login with a blank":                  {login: "desk 2", more: place, want: "login"},
		"no service point": {
			login: "desk-2", more: `"enabled":true`, want: "servicePointId is required",
		},
		"an unknown service point": {
			login: "desk-2", more: `"servicePointId":"` + otherLoanID + `"`, want: "does not exist",
		},
		"a short password": {
			login: "desk-2", more: place + `,"password":"short"`, want: "from 8 to 72 bytes",
		},
		"a password that no message can hold": {
			login: "desk-2", more: place + `,"password":"long|enough"`, want: "without |",
		},
		"a password of many bytes": {
			login: "desk-2", more: place + `,"password":"` + strings.Repeat("ä", 40) + `"`, want: "from 8 to 72 bytes",
		},
		"a hash":                  {login: "desk-2", more: place + `,"passwordHash":"x"`, want: "passwordHash"},
		"an unknown time zone":    {login: "desk-2", more: place + `,"timeZone":"Mars/Base"`, want: "timeZone"},
		"an address that is none": {login: "desk-2", more: place + `,"addresses":["10.1.2.3","x"]`, want: "addresses"},
		"a text that is none":     {login: "desk-2", more: place + `,"texts":{"machine.busy":3}`, want: "texts"},
		"an unknown message":      {login: "desk-2", more: place + `,"messages":["12"]`, want: "messages"},
	} {
		t.Run(name, func(t *testing.T) {
			w := a.do(http.MethodPost, terminalsPath, `{"login":"`+tt.login+`","name":"n",`+tt.more+`}`)
			if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("got %d %s, want 422 with %s", w.Code, w.Body, tt.want)
			}
			if strings.Contains(w.Body.String(), "short") || strings.Contains(w.Body.String(), "ää") {
				t.Errorf("the answer repeats the password: %s", w.Body)
			}
		})
	}
	w := a.do(http.MethodDelete, "/service-points/"+deskID, "")
	if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), terminalID) {
		t.Errorf("deleting the terminal's service point: got %d %s, want 422 with the terminal", w.Code, w.Body)
	}
}

func TestPatronPIN(t *testing.T) {
	t.Parallel()
	a, db := newPasswordAPI(t)
	a.must(t, http.MethodPost, "/groups", samples()["/groups"], http.StatusCreated)
	for _, path := range []string{"/addresstypes", "/users"} {
		a.must(t, http.MethodPost, path, samples()[path], http.StatusCreated)
	}
	const verify = "/patron-pin/verify"
	body := func(id, pin string) string { return `{"id":"` + id + `","pin":"` + pin + `"}` }
	for _, step := range []struct {
		name, method, path, body string
		code                     fault.Code // of a 422
		status                   int        // of any other answer
		want                     string
	}{
		{name: "none is set", path: verify, body: body(userID, "1234"), code: fault.Invalid, want: schemas.PINNotSet},
		{name: "set", path: "/patron-pin", body: body(userID, "1234"), status: 201},
		{name: "right", path: verify, body: body(strings.ToUpper(userID), "1234"), status: 200},
		{name: "wrong", path: verify, body: body(userID, "4321"), code: fault.LoginRefused, want: "wrong"},
		{name: "replaced", path: "/patron-pin", body: body(userID, "9876"), status: 201},
		{name: "the old one", path: verify, body: body(userID, "1234"), code: fault.LoginRefused, want: "wrong"},
		{
			name: "no such patron", path: "/patron-pin", body: body(otherLoanID, "1234"), code: fault.Invalid,
			want: "no patron",
		},
		{name: "no PIN", path: "/patron-pin", body: body(userID, ""), code: fault.Invalid, want: "from 1 to 72 bytes"},
		{name: "no patron", path: "/patron-pin", body: `{"pin":"1"}`, code: fault.Invalid, want: "id must be a UUID"},
		{name: "no id", path: verify, body: body("x", "1"), code: fault.Invalid, want: "UUID"},
		{name: "the new one", path: verify, body: body(userID, "9876"), status: 200},
		{name: "removed", method: http.MethodDelete, path: "/patron-pin", body: `{"id":"` + userID + `"}`, status: 200},
		{name: "removed again", method: http.MethodDelete, path: "/patron-pin", body: `{"id":"` + userID + `"}`, status: 200},
		{name: "none is left", path: verify, body: body(userID, "9876"), code: fault.Invalid, want: schemas.PINNotSet},
		{name: "set again", path: "/patron-pin", body: body(userID, "1234"), status: 201},
		{name: "the patron goes", method: http.MethodDelete, path: "/users/" + userID, status: 204},
	} {
		w := a.do(cmp.Or(step.method, http.MethodPost), step.path, step.body)
		status, code := cmp.Or(step.status, 422), fault.Code(w.Header().Get(fault.Header))
		if w.Code != status || code != step.code || !strings.Contains(w.Body.String(), step.want) {
			t.Errorf("%s: got %d %s %s, want %d %s", step.name, w.Code, code, w.Body, status, step.code)
		}
	}
	var left int
	statement := "SELECT count(*) FROM " + postgres.SchemaName(a.tenant) + ".patron_pin"
	if err := db.Pool().QueryRow(t.Context(), statement).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d PINs of deleted patrons, %v", left, err)
	}
}
