package integration_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/gateway"
	"checkoutlock/integration-tests/stack"
	"checkoutlock/web/describe"
)

// startOwnGatedStack is startGatedStack for one test, which stops both in the end.
func startOwnGatedStack(
	t *testing.T, change func(circulation, storage *describe.Descriptor), env ...string,
) (*stack.Stack, *gateway.Gateway) {
	t.Helper()
	s, g, err := startGatedStack(databaseURL(t), change, env...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		burstClient.CloseIdleConnections()
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if err := g.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s, g
}

// Two libraries with the same barcodes lend at once, by users with and without a permission.
func TestGateway_ManyCheckOuts(t *testing.T) {
	t.Parallel()
	const checkOuts, books, patrons, limit, workers = 1000, 150, 50, 3, 8
	libraries := []*pair{joinSharedPair(t, limit), joinSharedPair(t, limit)}
	var users []stack.Client
	for _, p := range libraries {
		for i := range patrons {
			if _, err := p.AddPatron(t.Context(), fmt.Sprintf("patron-%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range books {
			if _, err := p.AddBook(t.Context(), fmt.Sprintf("book-%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		plain, permitted := p.machines[0], p.machines[0]
		permitted.Header = p.signIn(uuid.NewString(), mayLimit)
		users = append(users, plain, permitted)
	}
	var mu sync.Mutex
	got := map[string]int{}
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for i := worker; i < checkOuts; i += workers {
				user := users[i%len(users)]
				body := record{
					"itemBarcode":    fmt.Sprintf("book-%d", i%(books+1)), // one is unknown
					"userBarcode":    fmt.Sprintf("patron-%d", i%patrons),
					"servicePointId": libraries[i%len(users)/2].ServicePointID,
				}
				if i%3 == 0 {
					body = setFields(body, liftBlocks(liftLimit))
				}
				a, err := user.Do(t.Context(), http.MethodPost, checkOutPath, body)
				if err != nil {
					t.Errorf("check-out %d: %v", i, err)
				}
				kind := fmt.Sprint(a.Status, " ", stack.Outcome{Answer: a}.Code)
				if a.Status == http.StatusUnprocessableEntity {
					kind = fmt.Sprint(a.Status, " ", readRefusals(t, a, a.Status)[0].Code)
				}
				mu.Lock()
				got[kind]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("the answers are %v", got)
	for _, want := range []string{
		"201 ", "422 ITEM_LIMIT_MATERIAL_TYPE", "422 ITEM_ALREADY_CHECKED_OUT", "422 INSUFFICIENT_OVERRIDE_PERMISSIONS",
	} {
		if got[want] == 0 {
			t.Errorf("no answer is %q, only %v", want, slices.Sorted(maps.Keys(got)))
		}
	}
	for kind, n := range got {
		if !strings.HasPrefix(kind, "201 ") && !strings.HasPrefix(kind, "422 ") {
			t.Errorf("%d answers are %s", n, kind)
		}
	}
	for _, p := range libraries {
		p.checkNoLocks(t)
		p.checkLoansAndItemsAgree(t)
	}
}

// Each route of the services is in a descriptor, with the permissions for the calls that it makes. Only
// a gateway itself calls system routes.
func TestGateway_RoutesEachEndpoint(t *testing.T) {
	t.Parallel()
	p := joinSharedPair(t, 9)
	id, patron := p.addPatron(t)
	held := record{"userId": id, "ttlMs": 300}
	readObject(t, callEndpoint(t, p.Storage, http.MethodPost, acquirePath, held), http.StatusCreated)
	readObject(t, p.lendBook(t, 0, p.addBooks(t, 1)[0], patron), http.StatusCreated) // waits for the lock
	pages := endpoint{method: http.MethodGet, client: p.machines[0]}
	all := p.endpoints(t)
	for _, page := range []string{"/", "/switch", "/timing", "/locks", "/check-outs", "/contention", "/rules", "/try"} {
		pages.path = "/staff/" + p.Storage.Tenant + page
		all = append(all, pages)
	}
	for _, e := range all {
		if isSystem(e.path) {
			continue
		}
		callEndpoint(t, e.client, e.method, e.fillPath(uuid.NewString()), e.bodyToSend())
		if problems := p.gateway.Problems(p.Storage.Tenant); problems != "" {
			t.Errorf("%s: %s", e, problems)
		}
	}
}

// isSystem reports whether a route is in an interface of the gateway.
func isSystem(path string) bool {
	return strings.HasPrefix(path, "/_/") || slices.Contains([]string{
		"/circulation/scheduled-anonymize-processing", "/circulation/notice-session-expiration-by-timeout",
		"/scheduled-request-expiration", "/tlr-feature-toggle-job/start",
	}, path)
}

// A descriptor that lacks something makes a test fail behind the gateway.
func TestGateway_FindsWhatADescriptorForgot(t *testing.T) {
	t.Parallel()
	without := func(list []string, permission string) []string {
		return slices.DeleteFunc(list, func(p string) bool { return p == permission })
	}
	s, g := startOwnGatedStack(t, func(circulation, storage *describe.Descriptor) {
		for i, set := range circulation.PermissionSets {
			circulation.PermissionSets[i].Sub = without(set.Sub, "circulation-storage.check-ins.item.post")
		}
		for _, p := range circulation.Provides {
			for i, h := range p.Handlers {
				if h.Path == checkOutPath {
					p.Handlers[i].Desired = without(h.Desired, mayLimit)
				}
			}
		}
		for i, p := range storage.Provides {
			storage.Provides[i].Handlers = slices.DeleteFunc(p.Handlers, func(h describe.Handler) bool {
				return h.Path == "/loan-storage/renewals"
			})
		}
	})
	p := openGatedLibrary(t, s, g, newTenantID(), 1)
	checkFound := func(what string, a stack.Answer, want string) {
		t.Helper()
		if found := g.Problems(p.Storage.Tenant); a.Status/100 == 2 || !strings.Contains(found, want) {
			t.Errorf("%s: got %d %s, and the problems\n%s\nwant %s", what, a.Status, a.Body, found, want)
		}
	}
	books := p.addBooks(t, 2)
	_, patron := p.addPatron(t)
	readObject(t, p.lendBook(t, 0, books[0], patron), http.StatusCreated)

	checkFound("a permission of the module", p.checkInItem(t, books[0], p.ServicePointID),
		"/loan-storage/check-ins (request id")
	checkFound("a route", p.renewLoan(t, 0, books[0], patron), "/loan-storage/renewals (request id")
	checkFound("a desired permission", p.sendCheckOut(t, books[1], patron, liftBlocks(liftLimit), mayLimit), "")
}

func TestGateway_RefusesStrangers(t *testing.T) {
	t.Parallel()
	s, g := startOwnGatedStack(t, keepDescriptors)
	p, q := openGatedLibrary(t, s, g, newTenantID(), 1), openGatedLibrary(t, s, g, newTenantID(), 1)
	withToken := func(token string) http.Header { return http.Header{"X-Okapi-Token": {token}} }
	tests := []struct {
		name, path string
		header     http.Header
		status     int
	}{
		{name: "no token", path: "/circulation/loans", status: http.StatusUnauthorized},
		{
			name: "permissions of his own making", path: "/circulation/loans", status: http.StatusUnauthorized,
			header: http.Header{"X-Okapi-Permissions": {`["circulation.loans.collection.get"]`}},
		},
		{name: "an unknown token", path: "/circulation/loans", header: withToken("x"), status: http.StatusUnauthorized},
		{
			name: "no permission", path: "/circulation/loans", status: http.StatusForbidden,
			header: withToken(g.AddUser(p.Storage.Tenant, uuid.NewString(), "users.item.get")),
		},
		{
			name: "a user of another tenant", path: "/circulation/loans", header: q.machines[0].Header,
			status: http.StatusForbidden,
		},
		{
			name: "a desk at storage", path: "/loan-storage/loans", header: p.machines[0].Header, status: http.StatusForbidden,
		},
		{name: "no route", path: "/metrics", header: p.machines[0].Header, status: http.StatusNotFound},
		{name: "a system's route", path: "/_/tenant/x", header: p.machines[0].Header, status: http.StatusNotFound},
		{name: "a desk", path: "/circulation/loans", header: p.machines[0].Header, status: http.StatusOK},
	}
	for _, tt := range tests {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL()+tt.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = tt.header.Clone()
		if r.Header == nil {
			r.Header = http.Header{}
		}
		r.Header.Set("X-Okapi-Tenant", p.Storage.Tenant)
		resp, err := burstClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // it was only read
		if resp.StatusCode != tt.status {
			t.Errorf("%s: got %d, want %d", tt.name, resp.StatusCode, tt.status)
		}
		if found := g.Problems(p.Storage.Tenant); (found == "") != (tt.status == http.StatusOK) {
			t.Errorf("%s: the gateway recorded %q", tt.name, found)
		}
	}
}

func TestGateway_RoutesReadiness(t *testing.T) {
	t.Parallel()
	tenant := newTenantID()
	s, g := startOwnGatedStack(t, keepDescriptors, "STORAGE_READY_TENANT="+tenant)
	openGatedLibrary(t, s, g, tenant, 1)
	checkHealth(t, s.Circulations[0], http.StatusOK)
	if err := s.StopStorage(0); err != nil {
		t.Fatal(err)
	}
	checkHealth(t, s.Circulations[0], http.StatusServiceUnavailable)
}
