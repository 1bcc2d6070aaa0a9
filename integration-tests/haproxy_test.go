package integration_test

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas"
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
		if bytes.Count(text, []byte(from)) != 1 {
			t.Fatalf("%s has not one %q", file, from)
		}
		text = bytes.Replace(text, []byte(from), []byte(to), 1)
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
// the pair and two ports of this host. It skips the test if there is no HAProxy.
func startHAProxy(t *testing.T, p *pair, circulation, storage string) {
	t.Helper()
	ended := runHAProxy(t, "../deploy/haproxy.cfg", map[string]string{
		"bind :9801": "bind " + circulation, "bind :8081": "bind " + storage,
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
