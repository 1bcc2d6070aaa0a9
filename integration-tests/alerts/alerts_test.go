package alerts_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// made are series a minute apart: those for which an alert fires in the end, and those for which it does not.
var made = map[string]struct{ fires, quiet string }{
	"DatabaseDown": {fires: `database_up 1x58 0 0 0`, quiet: `database_up 1x61`},
	"ServiceGone":  {fires: `up{job="circulation"} 1x50 0x9`, quiet: `up{job="circulation"} 1x60`},
	"CheckOutOutcomesUnknown": {
		fires: `circulation_checkouts_total{outcome="outcome_unknown"} 0x58 1x2`,
		quiet: `circulation_checkouts_total{outcome="outcome_unknown"} 3x60`,
	},
	"LocksNotAcquired": {
		fires: "circulation_checkouts_total{outcome=\"lent\"} 0+90x60\n" +
			"circulation_checkouts_total{outcome=\"lock_not_acquired\"} 0+5x60",
		quiet: "circulation_checkouts_total{outcome=\"lent\"} 0+999x60\n" +
			"circulation_checkouts_total{outcome=\"lock_not_acquired\"} 0+1x60",
	},
	"PatronsOverLimit": {
		fires: `checkout_patrons_over_limit{tenant="a"} 0x30 1 0x29`, quiet: `checkout_patrons_over_limit{tenant="a"} 0x60`,
	},
	"LockHeldTooLong": {fires: `checkout_lock_oldest_seconds 0+60x60`, quiet: `checkout_lock_oldest_seconds 3x60`},
	"LocksLost": {
		fires: `checkout_commits_total{outcome="lock_lost"} 0+1x60`,
		quiet: `checkout_commits_total{outcome="lock_lost"} 0x30 3x30`,
	},
	"CheckOutsOverloaded": {
		fires: `circulation_admission_refused_total{reason="wait_over"} 0+1x60`,
		quiet: `circulation_admission_refused_total{reason="wait_over"} 7x60`,
	},
	"ServerErrors": {
		fires: `http_requests_total{status="503",code="UNAVAILABLE"} 0+60x60`,
		quiet: "http_requests_total{status=\"503\",code=\"LOCK_HELD\"} 0+60x60\n" +
			"http_requests_total{status=\"503\",route=\"/admin/health/ready\"} 0+60x60\n" +
			"http_requests_total{status=\"201\"} 0+60x60",
	},
	"TenantsNotServed": {fires: `storage_tenants{state="dirty"} 1x60`, quiet: `storage_tenants{state="current"} 9x60`},
	"FeatureDiffers": {
		fires: "circulation_checkout_lock_enabled{tenant=\"a\",instance=\"1\"} 1x60\n" +
			"circulation_checkout_lock_enabled{tenant=\"a\",instance=\"2\"} 0x60",
		quiet: "circulation_checkout_lock_enabled{tenant=\"a\",instance=\"1\"} 1x60\n" +
			"circulation_checkout_lock_enabled{tenant=\"b\",instance=\"1\"} 0x60",
	},
	"SettingsNotInForce": {
		fires: `circulation_settings_fallbacks_total{reason="entry_malformed"} 0+1x60`,
		quiet: `circulation_settings_fallbacks_total{reason="entry_malformed"} 0x60`,
	},
	"ConnectionsUsedUp": {
		fires: `database_connection_wait_seconds_total{pool="urgent"} 0+90x60`,
		quiet: `database_connection_wait_seconds_total{pool="urgent"} 0+30x60`,
	},
	"EventsNotDelivered": {fires: `events_waiting 2000x60`, quiet: "events_waiting 20x60\nevents_lag_seconds 2x60"},
	"UnfencedLoans":      {fires: `loans_unfenced_total 0x30 1x30`, quiet: `loans_unfenced_total 0x60`},
	"HistoryDropped": {
		fires: `circulation_history_dropped_total 0+1x60`, quiet: `circulation_history_dropped_total 5x60`,
	},
	"WorkerPanics": {fires: `worker_panics_total{worker="x"} 0x30 1x30`, quiet: `worker_panics_total{worker="x"} 1x60`},
}

