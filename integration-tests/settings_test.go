package integration_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas"
)

const (
	settingsPath = "/circulation/check-out-lock-settings"
	entriesPath  = "/settings/entries"
	// settingsLimit is the longest wait until changed settings are in force on all
	// instances. The tests of package settings prove that two seconds are enough.
	settingsLimit = patience
	// outlastsTests is the longest TTL, longer than any wait of the tests. Parallel subtests must not rely on
	// it: they wait for their turn as long as the other tests take.
	outlastsTests = schemas.MaxLockTTLMs * time.Millisecond
)

// disableLock returns circulation's settings with the feature off.
func disableLock() []string { return []string{"CHECKOUT_LOCK_FEATURE_ENABLED=false"} }

// readSettings reads the lock settings from circulation instance i.
func (p *pair) readSettings(t *testing.T, i int) record {
	t.Helper()
	return readObject(t, callEndpoint(t, p.machines[i], http.MethodGet, settingsPath, nil), http.StatusOK)
}

// changeSettings changes the lock settings through circulation instance i.
func (p *pair) changeSettings(t *testing.T, i int, body record) record {
	t.Helper()
	return readObject(t, callEndpoint(t, p.machines[i], http.MethodPut, settingsPath, body), http.StatusOK)
}

// isRefusedForLock reports whether a check-out was refused because of a held lock. Other
// refusals fail the test.
func isRefusedForLock(t *testing.T, a stack.Answer) bool {
	t.Helper()
	if a.Status == http.StatusCreated {
		return false
	}
	if got := joinMessages(readRefusals(t, a,
		http.StatusUnprocessableEntity)); got != "unable to acquire lock [LOCK_NOT_ACQUIRED]" {
		t.Errorf("got %q", got)
	}
	return true
}

func TestSettings_ReachAllInstances(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Storages: 2, Circulations: 2, CirculationEnv: disableLock()}, 1000)
	userID, patron := p.addPatron(t)
	held := p.acquireLock(t, userID, outlastsTests)
	lend := func() stack.Answer { return p.lendBook(t, 1, p.addBooks(t, 1)[0], patron) }
	if isRefusedForLock(t, lend()) {
		t.Fatal("a lock blocked a check-out with the feature off")
	}

	now := p.changeSettings(t, 0, record{
		"enabled": true, "lockTtlMs": outlastsTests.Milliseconds(), "retryIntervalsMs": []int{1, 2},
	})
	want := record{
		"enabled.value": true, "enabled.source": "tenant", "lockTtlMs.value": float64(outlastsTests.Milliseconds()),
		"lockTtlMs.source":        "tenant",
		"retryIntervalsMs.source": "tenant", "longestWaitMs": 3.0, "version": now["version"], "problem": nil,
	}
	checkParts(t, "PUT", now, want)
	// The test does not poll here. After the answer no check-out commits without a lock, even
	// if its instance has read the old settings.
	if !isRefusedForLock(t, lend()) {
		t.Error("a check-out on the other instance ignored the lock")
	}
	checkParts(t, "GET on the other instance", p.readSettings(t, 1), want)

	entries := p.readRecord(t, entriesPath+"?query="+
		url.QueryEscape(`scope=="mod-circulation" and key==("checkoutLockFeature")`))
	list, _ := entries["items"].([]any)
	if len(list) != 1 {
		t.Fatalf("the entries are %v", entries)
	}
	checkParts(t, "entry as FOLIO reads it", list[0].(record), record{
		"value.checkOutLockFeatureEnabled": true, "value.lockTtl": float64(outlastsTests.Milliseconds()),
		"value.noOfRetryAttempts": 2.0, "value.retryInterval": 2.0,
	})

	p.changeSettings(t, 0, record{"enabled": false})
	waitUntil(t, settingsLimit, "the feature is off on the other instance",
		func() bool { return !isRefusedForLock(t, lend()) })
	checkParts(t, "GET", p.readSettings(t, 1), record{
		"enabled.value": false, "enabled.source": "tenant", "lockTtlMs.value": 3000.0, "lockTtlMs.source": "environment",
	})
	p.releaseLock(t, held) // fails if the lock was taken over
}

