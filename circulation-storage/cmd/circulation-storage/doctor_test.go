package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/config/command"
	"checkoutlock/schemas/okapi"
)

// levelOf returns what doctor makes of a check of the tenant under a setting.
func levelOf(t *testing.T, id okapi.Tenant, check, setting string) string {
	t.Helper()
	var out strings.Builder
	err := program.Run(t.Context(), command.Process{
		Args:    []string{"doctor", "-tenant", id.String()},
		Environ: []string{"DATABASE_URL=" + pgtest.URL(t), setting}, Stdout: &out, Stderr: io.Discard,
	})
	if err != nil && !errors.As(err, new(*command.StatusError)) {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(out.String(), id.String()+": "+check+" ")
	words := strings.Fields(line)
	if len(words) == 0 {
		t.Fatalf("%s finds no %s:\n%s", setting, check, out.String())
	}
	return words[0]
}

// What is older than the settings of the storages let it get proves nothing.
func TestDoctor_GoesAsFarBackAsTheSettings(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	for _, statement := range []string{
		`INSERT INTO {schema}.loan (id, jsonb) VALUES (gen_random_uuid(), '{"status":{"name":"Open"}}')`,
		`UPDATE {schema}.loan_history SET jsonb = jsonb_set(jsonb, '{createdDate}',
		to_jsonb(to_char((now() - interval '2 hours') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')))`,
		`INSERT INTO {schema}.check_out_lock (user_id, creation_date, ttl_ms)
		VALUES (gen_random_uuid(), now() - interval '2 hours', 1)`,
	} {
		statement = strings.ReplaceAll(statement, "{schema}", postgres.SchemaName(id))
		if _, err := db.Pool().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for setting, want := range map[string]string{
		"HISTORY_RETENTION=1h": "fence ok", "HISTORY_RETENTION=3h": "fence warning", "HISTORY_RETENTION=48h": "fence warning",
		"LOCK_SWEEP_INTERVAL=1m": "sweep warning", "LOCK_SWEEP_INTERVAL=90m": "sweep ok",
	} {
		check, level, _ := strings.Cut(want, " ")
		if got := levelOf(t, id, check, setting); got != level {
			t.Errorf("%s: %s is %s, want %s", setting, check, got, level)
		}
	}
}

// No machine lends there, and the next drill upgrades it.
func TestDoctor_LeavesOutTheLibraryOfDrills(t *testing.T) {
	t.Parallel()
	db, _ := pgtest.New(t)
	id, err := okapi.ParseTenant(okapi.DrillTenant)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Install(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Purge(context.WithoutCancel(t.Context()), id) })
	for _, args := range [][]string{{"doctor"}, {"doctor", "-tenant", id.String()}} {
		out, _ := runCommand(t, pgtest.URL(t), args...)
		if named := len(args) > 1; strings.Contains(out, id.String()+": migrations") != named {
			t.Errorf("%v: the library is there: %t, want %t:\n%s", args, !named, named, out)
		}
	}
}
