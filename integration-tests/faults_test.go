package integration_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	circulation "checkoutlock/circulation/app"
	"checkoutlock/integration-tests/stack"
)

// shortWait are settings with which a lock lives for a minute, and a check-out waits 200 ms.
// A test fails with them if it leaves a lock behind or needs a held one.
var shortWait = enableLock("LOCK_TTL_MS=60000", "RETRY_INTERVAL_MS=200")

func TestLinkFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		fault  linkFault
		status int
		says   string
		leaves state
	}{
		{
			name:   "a lost lock request is repeated",
			fault:  linkFault{method: http.MethodPost, path: acquirePath, times: 1, handle: loseRequest},
			status: http.StatusCreated, leaves: lentOnce,
		},
		{
			name:   "a lost grant costs no TTL",
			fault:  linkFault{method: http.MethodPost, path: acquirePath, times: 1, handle: loseAnswer},
			status: http.StatusCreated, leaves: lentOnce,
		},
		{
			name:   "a commit with a lost answer lends once",
			fault:  linkFault{method: http.MethodPost, path: commitPath, times: 1, handle: loseAnswer},
			status: http.StatusCreated, leaves: lentOnce,
		},
		{
			name:   "a commit answered by a proxy lends once",
			fault:  linkFault{method: http.MethodPost, path: commitPath, times: 1, handle: answerWith(http.StatusBadGateway)},
			status: http.StatusCreated, leaves: lentOnce,
		},
		{
			name:   "a commit without any answer is read back",
			fault:  linkFault{method: http.MethodPost, path: commitPath, times: always, handle: loseAnswer},
			status: http.StatusCreated, leaves: lentOnce,
		},
		{
			name:   "a commit that never arrives lends nothing",
			fault:  linkFault{method: http.MethodPost, path: commitPath, times: always, handle: loseRequest},
			status: http.StatusServiceUnavailable, says: "The item was not lent", leaves: untouched,
		},
		{
			name:   "an unreachable lock lends nothing",
			fault:  linkFault{method: http.MethodPost, path: acquirePath, times: always, handle: loseRequest},
			status: http.StatusServiceUnavailable, says: "Storage was not reached", leaves: untouched,
		},
		{
			name:   "a lock request that hangs lends nothing",
			fault:  linkFault{method: http.MethodPost, path: acquirePath, times: always, handle: hangCall},
			status: http.StatusGatewayTimeout, says: "Storage did not answer in time", leaves: untouched,
		},
	}
	p, links := startPairWithLinks(t, stack.Options{Circulations: len(tests), CirculationEnv: shortWait}, 1)
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			id, patron := p.addPatron(t)
			book := p.addBooks(t, 1)[0]
			links[i].acquires = tt.fault.path == acquirePath
			links[i].addFault(tt.fault)
			a := p.lendBook(t, i, book, patron)
			links[i].removeFaults()
			if a.Status != tt.status || !strings.Contains(string(a.Body), tt.says) {
				t.Errorf("answered %d %s, want %d %s", a.Status, a.Body, tt.status, tt.says)
			}
			if got := p.readState(t, id, book); got != tt.leaves {
				t.Errorf("left %+v, want %+v", got, tt.leaves)
			}
			if a.Status == http.StatusCreated {
				return
			}
			if a := p.lendBook(t, i, book, patron); a.Status != http.StatusCreated {
				t.Errorf("the next try was answered %d %s", a.Status, a.Body)
			}
		})
	}
}

func TestLinkFaults_OfEachCall(t *testing.T) {
	t.Parallel()
	t.Run("the commit takes the lock", func(t *testing.T) {
		t.Parallel()
		checkEachCall(t, startPairWithLinks)
	})
	t.Run("the lock is acquired", func(t *testing.T) {
		t.Parallel()
		checkEachCall(t, startPairThatAcquires, "POST "+acquirePath)
	})
}

