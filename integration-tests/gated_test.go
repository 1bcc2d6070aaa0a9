package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/gateway"
	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/okapi"
	"checkoutlock/web/describe"
)

// circulationModule begins the id of circulation in its descriptor; the version follows.
const circulationModule = "mod-circulation-checkoutlock"

// readDescriptor reads a module descriptor of docs.
func readDescriptor(service string) (d describe.Descriptor, err error) {
	raw, err := os.ReadFile("../docs/descriptors/" + service + ".json")
	if err == nil {
		err = json.Unmarshal(raw, &d)
	}
	return d, err
}

// startGatedStack runs a stack behind a gateway, which circulation uses to reach storage. change may
// change the descriptors.
func startGatedStack(
	databaseURL string, change func(circulation, storage *describe.Descriptor), circulationEnv ...string,
) (*stack.Stack, *gateway.Gateway, error) {
	ctx := context.Background()
	circulation, err := readDescriptor("circulation")
	if err != nil {
		return nil, nil, err
	}
	storage, err := readDescriptor("circulation-storage")
	if err != nil {
		return nil, nil, err
	}
	change(&circulation, &storage)
	g, err := gateway.Start(ctx, checkAnswer)
	if err != nil {
		return nil, nil, err
	}
	s, err := stack.Start(ctx, stack.Options{
		DatabaseURL: databaseURL, StorageEnv: []string{"DATABASE_MAX_CONNS=32"},
		CirculationEnv: enableLock(append(circulationEnv, "STAFF_AUTH=gateway")...),
		Via: func(_ int, url string) string {
			err = g.Register(storage, url)
			return g.URL()
		},
	})
	if s != nil {
		err = errors.Join(err, g.Register(circulation, s.Circulations[0]))
	}
	return s, g, err
}

func keepDescriptors(_, _ *describe.Descriptor) {}

// sharedPair is the pair behind a gateway that the tests of scenarios share. Each test has a tenant
// and users of its own.
var sharedPair = struct {
	sync.Mutex

	stack   *stack.Stack
	gateway *gateway.Gateway
}{}

// stopSharedPair stops it if a test has used it.
func stopSharedPair() error {
	if sharedPair.stack == nil {
		return nil
	}
	burstClient.CloseIdleConnections()
	return errors.Join(sharedPair.stack.Stop(), sharedPair.gateway.Stop())
}

// joinSharedPair makes a library with that limit in a new tenant of the shared pair. All calls pass
// through the gateway. A call that it refuses fails the test, and so does an answer that no document
// describes, also if circulation is the caller.
func joinSharedPair(t *testing.T, limit int) *pair {
	t.Helper()
	sharedPair.Lock()
	defer sharedPair.Unlock()
	if sharedPair.stack == nil {
		s, g, err := startGatedStack(databaseURL(t), keepDescriptors)
		if err != nil {
			t.Fatal(err)
		}
		sharedPair.stack, sharedPair.gateway = s, g
	}
	return openGatedLibrary(t, sharedPair.stack, sharedPair.gateway, newTenantID(), limit)
}

// openGatedLibrary makes a library with that limit in a new tenant.
func openGatedLibrary(t *testing.T, s *stack.Stack, g *gateway.Gateway, tenant string, limit int) *pair {
	t.Helper()
	st := newClient(s.Storages[0], tenant)
	installTenant(t, st)
	lib, err := stack.NewLibrary(t.Context(), st, limit)
	if err == nil {
		err = g.Enable(t.Context(), tenant)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{Stack: s, Library: lib, databaseURL: databaseURL(t), gateway: g}
	p.machines = []stack.Client{newClient(g.URL(), tenant)}
	p.machines[0].Header = p.signIn(uuid.NewString())
	p.Storage.Base, p.Storage.Header = g.URL(), http.Header{okapi.TokenHeader: {
		g.AddUser(tenant, uuid.NewString(), "circulation-storage.all", "circulation-storage-checkoutlock.all"),
	}}
	t.Cleanup(func() {
		if problems := g.Problems(tenant); problems != "" {
			t.Errorf("at the gateway:\n%s", problems)
		}
	})
	return p
}

// signIn returns the headers of a member of staff with those permissions. Behind a gateway the user
// has what the handlers of circulation require too.
func (p *pair) signIn(userID string, permissions ...string) http.Header {
	if p.gateway == nil {
		list, _ := json.Marshal(append([]string{}, permissions...)) //nolint:errchkjson // strings have JSON
		return http.Header{okapi.UserIDHeader: {userID}, okapi.PermissionsHeader: {string(list)}}
	}
	all := append(p.gateway.Required(circulationModule), permissions...)
	return http.Header{okapi.TokenHeader: {p.gateway.AddUser(p.Storage.Tenant, userID, all...)}}
}

// addHeader returns the headers and one more.
func addHeader(h http.Header, name, value string) http.Header {
	more := http.Header{name: {value}}
	maps.Copy(more, h)
	return more
}

// callTimer calls a timer of the library's tenant by the gateway.
func (p *pair) callTimer(t *testing.T, path string) stack.Answer {
	t.Helper()
	a, err := p.gateway.CallTimer(t.Context(), p.Storage.Tenant, path)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
