package database

import "testing"

func TestNameStatement(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]string{
		"BEGIN; SET LOCAL statement_timeout = 1": "BEGIN",
		"COMMIT":                                 "COMMIT",
		"":                                       "",
		"SELECT clock_timestamp()":               "SELECT",
		`SELECT a FROM "diku_mod".users WHERE b = $1`:                              "SELECT users",
		"\nWITH lent AS (INSERT INTO \"diku_mod\".loan (id) VALUES ($1)) SELECT 1": "INSERT loan",
		`INSERT INTO "d"."check_out_lock" (id) VALUES ($1) ON CONFLICT DO NOTHING`: "INSERT check_out_lock",
		"UPDATE \"d\".item i\n   SET jsonb = $1":                                   "UPDATE item",
		`DELETE FROM "d".outbox USING held`:                                        "DELETE outbox",
		`SELECT 1 FROM "d".item WHERE barcode = 'p-1' FOR UPDATE OF item`:          "SELECT item",
	} {
		if got := nameStatement(statement); got != want {
			t.Errorf("%q: got %q, want %q", statement, got, want)
		}
	}
}
