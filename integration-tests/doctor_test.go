package integration_test

import (
	"strings"
	"testing"
	"time"

	storage "checkoutlock/circulation-storage/app"
	"checkoutlock/config"
)

func TestDoctor_SeesAPooler(t *testing.T) {
	t.Parallel()
	database := databaseURL(t)
	pooler := startPgBouncer(t, database, 5)
	for _, tt := range []struct{ name, url, migrate, want string }{
		{name: "no pooler", url: database, want: "connections lead to PostgreSQL itself"},
		{name: "no way past it", url: pooler, want: "migrations need a session"},
		{name: "settings that fit", url: pooler, migrate: database, want: "the settings fit its transaction mode"},
		{
			name: "prepared statements", url: strings.Replace(pooler, "=exec", "=cache_describe", 1), migrate: database,
			want: "statements are prepared",
		},
	} {
		cfg := storage.DefaultConfig()
		environ := []string{"DATABASE_URL=" + tt.url, "MIGRATE_DATABASE_URL=" + tt.migrate}
		if err := config.Load(&cfg, environ); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		_ = storage.Listing{Tenant: "diku", Out: &out}.Diagnose(t.Context(), cfg, time.Second) // it has warnings
		if !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: got\n%s, want %q", tt.name, &out, tt.want)
		}
	}
}
