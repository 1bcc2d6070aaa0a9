package integration_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/devpostgres"
	"checkoutlock/devpostgres/testserver"
	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/fault"
)

func TestOutage_EveryEndpoint(t *testing.T) {
	t.Parallel()
	pg := testserver.Start(t, nil)
	server, err := url.Parse(pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	lines := captureLog(t, "info", func(t *testing.T, o stack.Options) {
		o.DatabaseURL = pg.URL()
		p := startPair(t, o, 3)
		_, patron := p.addPatron(t)
		readObject(t, p.lendBook(t, 0, p.addBooks(t, 1)[0], patron), http.StatusCreated)
		endpoints := p.endpoints(t)
		if err := pg.Kill(); err != nil {
			t.Fatal(err)
		}
		checkReadinessNamesTheServer(t, p, server.Host)
		checkEveryCallIsUnavailable(t, endpoints)
		restart(t, pg, p)
	})
	var lost, back []logLine
	refused := 0 // with a line of their own
	for _, text := range lines {
		l := parseLine(t, text)
		switch {
		case l.Msg == "the database is lost":
			lost = append(lost, l)
		case l.Msg == "the database is back":
			back = append(back, l)
		case l.Level == "WARN" && l.Service == "circulation-storage" && l.Code == string(fault.Unavailable):
			refused++
		case l.Level == "ERROR":
			t.Errorf("an error beside the outage: %s", text)
		}
		if password, _ := server.User.Password(); strings.Contains(text, password) {
			t.Errorf("the log has the password: %s", text)
		}
	}
	if len(lost) != 1 || lost[0].Level != "ERROR" || lost[0].Database != server.Host ||
		lost[0].Err != "connection refused" {
		t.Errorf("logged %+v when the database was lost, want one ERROR with the host and the cause", lost)
	}
	if len(back) != 1 || back[0].Level != "INFO" || back[0].Database != server.Host {
		t.Errorf("logged %+v when the database was back, want one INFO with the host", back)
	} else if back[0].Refused < 50 {
		t.Errorf("%d calls are counted as refused, want those of most endpoints", back[0].Refused)
	}
	if refused > 1 { // the first one may come before the loss is known
		t.Errorf("storage has %d lines of refused calls, want none during the outage", refused)
	}
}

// checkReadinessNamesTheServer fails the test unless readiness of both services names the
// database's host.
func checkReadinessNamesTheServer(t *testing.T, p *pair, host string) {
	t.Helper()
	cause := "PostgreSQL at " + host + ": connection refused"
	for base, want := range map[string]string{
		p.Storages[0]:     "not ready: " + cause,
		p.Circulations[0]: "not ready: storage is not ready: " + cause,
	} {
		if cause := checkHealth(t, base, http.StatusServiceUnavailable); cause != want {
			t.Errorf("readiness of %s is %q, want %q", base, cause, want)
		}
	}
}

// checkEveryCallIsUnavailable fails the test unless each call that needs the database is
// answered with 503 and Retry-After.
func checkEveryCallIsUnavailable(t *testing.T, endpoints []endpoint) {
	t.Helper()
	unavailable := 0
	for _, e := range endpoints {
		a := callEndpoint(t, e.client, e.method, e.fillPath(uuid.NewString()), e.bodyToSend())
		code := a.Header.Get(fault.Header)
		if code == string(fault.Unavailable) {
			unavailable++
			if a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
				t.Errorf("%s: %d with Retry-After %q, want 503 with one", e, a.Status, a.Header.Get("Retry-After"))
			}
		} else if a.Status >= http.StatusInternalServerError {
			t.Errorf("%s: %d %s %.300s, want %s", e, a.Status, code, a.Body, fault.Unavailable)
		}
	}
	if unavailable < len(endpoints)/2 {
		t.Errorf("%d of %d endpoints are unavailable, want most of them", unavailable, len(endpoints))
	}
}

// restart restarts the database and waits until all instances are ready.
func restart(t *testing.T, pg *devpostgres.Server, p *pair) {
	t.Helper()
	if err := pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, base := range slices.Concat(p.Storages, p.Circulations) {
		waitUntil(t, patience, base+" is ready again", func() bool {
			return callEndpoint(t, newClient(base, ""), http.MethodGet, "/admin/health/ready",
				nil).Status == http.StatusOK
		})
	}
}
