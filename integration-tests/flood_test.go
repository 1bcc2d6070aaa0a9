package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"checkoutlock/integration-tests/stack"
)

const (
	floodPatrons = 1000
	// floodSockets is how many connections are open at once: many systems allow a process 20,000 files.
	floodSockets = 15_000
	floodMemory  = 256 // megabytes
)

// The service itself measures how long it takes, because the clients need most of the processors. The
// test is not parallel. Other processes may slow one flood, but not each time.
func TestOverload_OfAFlood(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the memory of a process is read from /proc")
	}
	n := 20_000
	if raceDetector {
		n = 2000
	}
	p := startPair(t, stack.Options{}, overloadLimit)
	program := buildProgram(t, "circulation")
	for try := 1; ; try++ {
		late := floodProcess(t, p, program, n)
		switch {
		case late <= float64(n)/1000 || t.Failed(): // the system may stop a thread in between
			return
		case try == 3:
			t.Fatalf("%v of %d check-outs were refused or admitted too late, in the third flood too", late, n)
		}
	}
}

// floodProcess sends n check-outs at once to a circulation that has just started. It returns how many
// were refused or admitted too late.
func floodProcess(t *testing.T, p *pair, program string, n int) (late float64) {
	t.Helper()
	c := startProgram(t, program, findFreePort(t), "STORAGE_URL="+p.Storages[0], "STAFF_AUTH=none",
		"CHECKOUT_LOCK_FEATURE_ENABLED=true")
	ids, barcodes := p.addPatrons(t, floodPatrons)
	var all []stack.CheckOut
	for i, book := range p.addCopies(t, n) {
		all = append(all, p.newCheckOut(book, barcodes[i%len(barcodes)]))
	}
	machine := newClient(c.url, p.Storage.Tenant)
	machine.HTTP = newFloodClient()
	answers, longest := map[string]int{}, time.Duration(0)
	for _, o := range stack.SendBurst(t.Context(), []stack.Client{machine}, all) {
		answers[fmt.Sprint(o.Status, " ", o.Header.Get("X-Fault-Code"))]++ // 0 without an answer
		if o.Lent() {
			longest = max(longest, o.Took)
		}
	}
	for _, id := range ids {
		if got := p.countOpenLoans(t, id); got > overloadLimit {
			t.Errorf("a patron has %d books, want at most %d", got, overloadLimit)
		}
	}
	memory := readPeakMemory(t, c.system.Pid)
	if memory > floodMemory {
		t.Errorf("the process used %d MB, want at most %d", memory, floodMemory)
	}
	m := p.readMetrics(t, c.url)
	sent := 0.0
	for result, bound := range map[string]string{
		"line_full": "0.05", "patron_full": "0.05", "wait_over": "5", "admitted": "5",
	} {
		count := readSample(m, fmt.Sprintf(`circulation_admission_wait_seconds_count{result=%q}`, result))
		over := count - readSample(m, fmt.Sprintf(`circulation_admission_wait_seconds_bucket{result=%q,le=%q}`, result,
			bound))
		t.Logf("%s: %v, %v of them after more than %s s", result, count, over, bound)
		late, sent = late+over, sent+count
	}
	t.Logf("answers %v, the last loan after %s; %d MB at most", answers, longest, memory)
	if sent < float64(n)*0.9 {
		t.Errorf("%v check-outs arrived, want nearly %d", sent, n)
	}
	return late
}

// newFloodClient returns a client with a connection for each request, up to floodSockets.
func newFloodClient() *http.Client {
	dialing := make(chan struct{}, 256) // a connection that waits for its request is closed after 5 s
	return &http.Client{
		Timeout: 2 * time.Minute,
		Transport: &http.Transport{
			MaxConnsPerHost: floodSockets, DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				dialing <- struct{}{}
				defer func() { <-dialing }()
				return (&net.Dialer{}).DialContext(ctx, network, address)
			},
		},
	}
}

// readPeakMemory returns the largest resident memory of the process so far, in megabytes.
func readPeakMemory(t *testing.T, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := bytes.Cut(raw, []byte("VmHWM:"))
	kilobytes, err := strconv.Atoi(string(bytes.Fields(after)[0]))
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes / 1024
}

// readSample returns the value of one series, 0 if it is not there.
func readSample(metrics, series string) float64 {
	for line := range strings.Lines(metrics) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			n, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return n
		}
	}
	return 0
}