// checkEachCall lets each call of a check-out fail: more, and those of every check-out.
func checkEachCall(t *testing.T, start func(*testing.T, stack.Options, int) (*pair, []*link), more ...string) {
	const settings = "GET /check-out-lock-settings-storage"
	// These are all calls of the first check-out of an instance, by a proxy, of a requested
	// book, with a fixed due date. Later ones find most records in the cache. Without the tenant's
	// settings, the environment's count.
	calls := append(more,
		"GET /circulation-settings-storage/circulation-settings", "POST "+
			factsPath, "GET /groups/{id}", "GET /locations/{id}",
		"GET /material-types/{id}", "GET /circulation-rules-storage", "GET /loan-policy-storage/loan-policies/{id}",
		"GET /fixed-due-date-schedule-storage/fixed-due-date-schedules/{id}", settings,
		"POST "+commitPath,
	)
	p, links := start(t, stack.Options{Circulations: 1 + len(calls), CirculationEnv: shortWait}, 1)
	p.storeLockEnabled(t)
	p.storeRules(t, p.formatRules("m "+p.MaterialTypeID, p.addTermPolicy(t)))
	proxy, proxyCard := p.addPatron(t)
	prepare := func(t *testing.T) (patronID, book string, body record) {
		t.Helper()
		patronID, patron := p.addPatron(t)
		itemID, book := p.addItem(t)
		p.addRecord(t, "/proxiesfor", record{"userId": patronID, "proxyUserId": proxy, "status": "Active"})
		p.addRequest(t, itemID, patronID, 1)
		return patronID, book, record{
			"itemBarcode": book, "userBarcode": patron, "servicePointId": p.ServicePointID, "proxyUserBarcode": proxyCard,
		}
	}
	const path = checkOutPath
	_, _, body := prepare(t)
	if a := callEndpoint(t, p.machines[len(calls)], http.MethodPost, path, body); a.Status != http.StatusCreated {
		t.Fatalf("a check-out without faults: %d %s", a.Status, a.Body)
	}
	made := slices.Sorted(slices.Values(links[len(calls)].listCalls()))
	if want := slices.Sorted(slices.Values(calls)); !slices.Equal(made, want) {
		t.Fatalf("a check-out makes the calls\n%q\nbut the test covers\n%q", made, want)
	}
	for i, name := range calls {
		method, failing, _ := strings.Cut(strings.TrimSuffix(name, "{id}"), " ")
		earlier := 0
		for _, other := range calls[:i] {
			if other == name {
				earlier++
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, book, body := prepare(t)
			links[i].addFault(linkFault{
				method: method, path: failing, skip: earlier, times: always, handle: answerWith(http.StatusInternalServerError),
			})
			wantStatus, want := http.StatusInternalServerError, untouched
			want.Requests = 1
			switch name {
			case settings:
				wantStatus, want = http.StatusCreated, lentOnce
			}
			if a := callEndpoint(t, p.machines[i], http.MethodPost, path, body); a.Status != wantStatus {
				t.Errorf("answered %d %s, want %d", a.Status, a.Body, wantStatus)
			}
			if got := p.readState(t, id, book); got != want {
				t.Errorf("left %+v, want %+v", got, want)
			}
		})
	}
}

func TestLinkFaults_503OfASidecar(t *testing.T) {
	t.Parallel()
	p, links := startPairThatAcquires(t, stack.Options{CirculationEnv: enableLock()}, 1) // waits of 5 s
	id, patron := p.addPatron(t)
	book := p.addBooks(t, 1)[0]
	links[0].addFault(linkFault{
		method: http.MethodPost, path: acquirePath, times: always, handle: answerWith(http.StatusServiceUnavailable),
	})
	if a := p.lendBook(t, 0, book, patron); a.Status != http.StatusServiceUnavailable {
		t.Errorf("answered %d %s, want 503", a.Status, a.Body)
	}
	tries := 0
	for _, c := range links[0].listCalls() {
		if c == "POST "+acquirePath {
			tries++
		}
	}
	if tries != 2 {
		t.Errorf("%d lock requests were sent, want 2: one repeat and no wait", tries)
	}
	if got := p.readState(t, id, book); got != untouched {
		t.Errorf("left %+v, want %+v", got, untouched)
	}
}

func TestLinkFaults_StorageGone(t *testing.T) {
	t.Parallel()
	t.Run("before the commit that takes the lock", func(t *testing.T) {
		t.Parallel()
		checkStorageGone(t, startPairWithLinks, http.StatusGatewayTimeout) // the commit may have arrived
	})
	t.Run("before the lock is acquired", func(t *testing.T) {
		t.Parallel()
		checkStorageGone(t, startPairThatAcquires, http.StatusServiceUnavailable)
	})
}

// checkStorageGone loses all calls after the validation, and wants the status in time.
func checkStorageGone(t *testing.T, start func(*testing.T, stack.Options, int) (*pair, []*link), status int) {
	t.Helper()
	var links []*link
	p, links := start(t, stack.Options{
		CirculationEnv: enableLock(), // waits of 25 s in all
		OnStep: atStep(0, circulation.Validated, func() {
			links[0].addFault(linkFault{times: always, handle: loseRequest})
		}),
	}, 1)
	id, patron := p.addPatron(t)
	book := p.addBooks(t, 1)[0]
	began := time.Now()
	if a := p.lendBook(t, 0, book, patron); a.Status != status {
		t.Errorf("answered %d %s, want %d", a.Status, a.Body, status)
	}
	if took := time.Since(began); took >= 10*time.Second {
		t.Errorf("the answer took %s, want less than 10s", took)
	}
	if got := p.readState(t, id, book); got != untouched {
		t.Errorf("left %+v, want %+v", got, untouched)
	}
}
