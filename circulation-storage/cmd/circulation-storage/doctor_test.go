package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/config/command"
)

// The history of an older check-out is gone, so its loan proves nothing.
func TestDoctor_LooksForLoansAsFarBackAsTheHistoryGoes(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	for _, statement := range []string{
		`INSERT INTO {schema}.loan (id, jsonb) VALUES (gen_random_uuid(), '{"status":{"name":"Open"}}')`,
		`UPDATE {schema}.loan_history SET jsonb = jsonb_set(jsonb, '{createdDate}',
		to_jsonb(to_char((now() - interval '2 hours') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')))`,
	} {
		statement = strings.ReplaceAll(statement, "{schema}", postgres.SchemaName(id))
		if _, err := db.Pool().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for retention, want := range map[string]string{"1h": "ok", "3h": "warning", "48h": "warning"} {
		var out strings.Builder
		err := program.Run(t.Context(), command.Process{
			Args:    []string{"doctor", "-tenant", id.String()},
			Environ: []string{"DATABASE_URL=" + pgtest.URL(t), "HISTORY_RETENTION=" + retention},
			Stdout:  &out, Stderr: io.Discard,
		})
		if err != nil && !errors.As(err, new(*command.StatusError)) {
			t.Fatal(err)
		}
		_, level, _ := strings.Cut(out.String(), id.String()+": fence")
		if level = strings.TrimSpace(level); !strings.HasPrefix(level, want+" ") {
			t.Errorf("HISTORY_RETENTION=%s: want %s in\n%s", retention, want, out.String())
		}
	}
}
