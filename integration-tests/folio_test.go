package integration_test

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/integration-tests/stack"
)

var (
	sqlBlock  = regexp.MustCompile("(?ms)^```sql\n(.*?)^```")
	copiedRow = regexp.MustCompile(`\('diku_(\w+)\.(\w+)', '(\w+)'\)`)
)

// readSQL returns the blocks of SQL of docs/folio.md for a tenant.
func readSQL(t *testing.T, tenant string) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/folio.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range sqlBlock.FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, strings.ReplaceAll(m[1], "diku", tenant))
	}
	if len(blocks) != 5 {
		t.Fatalf("docs/folio.md has %d blocks of SQL, want 5", len(blocks))
	}
	return blocks
}

// storeAsFolio writes the pair's records into schemas as FOLIO's modules have them, for a tenant.
func (p *pair) storeAsFolio(t *testing.T, tenant string) {
	t.Helper()
	text, err := os.ReadFile("../docs/folio.md")
	if err != nil {
		t.Fatal(err)
	}
	const own = "_mod_circulation_storage"
	from := p.Storage.Tenant + own
	var statements []string
	for _, m := range copiedRow.FindAllStringSubmatch(string(text), -1) {
		schema := tenant + "_" + m[1]
		t.Cleanup(func() { execSQL(t, p.databaseURL, "DROP SCHEMA IF EXISTS "+schema+" CASCADE") })
		if m[1] == "folio_circulation_storage" { // before it is renamed
			schema = tenant + own
		}
		table := schema + "." + m[2]
		statements = append(statements, "CREATE SCHEMA IF NOT EXISTS "+schema,
			"CREATE TABLE "+table+" (id uuid PRIMARY KEY, jsonb jsonb NOT NULL, creation_date timestamp, created_by text)",
			"INSERT INTO "+table+" SELECT id, jsonb FROM "+from+"."+m[3])
	}
	if len(statements) < 60 {
		t.Fatalf("docs/folio.md copies %d tables", len(statements)/3)
	}
	rules := tenant + own + ".circulation_rules"
	execSQL(t, p.databaseURL, append(statements, "CREATE TABLE "+rules+" (id uuid PRIMARY KEY, jsonb jsonb NOT NULL)",
		"INSERT INTO "+rules+" SELECT id, jsonb_build_object('rulesAsText', rules) FROM "+from+".circulation_rules")...)
}

// The SQL of docs/folio.md moves a tenant from FOLIO to the pair and back.
func TestFolioDocument_MovesATenant(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 2)
	patron, barcode := p.addPatron(t)
	books := p.addBooks(t, 3)
	if a := p.lendBook(t, 0, books[0], barcode); a.Status != http.StatusCreated {
		t.Fatalf("lending: %d %s", a.Status, a.Body)
	}
	tenant := "it_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:16]
	blocks := readSQL(t, tenant)
	p.storeAsFolio(t, tenant)
	execSQL(t, p.databaseURL, blocks[0])

	moved := *p
	moved.Library, moved.machines = new(*p.Library), []stack.Client{p.machines[0]}
	moved.Storage.Tenant, moved.machines[0].Tenant = tenant, tenant
	if err := moved.Storage.InstallTenant(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { execSQL(t, p.databaseURL, "DROP SCHEMA IF EXISTS "+tenant+"_pair CASCADE") })
	execSQL(t, p.databaseURL, blocks[1], blocks[2])
	if n := moved.countOpenLoans(t, patron); n != 1 {
		t.Fatalf("the patron has %d open loans after the copy, want 1", n)
	}
	for i, want := range []int{http.StatusCreated, http.StatusUnprocessableEntity} { // the copied loan counts
		if a := moved.lendBook(t, 0, books[i+1], barcode); a.Status != want {
			t.Errorf("book %d: %d %s, want %d", i+1, a.Status, a.Body, want)
		}
	}
	execSQL(t, p.databaseURL, blocks[3])
	const inFolio = `DO $$ BEGIN
		ASSERT (SELECT count(*) FROM %_folio_circulation_storage.loan WHERE jsonb->'status'->>'name' = 'Open') = 2;
		ASSERT (SELECT count(*) FROM %_mod_inventory_storage.item WHERE jsonb->'status'->>'name' = 'Checked out') = 2;
	END $$`
	execSQL(t, p.databaseURL, strings.ReplaceAll(inFolio, "%", tenant))
	execSQL(t, p.databaseURL, blocks[4])
}

func TestOpenAPI_IsServed(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{}, 1)
	for _, c := range []stack.Client{p.Storage, p.machines[0]} {
		c.Tenant = ""
		doc := readObject(t, callEndpoint(t, c, http.MethodGet, "/openapi.json", nil), http.StatusOK)
		paths, _ := doc["paths"].(map[string]any)
		if doc["openapi"] != "3.1.0" || paths["/openapi.json"] == nil || len(paths) < 30 {
			t.Errorf("%s: got OpenAPI %v with %d paths", c.Base, doc["openapi"], len(paths))
		}
	}
}
