package integration_test

import (
	"fmt"
	"strings"
	"testing"

	"checkoutlock/integration-tests/browser"
)

// hashesSQL makes a statement that hashes each table of a tenant, except the one of when instances
// last reported.
const hashesSQL = `
SELECT 'SELECT string_agg(h, $$ $$ ORDER BY h) FROM (' || string_agg(format(
       'SELECT %L || md5(coalesce(string_agg(t::text, $$,$$ ORDER BY t::text), $$$$)) AS h FROM %I.%I t',
       table_name || ' ', table_schema, table_name), ' UNION ALL ') || ') hashes'
  FROM information_schema.tables WHERE table_schema = $1 AND table_name <> 'check_out_waiting'`

// hashRecords returns a hash of all that is stored for the library.
func (p *pair) hashRecords(t *testing.T) (hashes string) {
	t.Helper()
	var statement string
	queryValue(t, p.databaseURL, &statement, hashesSQL, schemaName(p.Storage.Tenant))
	queryValue(t, p.databaseURL, &hashes, statement)
	return hashes
}

func TestStaffDrill_ShowsTheLimitAndTouchesNoOtherLibrary(t *testing.T) {
	t.Parallel()
	p := startDemo(t)
	before := p.hashRecords(t)
	tab := p.openStaffPage(t, 0, browser.BasicAuth(clerk, clerkPassword), browser.Size(390, 844))
	tab.Click("Try it with a drill")
	tab.Click("Start the drill")
	waitUntil(t, patience, "the drill is shown", func() bool {
		text := tab.Text("main")
		if strings.Contains(text, "The library of the drill is still being made.") { // on a slow host
			tab.Goto(p.staffURL(0, "/drill"))
			tab.Click("Start the drill")
		}
		return strings.Contains(text, "With the lock off,")
	})
	tab.See("With the lock off,", "With the lock on, 15 items were lent: as many as the limit allows, and no more.",
		"ITEM_LIMIT_MATERIAL_TYPE × 5")
	tab.CheckAxe()
	tab.CheckWidth()
	tab.Click("Start another drill")
	tab.See("A drill runs at this instance, or has just ended.")
	if after := p.hashRecords(t); after != before {
		t.Errorf("the drill changed the library whose page started it: from\n%s\nto\n%s", before, after)
	}
	var open int
	queryValue(t, p.databaseURL, &open, fmt.Sprintf(
		"SELECT count(*) FROM %s.loan WHERE jsonb->'status'->>'name' = 'Open'", schemaName("lock_drill")))
	if open > 0 {
		t.Errorf("%d loans of the drill are open, want none", open)
	}
}
