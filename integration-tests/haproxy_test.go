package integration_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"checkoutlock/devpostgres/testserver"
	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// hostOf returns host and port of an address.
func hostOf(base string) string { return strings.TrimPrefix(base, "http://") }

// runHAProxy runs HAProxy with a configuration of deploy/, in which it replaces texts. It skips the
// test if there is no HAProxy.
func runHAProxy(t *testing.T, file string, replace map[string]string) (ended <-chan struct{}) {
	t.Helper()
	program, err := findHAProxy()
	if err != nil {
		t.Skipf("there is no HAProxy to test with (on Debian, as root: apt-get install haproxy): %v", err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range replace {
		if !bytes.Contains(text, []byte(from)) {
			t.Fatalf("%s lacks %q", file, from)
		}
		text = bytes.ReplaceAll(text, []byte(from), []byte(to))
	}
	config := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), program, "-c", "-f", config).CombinedOutput(); err != nil ||
		strings.Contains(string(out), "WARNING") {
		t.Fatalf("the configuration: %v\n%s", err, out)
	}
	return runProgram(t, program, "-db", "-f", config)
}

// startHAProxy starts HAProxy with the configuration of docker-compose.yml, for the instances of
// the pair and two ports of this host. It skips the test if there is no HAProxy. It returns the socket
// for commands.
func startHAProxy(t *testing.T, p *pair, circulation, storage string) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "admin.sock")
	ended := runHAProxy(t, "../deploy/haproxy.cfg", map[string]string{
		"    maxconn 4000\n": "    maxconn 4000\n    stats socket " + socket + " level admin\n",
		"bind :9801":         "bind " + circulation, "bind :8081": "bind " + storage,
		" circulation-1:9801": " " + hostOf(p.Circulations[0]), " circulation-2:9801": " " + hostOf(p.Circulations[1]),
		" storage-1:8081": " " + hostOf(p.Storages[0]), " storage-2:8081": " " + hostOf(p.Storages[1]),
	})
	client := stack.Client{Base: "http://" + circulation}
	waitUntil(t, patience, "circulation is ready through HAProxy", func() bool {
		select {
		case <-ended:
			t.Fatal("HAProxy ended")
		default:
		}
		a, err := client.Do(t.Context(), http.MethodGet, "/admin/health/ready", nil)
		return err == nil && a.Status == http.StatusOK
	})
	return socket
}

// countDown returns how many servers HAProxy has found not ready.
func countDown(t *testing.T, socket string) int {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "show stat -1 4 -1\n"); err != nil {
		t.Fatal(err)
	}
	servers, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(servers, []byte(",DOWN,"))
}

func TestHAProxy_LendsWhileOneInstanceOfEachIsGone(t *testing.T) {
	t.Parallel()
	circulation := "127.0.0.1:" + strconv.Itoa(findFreePort(t))
	storage := "127.0.0.1:" + strconv.Itoa(findFreePort(t))
	p := startPair(t, stack.Options{
		Storages: 2, Circulations: 2, CirculationEnv: enableLock(), StorageEnv: []string{"DRAIN_DELAY=3s"},
		CirculationEnvOf: func(int) []string { return []string{"DRAIN_DELAY=3s"} },
		Via:              func(int, string) string { return "http://" + storage },
	}, 3)
	startHAProxy(t, p, circulation, storage)
	id, patron := p.addPatron(t)
	books := p.addBooks(t, 4)
	desk := p.machines[0]
	desk.Base = "http://" + circulation
	const address = "127.0.0.2"
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	desk.HTTP = &http.Client{Transport: &http.Transport{DialContext: from.DialContext, DisableKeepAlives: true}}
	lend := func(book string, want int) {
		t.Helper()
		if a := callEndpoint(t, desk, http.MethodPost, checkOutPath, p.newCheckOut(book, patron)); a.Status != want {
			t.Fatalf("answered %d %s, want %d", a.Status, a.Body, want)
		}
	}
	lend(books[0], http.StatusCreated)
	for i, stop := range []func(int) error{p.StopStorage, p.StopCirculation} {
		if err := stop(1); err != nil {
			t.Fatal(err)
		}
		lend(books[i+1], http.StatusCreated)
	}
	lend(books[3], http.StatusUnprocessableEntity)
	if open := p.countOpenLoans(t, id); open != 3 {
		t.Errorf("the patron has %d loans, want the limit of 3", open)
	}
	var past schemas.PastCheckOuts
	waitUntil(t, patience, "the refusal is in the history", func() bool {
		p.readInto(t, "/check-out-history-storage/check-outs?itemBarcode="+books[3], &past)
		return len(past.CheckOuts) > 0
	})
	if machine := past.CheckOuts[0].Machine; machine != address {
		t.Errorf("the history names the machine %s, want %s, and not HAProxy", machine, address)
	}
}

