package main

import (
	"regexp"
	"strings"
	"testing"

	"checkoutlock/devpostgres/testserver"
	"checkoutlock/integration-tests/stack"
)

func TestRun_UsesRunningServices(t *testing.T) {
	t.Parallel()
	pg := testserver.Start(t, nil)
	services, err := stack.Start(t.Context(), stack.Options{
		DatabaseURL: pg.URL(), Circulations: 2, CirculationEnv: []string{"STAFF_AUTH=basic", "STAFF_PASSWORD=correct horse"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := services.Stop(); err != nil {
			t.Error(err)
		}
	})
	environ := map[string]string{
		"STORAGE_URL": services.Storages[0], "CIRCULATION_URLS": strings.Join(services.Circulations, " "),
		"STAFF_PASSWORD": "correct horse",
	}
	var out strings.Builder
	if err := run(t.Context(), func(name string) string { return environ[name] }, &out); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^off .*\non +15 +5 +0 .* ITEM_LIMIT\S* x5`).MatchString(out.String()) ||
		strings.Contains(out.String(), "Starting") {
		t.Errorf("printed\n%swant 15 lent and 5 refused with the lock", &out)
	}
}

func TestRun_NeedsBothAddresses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"STORAGE_URL", "CIRCULATION_URLS"} {
		getenv := func(asked string) string { return map[string]string{name: "http://127.0.0.1:1"}[asked] }
		if err := run(t.Context(), getenv, &strings.Builder{}); err == nil ||
			!strings.Contains(err.Error(), "STORAGE_URL and CIRCULATION_URLS") {
			t.Errorf("with %s alone: %v", name, err)
		}
	}
}
