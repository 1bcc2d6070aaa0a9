package integration_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/devpostgres/testserver"
	"checkoutlock/integration-tests/stack"
	"checkoutlock/schemas/fault"
)

var (
	selectorSpan = regexp.MustCompile("`([a-z]+(?:_[a-z]+)+)(?:\\{([^`]*)\\})?`")
	matcher      = regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`)
	seriesLine   = regexp.MustCompile(`(?m)^(\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$`)
	servedLabel  = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
)

// selector is an expression of the documents that selects series: a metric, and what its
// labels have to be.
type selector struct {
	text, metric string
	matchers     [][]string // each: text, label, operator, value
}

// readSelectors returns the expressions in the tables of docs/operations.md whose first
// column is headed "Series".
func readSelectors(t *testing.T) []selector {
	t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []selector
	inTable := false
	for line := range strings.Lines(string(text)) {
		inTable = strings.HasPrefix(line, "| Series") || inTable && strings.HasPrefix(line, "|")
		if !inTable {
			continue
		}
		for _, m := range selectorSpan.FindAllStringSubmatch(strings.Split(line, " | ")[0], -1) {
			found = append(found, selector{text: m[0], metric: m[1], matchers: matcher.FindAllStringSubmatch(m[2], -1)})
		}
	}
	if len(found) < 15 {
		t.Fatalf("docs/operations.md has %d expressions, want at least 15", len(found))
	}
	return found
}

// selects reports whether a series with these labels meets all that the selector says.
func (s selector) selects(labels map[string]string) bool {
	for _, m := range s.matchers {
		if meets(m, labels[m[1]]) == strings.HasPrefix(m[2], "!") {
			return false
		}
	}
	return true
}

// meets reports whether a label's value is the one that a matcher names.
func meets(matcher []string, value string) bool {
	if strings.HasSuffix(matcher[2], "~") {
		return regexp.MustCompile("^(?:" + matcher[3] + ")$").MatchString(value)
	}
	return value == matcher[3]
}

// readSeries returns the labels of all series of all instances, by metric.
func (p *pair) readSeries(t *testing.T) map[string][]map[string]string {
	t.Helper()
	series := map[string][]map[string]string{}
	for _, base := range slices.Concat(p.Storages, p.Circulations) {
		for _, m := range seriesLine.FindAllStringSubmatch(p.readMetrics(t, base), -1) {
			labels := map[string]string{}
			for _, l := range servedLabel.FindAllStringSubmatch(m[2], -1) {
				labels[l[1]] = l[2]
			}
			series[m[1]] = append(series[m[1]], labels)
		}
	}
	return series
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	pg := testserver.Start(t, nil)
	p := startPair(t, stack.Options{
		DatabaseURL: pg.URL(), CirculationEnv: shortWait, StorageEnv: []string{"LOCK_SWEEP_INTERVAL=1s"},
	}, 3)
	_, patron := p.addPatron(t)
	readObject(t, p.lendBook(t, 0, p.addBooks(t, 1)[0], patron), http.StatusCreated)
	lock := record{"userId": uuid.NewString(), "ttlMs": 60_000}
	readObject(t, callEndpoint(t, p.Storage, http.MethodPost, acquirePath, lock), http.StatusCreated)
	if a := callEndpoint(t, p.Storage, http.MethodPost, acquirePath,
		lock); a.Header.Get(fault.Header) != string(fault.LockHeld) {
		t.Fatalf("a held lock is %d %s", a.Status, a.Body)
	}

	none := `checkout_patrons_over_limit{tenant="` + p.Storage.Tenant + `"} 0`
	waitUntil(t, patience, "the patrons over their limit", func() bool {
		return strings.Contains(p.readMetrics(t, p.Storages[0]), none)
	})
	t.Run("the state of the service has metrics", func(t *testing.T) {
		for metric, holds := range map[string]string{
			"circulation_checkout_lock_enabled": `tenant="` + p.Storage.Tenant + `"} 1`, "checkout_lock_held": " 1",
			"database_up": " 1", "database_connections": `pool="urgent",state="in_use"}`, "events_waiting": " ",
		} {
			served := p.readMetrics(t, p.Circulations[0]) + p.readMetrics(t, p.Storages[0])
			if !regexp.MustCompile("(?m)^" + metric + ".*" + regexp.QuoteMeta(holds)).MatchString(served) {
				t.Errorf("no series %s has %q", metric, holds)
			}
		}
	})
	selectors, series := readSelectors(t), p.readSeries(t)
	t.Run("name metrics, labels and values that are served", func(t *testing.T) {
		for _, s := range selectors {
			if len(series[s.metric]) == 0 {
				t.Errorf("%s: there is no such metric", s.text)
			}
			for _, m := range s.matchers {
				if !slices.ContainsFunc(series[s.metric], func(l map[string]string) bool { return meets(m, l[m[1]]) }) {
					t.Errorf("%s: no series has %s", s.text, m[0])
				}
			}
		}
	})
	t.Run("and those of docs/ops name served metrics too", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "metrics")
		served := ""
		for _, base := range slices.Concat(p.Storages, p.Circulations) {
			served += p.readMetrics(t, base)
		}
		if err := os.WriteFile(file, []byte(served), 0o600); err != nil {
			t.Fatal(err)
		}
		test := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", ".") // a module of its own
		test.Dir, test.Env = "alerts", append(os.Environ(), "GOWORK=off", "SERVED_METRICS="+file)
		if out, err := test.CombinedOutput(); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
	})
	t.Run("show an outage and no held lock", func(t *testing.T) {
		text := `http_requests_total{status=~"5..",code!~"LOCK_HELD|OVERLOADED",route!="/admin/health/ready"}`
		rules, err := os.ReadFile("../docs/ops/alerts.yml")
		if err != nil || !strings.Contains(string(rules), text) {
			t.Fatalf("docs/ops/alerts.yml has no %s: %v", text, err)
		}
		alert := selector{text: text, metric: "http_requests_total", matchers: matcher.FindAllStringSubmatch(text, -1)}
		if slices.ContainsFunc(p.readSeries(t)[alert.metric], alert.selects) {
			t.Errorf("%s selects a held lock", alert.text)
		}
		if err := pg.Kill(); err != nil {
			t.Fatal(err)
		}
		if a := callEndpoint(t, p.Storage, http.MethodPost, acquirePath,
			lock); a.Header.Get(fault.Header) != string(fault.Unavailable) {
			t.Fatalf("a lock without a database is %d %s", a.Status, a.Body)
		}
		// The call may have lost its connection, and no new one been refused yet.
		waitUntil(t, patience, "database_up is 0 in an outage", func() bool {
			return strings.Contains(p.readMetrics(t, p.Storages[0]), "database_up 0\n")
		})
		isAlert := func(l map[string]string) bool { return l["route"] == acquirePath && alert.selects(l) }
		if !slices.ContainsFunc(p.readSeries(t)[alert.metric], isAlert) {
			t.Errorf("%s does not select the outage", alert.text)
		}
		restart(t, pg, p)
	})
}
