package integration_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/fault"
)

// checkNotServed fails the test unless both services refuse the pair's tenant with
// TENANT_NOT_READY and that reason.
func checkNotServed(t *testing.T, p *pair, reason string) {
	t.Helper()
	for path, c := range map[string]stack.Client{"/loan-storage/loans": p.Storage, "/circulation/loans": p.machines[0]} {
		a := callEndpoint(t, c, http.MethodGet, path, nil)
		if a.Status != http.StatusServiceUnavailable || a.Header.Get(fault.Header) != string(fault.TenantNotReady) ||
			!strings.Contains(string(a.Body), reason) {
			t.Errorf("GET %s: %d %s, want 503 with %q", path, a.Status, a.Body, reason)
		}
	}
}

func TestTenant_UnservedAffectsNoOther(t *testing.T) {
	t.Parallel()
	database := createDatabase(t)
	execSQL(t, database, `
CREATE SCHEMA bare_mod_circulation_storage;
CREATE SCHEMA folio_mod_circulation_storage;
CREATE TABLE folio_mod_circulation_storage.rmb_internal (id serial);
CREATE SCHEMA old_mod_circulation_storage;
CREATE TABLE old_mod_circulation_storage.schema_migrations AS SELECT 1::bigint AS version, false AS dirty;
CREATE SCHEMA torn_mod_circulation_storage;
CREATE TABLE torn_mod_circulation_storage.schema_migrations AS SELECT 9999::bigint AS version, true AS dirty;`)
	p := startPair(t, stack.Options{DatabaseURL: database, CirculationEnv: enableLock()}, 3)
	checkHealth(t, p.Storages[0], http.StatusOK)
	checkHealth(t, p.Circulations[0], http.StatusOK)
	_, patron := p.addPatron(t)
	if a := p.lendBook(t, 0, p.addBooks(t, 1)[0], patron); a.Status != http.StatusCreated {
		t.Errorf("a tenant that is served: %d %s", a.Status, a.Body)
	}
	for name, tt := range map[string]struct {
		tenant string
		status int
		code   fault.Code
		says   string
	}{
		"an empty schema": {
			tenant: "bare", status: http.StatusNotFound, code: fault.UnknownTenant, says: "Unknown tenant bare: install it with",
		},
		"another module's schema": {
			tenant: "folio", status: http.StatusNotFound, code: fault.UnknownTenant,
			says: "Unknown tenant folio: install it with",
		},
		"no schema": {
			tenant: "nowhere", status: http.StatusNotFound, code: fault.UnknownTenant,
			says: "Unknown tenant nowhere: install it with",
		},
		"an older schema": {
			tenant: "old", status: http.StatusServiceUnavailable, code: fault.TenantNotReady,
			says: "Tenant old has migration 1, and this build begins with migration",
		},
		"a dirty schema": {
			tenant: "torn", status: http.StatusServiceUnavailable, code: fault.TenantNotReady,
			says: "circulation-storage migrate -repair -tenant torn",
		},
	} {
		st := newClient(p.Storages[0], tt.tenant)
		circ := newClient(p.Circulations[0], tt.tenant)
		for what, a := range map[string]stack.Answer{
			"loans of storage": callEndpoint(t, st, http.MethodGet, "/loan-storage/loans", nil),
			"a lock of storage": callEndpoint(t, st, http.MethodPost, acquirePath, map[string]any{
				"userId": uuid.NewString(), "ttlMs": 1000,
			}),
			"loans of circulation": callEndpoint(t, circ, http.MethodGet, "/circulation/loans", nil),
			"one loan":             callEndpoint(t, circ, http.MethodGet, "/circulation/loans/"+uuid.NewString(), nil),
			"a check-out":          callEndpoint(t, circ, http.MethodPost, checkOutPath, p.newCheckOut("1", "2")),
		} {
			if a.Status != tt.status || a.Header.Get(fault.Header) != string(tt.code) ||
				!strings.Contains(string(a.Body), tt.says) {
				t.Errorf("%s, %s: %d %s %s, want %d %s with %q", name, what, a.Status, a.Header.Get(fault.Header), a.Body,
					tt.status, tt.code, tt.says)
			}
		}
	}
	for _, want := range []string{
		`storage_tenants{state="lacks_migrations"} 1`, `storage_tenants{state="dirty"} 1`, "checkout_lock_held ",
	} {
		// The last poll may have seen the served tenant while it was being installed.
		waitUntil(t, patience, "the metrics have "+want,
			func() bool { return strings.Contains(p.readMetrics(t, p.Storages[0]), want) })
	}
}

func TestTenant_NamedOnesMustBeReady(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{DatabaseURL: createDatabase(t), StorageEnv: []string{"TENANTS=north,south"}}, 1)
	checkHealth(t, p.Storages[0], http.StatusOK)
	execSQL(t, p.databaseURL, "UPDATE south_mod_circulation_storage.schema_migrations SET dirty = true")
	for _, base := range []string{p.Storages[0], p.Circulations[0]} {
		if says := checkHealth(t, base, http.StatusServiceUnavailable); !strings.Contains(says,
			"migrate -repair -tenant south") || strings.Contains(says, "north") {
			t.Errorf("readiness of %s says %q, want the tenant south and the command", base, says)
		}
	}
}
