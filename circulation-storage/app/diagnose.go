package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"checkoutlock/circulation-storage/internal/doctor"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/readiness"
	"checkoutlock/config/command"
	"checkoutlock/schemas/okapi"
)

// Diagnose prints what is right and what is not: of the database, and of the named tenant or of all.
// patience is how long machines wait for an answer. Its error has the status of the process: 1 after
// warnings, 2 if something is broken.
func (l Listing) Diagnose(ctx context.Context, cfg Config, patience time.Duration) error {
	if _, err := parseTenants(l.Tenant); l.Tenant != "" && err != nil {
		return err
	}
	db, err := openDatabase(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer db.Close()
	findings, err := l.examine(ctx, db, doctor.Settings{
		Connections: int(cfg.Database.MaxConns), ExecMode: !db.PreparesStatements(), MigrateDirect: cfg.Database.MigrateURL != "", Patience: patience,
		History: cfg.HistoryRetention, Sweep: cfg.LockSweepInterval,
	})
	if err != nil {
		findings = append(findings, doctor.Finding{
			Check: "database", Level: doctor.Broken, Text: err.Error(), Advice: "look at DATABASE_URL, PostgreSQL, and the network between",
		})
	}
	t := table{columns: []string{"CHECK", "LEVEL", "TEXT", "ADVICE"}}
	worst := doctor.OK
	for _, f := range findings {
		t.add(f.Check, string(f.Level), f.Text, f.Advice)
		if f.Level == doctor.Broken || worst == doctor.OK {
			worst = f.Level
		}
	}
	err = l.print(t)
	switch {
	case err != nil || worst == doctor.OK:
		return err
	case worst == doctor.Warning:
		return &command.StatusError{Err: errors.New("there are warnings"), Status: 1}
	}
	return &command.StatusError{Err: errors.New("something is broken"), Status: 2}
}

func (l Listing) examine(ctx context.Context, db *postgres.DB, own doctor.Settings) ([]doctor.Finding, error) {
	server, err := db.InspectServer(ctx)
	if err != nil {
		return nil, err
	}
	findings := append([]doctor.Finding{{Check: "database", Level: doctor.OK, Text: "it answers and takes writes"}}, server.Examine(own)...)
	schemas, err := db.Schemas(ctx)
	if err != nil {
		return findings, err
	}
	found := false
	for _, s := range schemas {
		// The library of drills has settings for drills, and the next drill upgrades it.
		if name := s.Tenant.String(); name != l.Tenant && (l.Tenant != "" || name == okapi.DrillTenant) {
			continue
		}
		found = true
		more, err := examineTenant(okapi.WithTenant(ctx, s.Tenant), db, s, own)
		if err != nil {
			return findings, err
		}
		findings = append(findings, more...)
	}
	if !found {
		findings = append(findings, doctor.Finding{
			Check: "tenants", Level: doctor.Warning, Text: "there is no such tenant", Advice: "install one: circulation-storage migrate -tenant NAME",
		})
	}
	return findings, nil
}

// examineTenant returns no finding of a tenant that was purged since its schema s was read. Its error is
// not that of this tenant alone.
func examineTenant(ctx context.Context, db *postgres.DB, s readiness.Schema, own doctor.Settings) ([]doctor.Finding, error) {
	tenant, err := db.InspectTenant(ctx, s, own)
	if err == nil {
		return tenant.Examine(own), nil
	}
	now, readErr := db.Schema(ctx)
	switch {
	case readErr != nil:
		return nil, err
	case !now.Installed:
		return nil, nil
	}
	return []doctor.Finding{{
		Check: s.Tenant.String() + ": records", Level: doctor.Broken, Text: err.Error(),
		Advice: "see that the tables are there, that the user of DATABASE_URL owns them, and that nothing locks them",
	}}, nil
}
