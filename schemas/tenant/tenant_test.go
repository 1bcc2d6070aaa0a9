package tenant_test

import (
	"strings"
	"testing"

	"checkoutlock/schemas/tenant"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"diku":                              true,
		"a":                                 true,
		"lib_2":                             true,
		"a" + strings.Repeat("b", 30):       true,
		"a" + strings.Repeat("b", 31):       false,
		"":                                  false,
		"Diku":                              false,
		"2lib":                              false,
		"diku\n":                            false,
		`a";DROP SCHEMA public CASCADE; --`: false,
		"../x":                              false,
		"bücherei":                          false,
	}
	for name, want := range tests {
		if _, err := tenant.Parse(name); (err == nil) != want {
			t.Errorf("%q: error %v, want accepted %t", name, err, want)
		}
	}
}

func TestASchemaNameLeadsBackToItsTenant(t *testing.T) {
	t.Parallel()
	id, err := tenant.Parse("diku")
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := tenant.FromSchema(id.Schema()); !ok || got != id {
		t.Errorf("got %v %t, want %v", got, ok, id)
	}
	for _, foreign := range []string{"public", "_mod_circulation_storage", "diku_mod_users", "Diku_mod_circulation_storage"} {
		if got, ok := tenant.FromSchema(foreign); ok {
			t.Errorf("%s was taken for tenant %s", foreign, got)
		}
	}
}

func TestAContextWithoutTenantIsAnErrorNeverADefault(t *testing.T) {
	t.Parallel()
	if id, err := tenant.FromContext(t.Context()); err == nil {
		t.Errorf("got %v, want an error", id)
	}
}
