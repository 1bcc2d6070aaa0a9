package postgres_test

import (
	"testing"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas/okapi"
)

func TestSchemaName_LeadsBackToItsTenant(t *testing.T) {
	t.Parallel()
	tenant, err := okapi.ParseTenant("diku")
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := postgres.TenantOfSchema(postgres.SchemaName(tenant)); !ok || got != tenant {
		t.Errorf("got %v %t, want %v", got, ok, tenant)
	}
	for _, foreign := range []string{"public", "_mod_circulation_storage", "diku_mod_users", "Diku_mod_circulation_storage"} {
		if got, ok := postgres.TenantOfSchema(foreign); ok {
			t.Errorf("%s was taken for tenant %s", foreign, got)
		}
	}
}
