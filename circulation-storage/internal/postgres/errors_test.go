package postgres_test

import (
	"testing"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/schemas/fault"
)

// The checks before the database should catch such values. If one slips through,
// it is still the caller's.
func TestAValueThatPostgreSQLRefusesIsNoServerError(t *testing.T) {
	t.Parallel()
	db, id := pgtest.New(t)
	tests := map[string]struct {
		statement string
		want      fault.Code
	}{
		"NUL in a jsonb text":   {`SELECT '{"a":"\u0000"}'::jsonb->>'a'`, fault.Invalid},
		"no UTF-8":              {`SELECT convert_from('\xff', 'UTF8')`, fault.Invalid},
		"no UUID":               {`SELECT 'x'::uuid`, fault.Invalid},
		"a number too large":    {`SELECT 99999999999::text::integer`, fault.Invalid},
		"no date":               {`SELECT 'soon'::timestamptz`, fault.Invalid},
		"a 30th of February":    {`SELECT '2026-02-30'::timestamptz`, fault.Invalid},
		"an offset of a day":    {`SELECT '2026-02-01T00:00:00+24:00'::timestamptz`, fault.Invalid},
		"too long for an index": {`INSERT INTO ` + postgres.SchemaName(id) + `.usergroup SELECT gen_random_uuid(), jsonb_build_object('group', string_agg(md5(i::text), '')) FROM generate_series(1, 9999) i`, fault.Invalid},
		"a bug of ours":         {`SELECT 1/0`, fault.Internal},
		"a table of no tenant":  {`SELECT 1 FROM nowhere.loan`, fault.UnknownTenant},
		"a column too new":      {`SELECT nonsense FROM ` + postgres.SchemaName(id) + `.loan`, fault.TenantNotReady},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := db.Pool().Exec(t.Context(), tt.statement)
			wantCode(t, postgres.ToFault("testing", err), tt.want)
		})
	}
}