// Each storage has lines of its own. A place that waits in one for a try at another delays the patron's others.
func TestHAProxy_OneStorageGetsAllTriesOfACheckOut(t *testing.T) {
	t.Parallel()
	circulation := "127.0.0.1:" + strconv.Itoa(findFreePort(t))
	storage := "127.0.0.1:" + strconv.Itoa(findFreePort(t))
	p := startPair(t, stack.Options{
		Storages: 2, Circulations: 2, CirculationEnv: enableLock("RETRY_INTERVAL_MS=20|20|20|20|20|20|20"),
		Via: func(int, string) string { return "http://" + storage },
	}, 1)
	startHAProxy(t, p, circulation, storage)
	userID, patron := p.addPatron(t)
	p.acquireLock(t, userID, outlastsTests)
	book := p.addBooks(t, 1)[0]
	if a := p.lendBook(t, 0, book, patron); !strings.Contains(string(a.Body), "LOCK_NOT_ACQUIRED") {
		t.Fatalf("answered %d %s, want LOCK_NOT_ACQUIRED", a.Status, a.Body)
	}
	const none = `checkout_lock_acquires_total{outcome="held"} 0`
	idle := 0
	for _, base := range p.Storages {
		if strings.Contains(p.readMetrics(t, base), none+"\n") {
			idle++
		}
	}
	if idle != 1 {
		t.Errorf("%d of 2 storages got no try of the check-out, want 1", idle)
	}
}

func TestHAProxy_PassesOnWhatIsAway(t *testing.T) {
	t.Parallel()
	circulation := "127.0.0.1:" + strconv.Itoa(findFreePort(t))
	storage := "127.0.0.1:" + strconv.Itoa(findFreePort(t))
	pg := testserver.Start(t, nil)
	p := startPair(t, stack.Options{
		DatabaseURL: pg.URL(), Storages: 2, Circulations: 2, Via: func(int, string) string { return "http://" + storage },
	}, 1)
	socket := startHAProxy(t, p, circulation, storage)
	if err := pg.Kill(); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, patience, "HAProxy finds none ready", func() bool { return countDown(t, socket) == 4 })
	client := stack.Client{Base: "http://" + circulation, Tenant: p.Storage.Tenant}
	a, err := client.Do(t.Context(), http.MethodGet, "/admin/health/ready", nil)
	const want = "not ready: storage is not ready: PostgreSQL at "
	if err != nil || !strings.HasPrefix(string(a.Body), want) {
		t.Errorf("readiness answers %q, %v, want %q and its address", a.Body, err, want)
	}
	a, err = client.Do(t.Context(), http.MethodGet, "/circulation/loans", nil)
	if err != nil || a.Status != http.StatusServiceUnavailable || a.Header.Get(fault.Header) != string(fault.Unavailable) {
		t.Errorf("a call is answered %d %s, %v, want a 503 of circulation", a.Status, a.Body, err)
	}
	restart(t, pg, p)
}