func readRules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile("../../docs/ops/alerts.yml", false, model.UTF8Validation)
	if len(errs) > 0 || len(groups.Groups) != 1 {
		t.Fatalf("docs/ops/alerts.yml: %v", errs)
	}
	return groups.Groups[0].Rules
}

func TestAlerts_FireForMadeSeries(t *testing.T) {
	rules := readRules(t)
	for _, rule := range rules {
		series, ok := made[rule.Alert]
		if !ok {
			t.Errorf("%s has no made series", rule.Alert)
		}
		if !fires(t, rule, series.fires) {
			t.Errorf("%s does not fire", rule.Alert)
		}
		if fires(t, rule, series.quiet) {
			t.Errorf("%s fires without a reason", rule.Alert)
		}
	}
	if len(rules) != len(made) {
		t.Errorf("%d rules and %d made series", len(rules), len(made))
	}
}

// fires reports whether the rule holds at the end of an hour, and did so for as long as it has to.
func fires(t *testing.T, rule rulefmt.Rule, series string) bool {
	t.Helper()
	store := promqltest.LoadedStorage(t, "load 1m\n  "+strings.ReplaceAll(series, "\n", "\n  "))
	defer store.Close()
	engine := promqltest.NewTestEngine(t, false, 0, 100_000)
	end := time.Unix(3600, 0)
	for at := end.Add(-time.Duration(rule.For)); !at.After(end); at = at.Add(time.Minute) {
		query, err := engine.NewInstantQuery(t.Context(), store, nil, rule.Expr, at)
		if err != nil {
			t.Fatal(err)
		}
		found, err := query.Exec(t.Context()).Vector()
		query.Close()
		if err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		if len(found) == 0 {
			return false
		}
	}
	return true
}

// Each alert has a heading, what it means, and three things to do.
func TestAlerts_AreExplained(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range readRules(t) {
		_, section, _ := strings.Cut(string(text), "\n### "+rule.Alert+"\n\n")
		section, _, _ = strings.Cut(section, "\n#")
		if !regexp.MustCompile(`(?s)^[^1].+\n\n1\. .+\n2\. .+\n3\. `).MatchString(section) {
			t.Errorf("docs/operations.md does not explain %s", rule.Alert)
		}
	}
}

var (
	servedName = regexp.MustCompile(`(?m)^(\w+)(?:\{| )`)
	panelExpr  struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
)

// SERVED_METRICS is a file with what the services answer at /metrics.
func TestExpressions_NameServedMetrics(t *testing.T) {
	file := os.Getenv("SERVED_METRICS")
	if file == "" {
		t.Skip("SERVED_METRICS names no file: TestAlerts of integration-tests makes it")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{}
	for _, m := range servedName.FindAllStringSubmatch(string(text), -1) {
		served[m[1]] = true
	}
	expressions := map[string]string{}
	for _, rule := range readRules(t) {
		expressions[rule.Alert] = rule.Expr
	}
	dashboard, err := os.ReadFile("../../docs/ops/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(dashboard, &panelExpr); err != nil {
		t.Fatal(err)
	}
	for _, panel := range panelExpr.Panels {
		for i, target := range panel.Targets {
			expressions[fmt.Sprint(panel.Title, " ", i)] = target.Expr
		}
	}
	if len(expressions) < 25 {
		t.Errorf("got %d expressions, want at least 25", len(expressions))
	}
	for at, text := range expressions {
		expr, err := parser.ParseExpr(text)
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if s, ok := node.(*parser.VectorSelector); ok && s.Name != "up" && !served[s.Name] { // up is Prometheus's own
				t.Errorf("%s: the services serve no metric %s", at, s.Name)
			}
			return nil
		})
	}
}
