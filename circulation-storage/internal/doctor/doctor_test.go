package doctor_test

import (
	"strings"
	"testing"
	"time"

	"checkoutlock/circulation-storage/internal/doctor"
	"checkoutlock/circulation-storage/internal/readiness"
	"checkoutlock/schemas/okapi"
)

type (
	server = doctor.Server
	tenant = doctor.Tenant
	own    = doctor.Settings
)

// Each check has a case that is right, which is the base, and one for each problem.

func TestServer_Examine(t *testing.T) {
	t.Parallel()
	base := doctor.Server{
		Version: "16.3", VersionNumber: 160003, Standbys: "*", Commits: "on", Confirming: 1, Connections: 97,
		OpenConnections: 5,
		Ahead:           -time.Second,
	}
	fit := doctor.Settings{Connections: 20, Patience: 5 * time.Second}
	for _, f := range base.Examine(fit) {
		if f.Level != doctor.OK || f.Advice != "" || f.Text == "" {
			t.Errorf("nothing is wrong: got %+v", f)
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*server, *own)
		check  string
		level  doctor.Level
		text   string
	}{
		{"an old server", func(s *server, _ *own) { s.VersionNumber = 130022 }, "PostgreSQL", doctor.Broken, "too old"},
		{"no fsync", func(s *server, _ *own) { s.Unsafe = "fsync" }, "settings", doctor.Broken, "fsync"},
		{"no standby", func(s *server, _ *own) { s.Standbys = "" }, "standby", doctor.Warning, "failover"},
		{"local", func(s *server, _ *own) { s.Commits = "local" }, "standby", doctor.Warning, "do not wait"},
		{"hidden", func(s *server, _ *own) { s.Hidden = 1 }, "standby", doctor.Warning, "may not see"},
		{"gone", func(s *server, _ *own) { s.Confirming = 0 }, "standby", doctor.Broken, "not there"},
		{"ahead", func(s *server, _ *own) { s.Ahead = 3 * time.Second }, "clock", doctor.Warning, "3s ahead"},
		{"behind", func(s *server, _ *own) { s.Ahead = -3 * time.Second }, "clock", doctor.Warning, "-3s ahead"},
		{
			"too many", func(_ *server, o *own) { o.Connections = 98 }, "connections", doctor.Broken, "the server allows 97",
		},
		{"full", func(s *server, _ *own) { s.OpenConnections = 90 }, "connections", doctor.Warning, "90 of 97"},
		{"prepared", func(s *server, _ *own) { s.Pooled = true }, "PgBouncer", doctor.Broken, "prepared"},
		{
			"pooled migrations", func(s *server, o *own) { s.Pooled, o.ExecMode = true, true },
			"PgBouncer", doctor.Warning, "migrations need a session",
		},
		{
			"a pooler that fits", func(s *server, o *own) { s.Pooled, o.ExecMode, o.MigrateDirect = true, true, true },
			"PgBouncer", doctor.OK, "fit",
		},
		{
			"an inexact clock", func(s *server, _ *own) { s.Ahead, s.Uncertain = 3*time.Second, 2*time.Second },
			"clock", doctor.OK, "3s",
		},
	} {
		s, o := base, fit
		tt.change(&s, &o)
		wantFinding(t, tt.name, s.Examine(o), tt.check, tt.level, tt.text)
	}
}

// wantFinding wants one finding of the check, and no other problem.
func wantFinding(t *testing.T, name string, found []doctor.Finding, check string, level doctor.Level, text string) {
	t.Helper()
	n := 0
	for _, f := range found {
		switch {
		case f.Check == check:
			n++
			if f.Level != level || !strings.Contains(f.Text, text) || (f.Advice == "") != (level == doctor.OK) {
				t.Errorf("%s: got %+v, want %s with %q", name, f, level, text)
			}
		case f.Level != doctor.OK:
			t.Errorf("%s: got %+v as well", name, f)
		}
	}
	if n != 1 {
		t.Errorf("%s: got %d findings of %s, want 1", name, n, check)
	}
}

func TestTenant_Examine(t *testing.T) {
	t.Parallel()
	diku, err := okapi.ParseTenant("diku")
	if err != nil {
		t.Fatal(err)
	}
	base := doctor.Tenant{Schema: readiness.Schema{Tenant: diku, Installed: true, Version: 47, First: 39, Needed: 47}}
	entry := func(value string) []byte { return []byte(`{"value":` + value + `}`) }
	for _, tt := range []struct {
		name   string
		change func(*tenant)
		check  string
		level  doctor.Level
		text   string
	}{
		{"nothing is wrong", func(*tenant) {}, "feature", doctor.OK, "environment of circulation decides"},
		{"dirty", func(d *tenant) { d.Schema.Dirty = true }, "migrations", doctor.Broken, "-repair -tenant diku"},
		{"behind", func(d *tenant) { d.Schema.Version = 46 }, "migrations", doctor.Broken, "needs migration 47"},
		{
			"on", func(d *tenant) { d.Entry = entry(`{"checkOutLockFeatureEnabled":true}`) },
			"feature", doctor.OK, "the lock is on",
		},
		{
			"off", func(d *tenant) { d.Entry = entry(`{"checkOutLockFeatureEnabled":false}`) },
			"feature", doctor.OK, "the lock is off",
		},
		{"announced", func(d *tenant) { d.Announced = true }, "feature", doctor.OK, "environment of an instance"},
		{"malformed", func(d *tenant) { d.Entry = entry(`{"on":true}`) }, "feature", doctor.Broken, "cannot be used"},
		{
			"impatient", func(d *tenant) { d.Entry = entry(`{"retryIntervals":[3000,3000]}`) },
			"patience", doctor.Warning, "may wait 6s, and machines give up after 5s",
		},
		{
			"patient", func(d *tenant) { d.Entry = entry(`{"retryIntervals":[3000]}`) },
			"patience", doctor.OK, "waits 3s at most",
		},
		{"over", func(d *tenant) { d.OverLimit = 2 }, "limits", doctor.Broken, "2 patrons"},
		{"unfenced", func(d *tenant) { d.Unfenced = 7 }, "fence", doctor.Warning, "7 loans"},
		{"unswept", func(d *tenant) { d.Unswept = 3 }, "sweep", doctor.Warning, "3 locks"},
		{
			"late events", func(d *tenant) { d.Events, d.OldestEvent = 9, time.Hour },
			"outbox", doctor.Warning, "9 events wait, the oldest one for 1h0m0s",
		},
		{"new events", func(d *tenant) { d.Events, d.OldestEvent = 9, time.Second }, "outbox", doctor.OK, "9 events wait"},
		{"refused events", func(d *tenant) { d.Refused = 1 }, "outbox", doctor.Warning, "refused 1 events"},
	} {
		d := base
		tt.change(&d)
		found := d.Examine(doctor.Settings{Patience: 5 * time.Second})
		wantFinding(t, tt.name, found, "diku: "+tt.check, tt.level, tt.text)
	}
}
