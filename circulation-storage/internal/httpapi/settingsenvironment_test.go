package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

const environmentPath = "/check-out-lock-settings-storage/environment"

func TestAnnouncedEnvironment(t *testing.T) {
	t.Parallel()
	a := newCommitAPI(t)
	item, old := a.addItem(), a.settingsVersion()
	w := a.do(http.MethodPost, environmentPath, fmt.Sprintf(`{"enabled":true,"version":%q}`, old))
	wantStatus(t, "on", w, http.StatusOK)
	on := decode[schemas.LockSettingsState](t, w)
	if on.Version == old || on.EnvironmentOnMs == nil || *on.EnvironmentOnMs <= 0 ||
		*on.EnvironmentOnMs > schemas.LockEnvironmentLeaseMs {
		t.Errorf("on: got %s, want a new version and for how long it is heard", w.Body)
	}
	for what, fence := range map[string]string{
		"no lock, old version": fmt.Sprintf(`"settingsVersion":%q`, old),
		"no lock, new version": fmt.Sprintf(`"settingsVersion":%q`, on.Version),
	} {
		w = a.do(http.MethodPost, "/loan-storage/check-outs", checkOutBody(uuid.New(), uuid.New(), item, fence))
		if w.Code != http.StatusConflict || w.Header().Get(fault.Header) != string(fault.SettingsChanged) {
			t.Errorf("%s: got %d %s %s, want 409 %s", what, w.Code, w.Header().Get(fault.Header), w.Body, fault.SettingsChanged)
		}
	}
	user, lockID := uuid.New(), uuid.New()
	a.add(`INSERT INTO S.check_out_lock (id, user_id, ttl_ms) VALUES ($1, $2, 3000)`, lockID, user)
	w = a.do(http.MethodPost, "/loan-storage/check-outs",
		checkOutBody(uuid.New(), user, item, fmt.Sprintf(`"lockId":%q,"settingsVersion":%q`, lockID, on.Version)))
	wantStatus(t, "lock and new version", w, http.StatusCreated)

	w = a.do(http.MethodPut, "/check-out-lock-settings-storage", `{"value":{"lockTtl":5000}}`)
	wantStatus(t, "another setting", w, http.StatusOK)
	if on = decode[schemas.LockSettingsState](t, w); on.EnvironmentOnMs == nil {
		t.Errorf("another setting: got %s, want for how long the announcement is heard", w.Body)
	}

	wantStatus(t, "off", a.do(http.MethodPost, environmentPath, `{"enabled":false}`), http.StatusOK)
	if got := a.settingsVersion(); got != on.Version {
		t.Errorf("version is %s, want %s: an instance that says on is heard", got, on.Version)
	}
	a.add(`UPDATE S.check_out_lock_environment SET on_until = clock_timestamp() - interval '1 minute'`)
	w = a.do(http.MethodPost, environmentPath, `{"enabled":false}`)
	if off := decode[schemas.LockSettingsState](t, w); off.EnvironmentOnMs != nil || off.Version == on.Version {
		t.Errorf("off after a minute: got %s, want a new version without an announcement", w.Body)
	}
}

func TestAnnouncedEnvironment_RefusesBadBodies(t *testing.T) {
	t.Parallel()
	a := newCommitAPI(t)
	tests := map[string]struct {
		body   string
		status int
		says   string
	}{
		"no JSON": {body: `{`, status: http.StatusBadRequest, says: "not valid JSON"},
		"a list":  {body: `[]`, status: http.StatusBadRequest, says: "must be of type object"},
		"nothing": {body: `{}`, status: http.StatusUnprocessableEntity, says: "enabled must be true or false"},
		"enabled null": {
			body: `{"enabled":null}`, status: http.StatusUnprocessableEntity, says: "enabled must be true or false",
		},
		"enabled as text": {
			body: `{"enabled":"true"}`, status: http.StatusBadRequest, says: "enabled must be of type boolean",
		},
		"on without a version": {
			body: `{"enabled":true}`, status: http.StatusUnprocessableEntity, says: "version must be the version that was read",
		},
		"version as number": {
			body: `{"enabled":true,"version":1}`, status: http.StatusBadRequest, says: "version must be of type string",
		},
		"version with a NUL": {
			body: `{"enabled":true,"version":"\u0000"}`, status: http.StatusUnprocessableEntity, says: "cannot be stored",
		},
		"a version never stored": {
			body: `{"enabled":true,"version":"x"}`, status: http.StatusConflict, says: "read them again",
		},
		"a very long version": {
			body: `{"enabled":true,"version":"` + strings.Repeat("9", 10_000) + `"}`, status: http.StatusConflict,
			says: "read them again",
		},
	}
	before := a.settingsVersion()
	for name, tt := range tests {
		w := a.do(http.MethodPost, environmentPath, tt.body)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) {
			t.Errorf("%s: got %d %s, want %d saying %q", name, w.Code, w.Body, tt.status, tt.says)
		}
	}
	if got := a.settingsVersion(); got != before {
		t.Errorf("version is %s, want %s", got, before)
	}
}
