package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/records"
)

func TestLookupsUseAnIndex(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	tests := []struct {
		typ   records.Type
		query string
		index string
	}{
		{records.User(), `barcode=="123"`, "users_barcode_key"},
		{records.User(), `barcode==("1" or "2" or "3")`, "users_barcode_key"},
		{records.User(), `username==ann`, "users_username_key"},
		{records.User(), `id==` + annID, "users_pkey"},
		{records.Item(), `barcode=="123"`, "item_barcode_key"},
		{records.Item(), `holdingsRecordId==` + annID, "item_holdings_record_id_idx"},
		{records.Loan(), `userId=="` + annID + `" and status.name==Open`, "loan_user_id_idx"},
		{records.Loan(), `itemId=="` + annID + `" and status.name=="Open"`, "loan_item_id_idx"},
		{records.Loan(), `status.name==Open and itemId==("` + annID + `" or "` + benID + `")`, "loan_item_id_idx"},
		{records.Request(), `itemId=="` + annID + `" and status==("Open - Not yet filled" or "Open - In transit") sortBy position`, "request_item_id_idx"},
		{records.Request(), `instanceId==` + annID + ` and status=="Open - Not yet filled"`, "request_instance_id_idx"},
		{records.Request(), `requesterId==` + annID + ` and status=="Open - Not yet filled"`, "request_requester_id_idx"},
		{records.PatronActionSession(), `patronId==` + annID + ` and actionType=="Check-out"`, "patron_action_session_patron_id_idx"},
		{records.ManualBlock(), `userId==` + annID, "manualblocks_user_id_idx"},
		{records.ProxyFor(), `proxyUserId==` + annID + ` and userId==` + benID, "proxyfor_"},
		{records.CirculationSetting(), `name==generalTlr`, "circulation_settings_name_key"},
		{records.SettingsEntry(), `scope==mod-circulation and key==checkoutLockFeature`, "settings_entry_scope_key_idx"},
	}
	for _, tt := range tests {
		t.Run(tt.typ.Name+" "+tt.query, func(t *testing.T) {
			t.Parallel()
			plan := explain(t, l, tt.typ, tt.query)
			if strings.Contains(plan, "Seq Scan") || strings.Count(plan, tt.index) < 2 { // page and total
				t.Errorf("the plan does not use %s for both page and total:\n%s", tt.index, plan)
			}
		})
	}
}

// explain returns the plan of a list statement on a table that PostgreSQL takes
// for large.
func explain(t *testing.T, l library, typ records.Type, query string) string {
	statement, args, err := postgres.ListStatement(l.in(t), typ, records.Page{Query: query, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := l.db.Pool().Begin(l.in(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(l.in(t)) }()
	if _, err := tx.Exec(l.in(t), `SET LOCAL enable_seqscan = off`); err != nil {
		t.Fatal(err)
	}
	rows, err := tx.Query(l.in(t), "EXPLAIN "+statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&plan, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}