func TestSettings_Conflict(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{Circulations: 2, CirculationEnv: disableLock()}, 1)
	shown := p.readSettings(t, 0)
	shown["enabled"] = true
	checkParts(t, "sent back", p.changeSettings(t, 0, shown), record{
		"enabled.value": true, "enabled.source": "tenant", "lockTtlMs.source": "environment",
		"retryIntervalsMs.source": "environment",
	})
	if a := callEndpoint(t, p.machines[1], http.MethodPut, settingsPath,
		setFields(shown, record{"enabled": false})); a.Status != http.StatusConflict {
		t.Errorf("got %d %s, want a conflict", a.Status, a.Body)
	}
	checkParts(t, "after the conflict", p.readSettings(t, 1), record{"enabled.value": true})
}

// FOLIO's own test has this scenario. The TTL is longer here, for slow hosts.
func TestSettings_FOLIOScenario(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: disableLock()}, 10)
	userID, patron := p.addPatron(t)
	books := p.addBooks(t, 5)
	readObject(t, p.lendBook(t, 0, books[0], patron), http.StatusCreated)

	entry := record{
		"id": uuid.NewString(), "scope": "mod-circulation", "key": "checkoutLockFeature",
		"value": `{"checkOutLockFeatureEnabled":true,"noOfRetryAttempts":10,"retryInterval":5,"lockTtl":600000}`,
	}
	if a := callEndpoint(t, p.Storage, http.MethodPost, entriesPath, entry); a.Status != http.StatusNoContent {
		t.Fatalf("got %d %s, want 204", a.Status, a.Body)
	}
	readObject(t, p.lendBook(t, 0, books[1], patron), http.StatusCreated)
	p.checkNoLocks(t)

	held := p.acquireLock(t, userID, outlastsTests)
	list := readRefusals(t, p.lendBook(t, 0, books[2], patron), http.StatusUnprocessableEntity)
	if list[0].Message != "unable to acquire lock" || len(list) != 1 || *list[0].Parameters[0].Value != patron {
		t.Errorf("got %+v", list)
	}
	if got := p.readState(t, userID, books[2]); got.Status != "Available" || got.Version != 1 || got.Loans != 2 {
		t.Errorf("a refused check-out left %+v", got)
	}
	p.releaseLock(t, held)
	readObject(t, p.lendBook(t, 0, books[3], patron), http.StatusCreated)

	// Without the entry, the environment's settings are in force again.
	held = p.acquireLock(t, userID, outlastsTests)
	if a := callEndpoint(t, p.Storage, http.MethodDelete, fmt.Sprintf("%s/%v", entriesPath, entry["id"]),
		nil); a.Status != http.StatusNoContent {
		t.Fatalf("got %d %s, want 204", a.Status, a.Body)
	}
	checkParts(t, "settings", p.readSettings(t, 0), record{
		"enabled.value": false, "enabled.source": "environment", "lockTtlMs.value": 3000.0, "lockTtlMs.source": "environment",
	})
	waitUntil(t, settingsLimit, "the environment's settings are in force", func() bool {
		return !isRefusedForLock(t, p.lendBook(t, 0, p.addBooks(t, 1)[0], patron))
	})
	p.releaseLock(t, held) // fails if the lock was taken over
}

