package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/database"
)

func TestRecordTime(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	call := "SELECT " + pgx.Identifier{postgres.SchemaName(id)}.Sanitize() + ".record_time($1::text)"
	read := func(text *string) (*time.Time, error) {
		var got *time.Time
		return got, db.Pool().QueryRow(t.Context(), call, text).Scan(&got)
	}
	for text, want := range map[string]string{
		"2026-01-31":                    "2026-01-31T00:00:00Z",
		"2026-01-31T10:20:30":           "2026-01-31T10:20:30Z",
		"2026-01-31T10:20:30.5":         "2026-01-31T10:20:30.5Z",
		"2026-01-31T10:20:30Z":          "2026-01-31T10:20:30Z",
		"2026-01-31T10:20:30.123+02:00": "2026-01-31T08:20:30.123Z",
		"2026-01-31T10:20:30-0530":      "2026-01-31T15:50:30Z",
		"2026-01-31T10:20:30.123Z":      "2026-01-31T10:20:30.123Z",
		"2026-01-31T10:20:30.123+00:00": "2026-01-31T10:20:30.123Z",
		"2026-01-31T10:20:30.123+02:30": "2026-01-31T07:50:30.123Z",
		"abcd-ef-ghTij:kl:mn.opq+rs:tu": "",
		"--T::.+:2026013110203012302":   "",
		"today":                         "",
		"":                              "",
		"31.01.2026":                    "",
	} {
		got, err := read(&text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if (got == nil) != (want == "") || got != nil && got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%q is %v, want %q", text, got, want)
		}
	}
	if got, err := read(nil); got != nil || err != nil {
		t.Errorf("NULL is %v, %v, want NULL", got, err)
	}
	text := "2026-13-31"
	if _, err := read(&text); err == nil {
		t.Errorf("%s was accepted", text)
	} else if code, _ := database.SQLState(err); code != "22008" {
		t.Errorf("%s gave %v, want a field out of range", text, err)
	}
}
