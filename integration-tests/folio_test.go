package integration_test

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

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

// What FOLIO checks in the tables that records go back to, for a tenant whose name is %. An item
// counts its changes in _version, and refuses a change of another version.
const folioChecks = `
	CREATE UNIQUE INDEX ON %_mod_circulation_storage.loan (lower(jsonb->>'itemId'))
		WHERE lower(jsonb->'status'->>'name') = 'open';
	CREATE UNIQUE INDEX ON %_mod_circulation_storage.request (lower(jsonb->>'itemId'), lower(jsonb->>'position'));
	CREATE FUNCTION %_mod_inventory_storage.count_change() RETURNS trigger LANGUAGE plpgsql AS $$
	DECLARE
		n integer := 1;
	BEGIN
		IF TG_OP = 'UPDATE' THEN
			n := (OLD.jsonb->>'_version')::integer + 1;
			IF (NEW.jsonb->>'_version')::integer <> n - 1 THEN
				RAISE EXCEPTION '_version is not what is stored' USING ERRCODE = '23F09';
			END IF;
		END IF;
		NEW.jsonb := NEW.jsonb || jsonb_build_object('_version', n);
		RETURN NEW;
	END $$;
	CREATE TRIGGER count_change BEFORE INSERT OR UPDATE OF jsonb ON %_mod_inventory_storage.item
		FOR EACH ROW EXECUTE FUNCTION %_mod_inventory_storage.count_change()`

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
		"INSERT INTO "+rules+" SELECT id, jsonb_build_object('rulesAsText', rules) FROM "+from+".circulation_rules",
		strings.ReplaceAll(folioChecks, "%", tenant))...)
}

// moveTo copies FOLIO's tables of the tenant to a new tenant of the pair, and returns that one.
func (p *pair) moveTo(t *testing.T, tenant string, copying ...string) *pair {
	t.Helper()
	moved := *p
	moved.Library, moved.machines = new(*p.Library), []stack.Client{p.machines[0]}
	moved.Storage.Tenant, moved.machines[0].Tenant = tenant, tenant
	if err := moved.Storage.InstallTenant(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { execSQL(t, p.databaseURL, "DROP SCHEMA IF EXISTS "+tenant+"_pair CASCADE") })
	execSQL(t, p.databaseURL, copying...)
	return &moved
}

// What FOLIO does to its items while the pair circulates: it edits all, and makes one.
const cataloguing = `
	UPDATE %_mod_inventory_storage.item SET jsonb = jsonb || '{"accessionNumber":"of FOLIO"}';
	INSERT INTO %_mod_inventory_storage.item VALUES (gen_random_uuid(), '{"barcode":"made by FOLIO"}')`

// What FOLIO has after the records went back. The item of the last line did not change at the pair,
// so it has the version of FOLIO's edit.
const wentBack = `DO $$ BEGIN
	ASSERT (SELECT count(*) FROM %_folio_circulation_storage.loan WHERE jsonb->'status'->>'name' = 'Open') = 2, 'loans';
	ASSERT (SELECT count(*) FROM %_folio_circulation_storage.loan WHERE jsonb->'status'->>'name' = 'Closed') = 1, 'closed';
	ASSERT (SELECT array_agg(jsonb->>'position' ORDER BY jsonb->>'position') FROM %_folio_circulation_storage.request)
		= '{1,1,2,NULL}', 'queues';
	ASSERT (SELECT count(*) FROM %_folio_circulation_storage.request f JOIN %_mod_circulation_storage.request p
		USING (id) WHERE f.jsonb = p.jsonb) = 4, 'requests';
	ASSERT (SELECT count(*) FROM %_mod_inventory_storage.item WHERE jsonb->'status'->>'name' = 'Checked out') = 2, 'lent';
	ASSERT (SELECT count(*) FROM %_mod_inventory_storage.item WHERE jsonb ? 'lastCheckIn') = 1, 'last check-in';
	ASSERT NOT EXISTS (SELECT FROM %_mod_inventory_storage.item WHERE jsonb ? 'inTransitDestinationServicePointId'), 'to';
	ASSERT (SELECT count(*) FROM %_mod_inventory_storage.item WHERE jsonb->>'accessionNumber' = 'of FOLIO') = 3, 'edits';
	ASSERT EXISTS (SELECT FROM %_mod_inventory_storage.item WHERE jsonb->>'barcode' = 'made by FOLIO'), 'made by FOLIO';
	ASSERT EXISTS (SELECT FROM %_mod_inventory_storage.item WHERE jsonb->>'barcode' = 'made at the pair'), 'made there';
	ASSERT (SELECT jsonb->'_version' FROM %_mod_inventory_storage.item WHERE jsonb->>'barcode' = 'same') = '2', 'version';
END $$`

// The SQL of docs/folio.md moves a tenant from FOLIO to the pair and back.
func TestFolioDocument_MovesATenant(t *testing.T) {
	t.Parallel()
	p := startPair(t, stack.Options{CirculationEnv: enableLock()}, 2)
	patron, barcode := p.addPatron(t)
	ben, benCard := p.addPatron(t)
	cat, _ := p.addPatron(t)
	lentID, lent := p.addItem(t)
	_, coming := p.addItem(t, record{
		"status": record{"name": "In transit"}, "inTransitDestinationServicePointId": p.ServicePointID,
	})
	heldID, _ := p.addItem(t, record{"barcode": "same"})
	readObject(t, p.lendBook(t, 0, lent, barcode), http.StatusCreated)
	for i, requester := range []string{ben, cat} {
		p.addRequest(t, lentID, requester, i+1)
		p.addRequest(t, heldID, requester, i+1)
	}
	tenant := newTenantID()
	blocks := readSQL(t, tenant)
	p.storeAsFolio(t, tenant)
	execSQL(t, p.databaseURL, blocks[0])

	moved := p.moveTo(t, tenant, blocks[1], blocks[2])
	if n := moved.countOpenLoans(t, patron); n != 1 {
		t.Fatalf("the patron has %d open loans after the copy, want 1", n)
	}
	readObject(t, moved.lendBook(t, 0, coming, barcode), http.StatusCreated)
	const made = "made at the pair"
	moved.addItem(t, record{"barcode": made})
	if a := moved.lendBook(t, 0, made, barcode); a.Status != http.StatusUnprocessableEntity { // the copied loan counts
		t.Errorf("a third book: %d %s, want 422", a.Status, a.Body)
	}
	readObject(t, moved.checkInItem(t, lent, p.ServicePointID), http.StatusOK)
	readObject(t, moved.lendBook(t, 0, lent, benCard), http.StatusCreated) // so Cat's request moves up
	execSQL(t, p.databaseURL, "UPDATE "+moved.tableName("request")+` SET jsonb = jsonb_set(jsonb, '{position}',
		to_jsonb(3 - position)) WHERE item_id = '`+heldID+"'", strings.ReplaceAll(cataloguing, "%", tenant))
	execSQL(t, p.databaseURL, blocks[3], strings.ReplaceAll(wentBack, "%", tenant), blocks[4])
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