func TestSettings_RefusalsNameFieldAndRange(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: disableLock()}, 1)
	good := p.changeSettings(t, 0, record{"enabled": true})
	entry := p.readRecord(t, entriesPath)["items"].([]any)[0].(record)
	entryID := fmt.Sprint(entry["id"])

	for body, want := range map[string]string{
		`{"enabled":"yes"}`:    "enabled must be true or false",
		`{"enabled":1}`:        "enabled must be true or false",
		`{"lockTtlMs":249}`:    "lockTtlMs must be an integer from 250 to 600000",
		`{"lockTtlMs":600001}`: "lockTtlMs must be an integer from 250 to 600000",
		`{"lockTtlMs":2.5}`:    "lockTtlMs must be an integer from 250 to 600000",
		`{"lockTtlMs":1e99}`:   "lockTtlMs must be an integer from 250 to 600000",
		`{"retryIntervalsMs":[-1]}`: "retryIntervalsMs must be a list of at most 100 integers from 0 to " +
			"10000, together at most 25000",
		`{"retryIntervalsMs":[9000,9000,9000]}`: "retryIntervalsMs must be a list",
		`{"retryIntervalsMs":500}`:              "retryIntervalsMs must be a list",
		`{"retryIntervalsMs":[null]}`:           "retryIntervalsMs must be a list",
		`{"lockTTL":3000}`: "lockTTL is no setting; allowed are enabled, lockTtlMs, " +
			"retryIntervalsMs, version",
		`{"enabled":"on","lockTtlMs":0}`: "lockTtlMs must be",
		`[]`:                             "The body must be a JSON object",
		`{"version":7}`:                  "version must be the version that was read",
		`{"enabled":{"value":"x","source":"tenant"}}`: "enabled must be true or false",
	} {
		a := callEndpoint(t, p.machines[0], http.MethodPut, settingsPath, []byte(body))
		if got := joinMessages(readRefusals(t, a, http.StatusUnprocessableEntity)); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}

	for value, want := range map[string]string{
		`{"lockTtl":100}`:                               "lockTtl is 100, allowed are integers from 250 to 600000",
		`{"noOfRetryAttempts":101}`:                     "noOfRetryAttempts is 101, allowed are integers from 0 to 100",
		`{"noOfRetryAttempts":-1}`:                      "noOfRetryAttempts is -1, allowed are integers from 0 to 100",
		`{"retryIntervals":[10001]}`:                    "retryIntervals[0] is 10001, allowed are integers from 0 to 10000",
		`{"retryInterval":1000,"noOfRetryAttempts":30}`: "together",
		`{"checkOutLockFeatureEnabled":"true"}`:         "checkOutLockFeatureEnabled",
		`{"checkoutLockFeatureEnabled ":true}`:          "checkOutLockFeatureEnabled",
		`"{\"lockTtl\":"`:                               "value",
		`"on"`:                                          "value must be a JSON object, or a string that holds one",
		`true`:                                          "value must be a JSON object, or a string that holds one",
	} {
		body := fmt.Sprintf(`{"id":%q,"scope":"mod-circulation","key":"checkoutLockFeature","value":%s}`, entryID, value)
		for _, a := range []stack.Answer{
			callEndpoint(t, p.Storage, http.MethodPut, entriesPath+"/"+entryID, []byte(body)),
			callEndpoint(t, p.Storage, http.MethodPost, entriesPath,
				[]byte(strings.Replace(body, entryID, uuid.NewString(), 1))),
			callEndpoint(t, p.Storage, http.MethodPut, "/check-out-lock-settings-storage", []byte(`{"value":`+value+`}`)),
		} {
			if got := joinMessages(readRefusals(t, a, http.StatusUnprocessableEntity)); !strings.Contains(got, want) {
				t.Errorf("%s: got %q, want %q", value, got, want)
			}
		}
	}
	after := p.readSettings(t, 0)
	checkParts(t, "settings after the refusals", after, record{
		"enabled.value": true, "version": good["version"], "problem": nil,
	})
	if a := callEndpoint(t, p.Storage, http.MethodPost, entriesPath,
		setFields(entry, record{"id": uuid.NewString()})); a.Status != http.StatusForbidden {
		t.Errorf("a second entry: got %d %s, want 403 as in FOLIO", a.Status, a.Body)
	}
}
