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
		Version: "14.0", VersionNumber: 140000, Standbys: "*", Commits: "on", Confirming: 1, Connections: 100,
		OpenConnections: 90,
		Ahead:           -2 * time.Second,
	}
	fit := doctor.Settings{Connections: 100, Patience: 5 * time.Second}
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
		{
			name: "an old server", change: func(s *server, _ *own) { s.VersionNumber = 139999 },
			check: "PostgreSQL", level: doctor.Broken, text: "too old",
		},
		{
			name: "no fsync", change: func(s *server, _ *own) { s.Unsafe = "fsync" },
			check: "settings", level: doctor.Broken, text: "fsync",
		},
		{
			name: "no standby", change: func(s *server, _ *own) { s.Standbys = "" },
			check: "standby", level: doctor.Warning, text: "failover",
		},
		{
			name: "local", change: func(s *server, _ *own) { s.Commits = "local" },
			check: "standby", level: doctor.Warning, text: "do not wait",
		},
		{
			name: "hidden", change: func(s *server, _ *own) { s.Hidden = 1 },
			check: "standby", level: doctor.Warning, text: "may not see",
		},
		{
			name: "gone", change: func(s *server, _ *own) { s.Confirming = 0 },
			check: "standby", level: doctor.Broken, text: "not there",
		},
		{
			name: "ahead", change: func(s *server, _ *own) { s.Ahead = 3 * time.Second },
			check: "clock", level: doctor.Warning, text: "3s ahead",
		},
		{
			name: "behind", change: func(s *server, _ *own) { s.Ahead = -3 * time.Second },
			check: "clock", level: doctor.Warning, text: "-3s ahead",
		},
		{
			name: "too many", change: func(_ *server, o *own) { o.Connections = 101 },
			check: "connections", level: doctor.Broken, text: "the server allows 100",
		},
		{
			name: "full", change: func(s *server, _ *own) { s.OpenConnections = 91 },
			check: "connections", level: doctor.Warning, text: "91 of 100",
		},
		{
			name: "prepared", change: func(s *server, _ *own) { s.Pooled = true },
			check: "PgBouncer", level: doctor.Broken, text: "prepared",
		},
		{
			name: "pooled migrations", change: func(s *server, o *own) { s.Pooled, o.ExecMode = true, true },
			check: "PgBouncer", level: doctor.Warning, text: "migrations need a session",
		},
		{
			name:   "a pooler that fits",
			change: func(s *server, o *own) { s.Pooled, o.ExecMode, o.MigrateDirect = true, true, true },
			check:  "PgBouncer", level: doctor.OK, text: "fit",
		},
		{
			name: "an inexact clock", change: func(s *server, _ *own) { s.Ahead, s.Uncertain = 3*time.Second, 2*time.Second },
			check: "clock", level: doctor.OK, text: "3s",
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
		{
			name: "nothing is wrong", change: func(*tenant) {},
			check: "feature", level: doctor.OK, text: "environment of circulation decides",
		},
		{
			name: "no waits", change: func(*tenant) {},
			check: "patience", level: doctor.OK, text: "environment of circulation decides how long",
		},
		{
			name: "dirty", change: func(d *tenant) { d.Schema.Dirty = true },
			check: "migrations", level: doctor.Broken, text: "-repair -tenant diku",
		},
		{
			name: "behind", change: func(d *tenant) { d.Schema.Version = 46 },
			check: "migrations", level: doctor.Broken, text: "needs migration 47",
		},
		{
			name: "on", change: func(d *tenant) { d.Entry = entry(`{"checkOutLockFeatureEnabled":true}`) },
			check: "feature", level: doctor.OK, text: "the lock is on",
		},
		{
			name: "off", change: func(d *tenant) { d.Entry = entry(`{"checkOutLockFeatureEnabled":false}`) },
			check: "feature", level: doctor.OK, text: "the lock is off",
		},
		{
			name: "announced", change: func(d *tenant) { d.Announced = true },
			check: "feature", level: doctor.OK, text: "environment of an instance",
		},
		{
			name: "malformed", change: func(d *tenant) { d.Entry = entry(`{"on":true}`) },
			check: "feature", level: doctor.Broken, text: "cannot be used",
		},
		{
			name: "impatient", change: func(d *tenant) { d.Entry = entry(`{"retryIntervals":[3000,3000]}`) },
			check: "patience", level: doctor.Warning, text: "may wait 6s, and machines give up after 5s",
		},
		{
			name: "patient", change: func(d *tenant) { d.Entry = entry(`{"retryIntervals":[3000,2000]}`) },
			check: "patience", level: doctor.OK, text: "waits 5s at most",
		},
		{
			name: "over", change: func(d *tenant) { d.OverLimit = 2 },
			check: "limits", level: doctor.Broken, text: "2 patrons",
		},
		{
			name: "unfenced", change: func(d *tenant) { d.Unfenced = 7 },
			check: "fence", level: doctor.Warning, text: "7 loans",
		},
		{
			name: "unswept", change: func(d *tenant) { d.Unswept = 3 },
			check: "sweep", level: doctor.Warning, text: "3 locks",
		},
		{
			name: "late events", change: func(d *tenant) { d.Events, d.OldestEvent = 9, time.Hour },
			check: "outbox", level: doctor.Warning, text: "9 events wait, the oldest one for 1h0m0s",
		},
		{
			name: "new events", change: func(d *tenant) { d.Events, d.OldestEvent = 9, time.Minute },
			check: "outbox", level: doctor.OK, text: "9 events wait",
		},
		{
			name: "refused events", change: func(d *tenant) { d.Refused = 1 },
			check: "outbox", level: doctor.Warning, text: "refused 1 events",
		},
	} {
		d := base
		tt.change(&d)
		found := d.Examine(doctor.Settings{Patience: 5 * time.Second})
		wantFinding(t, tt.name, found, "diku: "+tt.check, tt.level, tt.text)
	}
}
