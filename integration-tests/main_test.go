package integration_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/devpostgres"
	"checkoutlock/devpostgres/testserver"
	"checkoutlock/integration-tests/browser"
	"checkoutlock/integration-tests/gateway"
	"checkoutlock/integration-tests/openapi"
	"checkoutlock/integration-tests/stack"
)

// chromium is the browser of all tests that need one.
var chromium browser.Chromium

// spares are the schemas of tenants that tests have given back. Tests reach them in a variable
// only.
var spares testserver.Spares

// TestMain stops the browser and the PostgreSQL that tests have started, and removes the programs that
// they have built.
func TestMain(m *testing.M) {
	var err error
	if programFolder, err = os.MkdirTemp("", "checkoutlock-programs-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(programFolder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := stopSharedPair(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if url := os.Getenv("TEST_DATABASE_URL"); url != "" {
		if err := spares.Drop(context.Background(), url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := chromium.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if pg, err := database(); pg != nil {
		if err := errors.Join(err, pg.Stop()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// database starts a throw-away PostgreSQL once. It returns nil if TEST_DATABASE_URL names a
// server.
var database = sync.OnceValues(func() (*devpostgres.Server, error) {
	if os.Getenv("TEST_DATABASE_URL") != "" {
		return nil, nil
	}
	return devpostgres.Start(context.Background(), devpostgres.Options{
		BinDir: os.Getenv("PG_BIN"), Settings: map[string]string{"autovacuum": "off"}, // as withdb
	})
})

func databaseURL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv("TEST_DATABASE_URL"); url != "" {
		return url
	}
	pg, err := database()
	if err != nil {
		t.Fatal(err)
	}
	return pg.URL()
}

// answerChecker knows the services' OpenAPI documents.
var answerChecker = sync.OnceValues(openapi.NewChecker)

func checkAnswer(r *http.Request, a stack.Answer) error {
	checker, err := answerChecker()
	if err != nil {
		return err
	}
	return checker.Check(r, a.Status, a.Header, a.Body)
}

// newClient returns a client of an instance, which checks each answer against the services' OpenAPI
// documents.
func newClient(base, tenant string) stack.Client {
	return stack.Client{Base: base, Tenant: tenant, HTTP: burstClient, Check: checkAnswer}
}

// burstClient keeps enough connections for tests that send many requests at once.
var burstClient = &http.Client{
	Timeout:   time.Minute,
	Transport: &http.Transport{MaxIdleConnsPerHost: 100, MaxIdleConns: 1000},
}

// pair is a running stack with a library of its own.
type pair struct {
	*stack.Stack
	*stack.Library
	machines    []stack.Client // one per circulation instance
	databaseURL string
	gateway     *gateway.Gateway // nil for none
}

// startPair runs a stack and makes a library with that limit in a new tenant. The end of
// the test removes both.
func startPair(t testing.TB, o stack.Options, limit int) *pair {
	t.Helper()
	shared := o.DatabaseURL == ""
	if shared {
		o.DatabaseURL = databaseURL(t)
	}
	o.StorageEnv = append([]string{"DATABASE_MAX_CONNS=32"}, o.StorageEnv...)
	s, err := stack.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		burstClient.CloseIdleConnections() // an unused connection delays the stop by 5 s
		if err := s.Stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	tenant := newTenantID()
	st := newClient(s.Storages[0], tenant)
	if shared {
		installTenant(t, st)
	} else {
		t.Cleanup(func() {
			if err := purgeTenant(context.Background(), st); err != nil {
				t.Errorf("purging: %v", err)
			}
		})
	}
	lib, err := stack.NewLibrary(t.Context(), st, limit)
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{Stack: s, Library: lib, databaseURL: o.DatabaseURL}
	for _, base := range s.Circulations {
		p.machines = append(p.machines, newClient(base, tenant))
	}
	return p
}

func newTenantID() string { return "it_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:16] }

// installTenant gives the tenant a spare schema of the shared database, or installs it if there is
// none. The end of the test removes the tenant and keeps its schema for another one.
func installTenant(t testing.TB, st stack.Client) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, databaseURL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	used, err := spares.Install(ctx, conn, schemaName(st.Tenant), func(ctx context.Context) error {
		return st.InstallTenant(ctx, false)
	})
	if err != nil {
		t.Fatal(err)
	}
	// There has been a reader of events, which are counted.
	if _, err := conn.Exec(ctx, "UPDATE "+schemaName(st.Tenant)+".outbox_lease SET fence = 1"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := spares.GiveBack(ctx, conn, used, func(ctx context.Context) error { return purgeTenant(ctx, st) })
		if err != nil {
			t.Errorf("removing the tenant: %v", err)
		}
	})
}

func purgeTenant(ctx context.Context, st stack.Client) error {
	_, err := st.Must(ctx, http.MethodPost, "/_/tenant", map[string]any{"purge": true})
	return err
}

// schemaName returns the name of a tenant's schema.
func schemaName(tenant string) string { return tenant + "_mod_circulation_storage" }

// enableLock returns circulation's settings with the feature on and with long queues, so
// that no check-out is refused because of others.
func enableLock(more ...string) []string {
	return append([]string{
		"CHECKOUT_LOCK_FEATURE_ENABLED=true", "RETRY_INTERVAL_MS=5000|5000|5000|5000|5000", "CHECKOUT_CONCURRENCY=1000",
	}, more...)
}

// storeLockEnabled turns the lock on in the tenant's settings, so that no instance
// announces its environment.
func (p *pair) storeLockEnabled(t *testing.T) {
	t.Helper()
	on := record{"value": record{"checkOutLockFeatureEnabled": true}}
	readObject(t, callEndpoint(t, p.Storage, http.MethodPut, "/check-out-lock-settings-storage", on), http.StatusOK)
}

// openStaffPage opens a tab with the library's first staff page on instance i. Tests call
// it after startPair, so that the tab is closed before the services.
func (p *pair) openStaffPage(t testing.TB, i int, opts ...browser.Option) *browser.Page {
	t.Helper()
	tab := chromium.Open(t, opts...)
	tab.Goto(p.staffURL(i, "/"))
	return tab
}

// staffURL returns the address of a staff page of the library on instance i.
func (p *pair) staffURL(i int, page string) string {
	return p.Circulations[i] + "/staff/" + p.Storage.Tenant + page
}

// addPatron registers a patron and returns id and barcode.
func (p *pair) addPatron(t testing.TB) (id, barcode string) {
	t.Helper()
	barcode = "p-" + uuid.NewString()
	id, err := p.AddPatron(t.Context(), barcode)
	if err != nil {
		t.Fatal(err)
	}
	return id, barcode
}

// addPatrons registers n patrons and returns ids and barcodes.
func (p *pair) addPatrons(t testing.TB, n int) (ids, barcodes []string) {
	t.Helper()
	for range n {
		id, barcode := p.addPatron(t)
		ids, barcodes = append(ids, id), append(barcodes, barcode)
	}
	return ids, barcodes
}

// addBooks adds n books and returns their barcodes.
func (p *pair) addBooks(t testing.TB, n int) []string {
	t.Helper()
	barcodes := make([]string, n)
	for i := range barcodes {
		barcodes[i] = "b-" + uuid.NewString()
		if _, err := p.AddBook(t.Context(), barcodes[i]); err != nil {
			t.Fatal(err)
		}
	}
	return barcodes
}

// newCheckOut returns the body of a check-out.
func (p *pair) newCheckOut(book, patron string) stack.CheckOut {
	return stack.CheckOut{ItemBarcode: book, UserBarcode: patron, ServicePointID: p.ServicePointID}
}

// lendBook checks one book out on instance i.
func (p *pair) lendBook(t testing.TB, i int, book, patron string) stack.Answer {
	t.Helper()
	return callEndpoint(t, p.machines[i], http.MethodPost, checkOutPath, p.newCheckOut(book, patron))
}

// callEndpoint sends a request and fails the test if no answer comes.
func callEndpoint(t testing.TB, c stack.Client, method, path string, body any) stack.Answer {
	t.Helper()
	a, err := c.Do(t.Context(), method, path, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// countOpenLoans counts the patron's open loans.
func (p *pair) countOpenLoans(t testing.TB, userID string) int {
	t.Helper()
	n, err := p.CountOpenLoans(t.Context(), userID)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// checkNoLocks fails the test if a lock is stored.
func (p *pair) checkNoLocks(t testing.TB) {
	t.Helper()
	n, err := p.CountLocks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n != 0 {
		t.Errorf("%d locks are left", n)
	}
}

// patience is the longest wait for a condition. Also on a busy host, only a fault takes
// longer.
const patience = 3 * time.Minute

// waitUntil waits until f is true, at most for limit. It calls f once more after that time,
// because the machine may have stalled.
func waitUntil(t testing.TB, limit time.Duration, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		late := time.Now().After(deadline)
		if f() {
			return
		}
		if late {
			t.Fatalf("%s: not within %s", what, limit)
		}
		<-tick.C
	}
}

// checkHealth fails the test unless the instance is alive and readiness has that status.
// It returns the text of readiness.
func checkHealth(t *testing.T, base string, ready int) string {
	t.Helper()
	c := newClient(base, "")
	if a := callEndpoint(t, c, http.MethodGet, "/admin/health", nil); a.Status != http.StatusOK {
		t.Errorf("health of %s: %d %s, want 200", base, a.Status, a.Body)
	}
	a := callEndpoint(t, c, http.MethodGet, "/admin/health/ready", nil)
	if a.Status != ready || len(a.Body) == 0 {
		t.Errorf("readiness of %s: %d %s, want %d", base, a.Status, a.Body, ready)
	}
	return string(a.Body)
}
