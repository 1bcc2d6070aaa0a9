package okapi_test

import (
	"strings"
	"testing"

	"checkoutlock/schemas/okapi"
)

func TestParseTenant(t *testing.T) {
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
		"_lib":                              false,
		"{lib":                              false,
		"lib-2":                             false,
		"lib{":                              false,
		"diku\n":                            false,
		`a";DROP SCHEMA public CASCADE; --`: false,
		"../x":                              false,
		"pg_x":                              false,
		"bücherei":                          false,
	}
	for name, want := range tests {
		if _, err := okapi.ParseTenant(name); (err == nil) != want {
			t.Errorf("%q: error %v, want accepted %t", name, err, want)
		}
	}
}

func TestTenantFrom_IsAnErrorWithoutATenant(t *testing.T) {
	t.Parallel()
	if id, err := okapi.TenantFrom(t.Context()); err == nil {
		t.Errorf("got %v, want an error", id)
	}
}

func TestContext_KeepsTheTenantOfACallWithoutOne(t *testing.T) {
	t.Parallel()
	tenant, err := okapi.ParseTenant("diku")
	if err != nil {
		t.Fatal(err)
	}
	ctx := okapi.NewContext(okapi.WithTenant(t.Context(), tenant), okapi.Call{UserID: "u"})
	if got := okapi.FromContext(ctx); got.Tenant != tenant || got.UserID != "u" {
		t.Errorf("got %+v, want tenant diku and user u", got)
	}
	other, err := okapi.ParseTenant("other")
	if err != nil {
		t.Fatal(err)
	}
	if got := okapi.FromContext(okapi.WithTenant(ctx, other)); got.Tenant != other || got.UserID != "u" {
		t.Errorf("got %+v, want tenant other and user u", got)
	}
}
