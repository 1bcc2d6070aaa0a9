package postgres_test

import (
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/records"
)

func TestCQL_LookupsUseAnIndex(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.fillLoans(t)
	tests := []struct {
		typ   records.Type
		query string
		index string
	}{
		{typ: records.User, query: `barcode=="123"`, index: "users_barcode_key"},
		{typ: records.User, query: `barcode==("1" or "2" or "3")`, index: "users_barcode_key"},
		{typ: records.User, query: `username==ann`, index: "users_username_key"},
		{typ: records.User, query: `id==` + annID, index: "users_pkey"},
		{typ: records.Item, query: `barcode=="123"`, index: "item_barcode_key"},
		{typ: records.Item, query: `holdingsRecordId==` + annID, index: "item_holdings_record_id_idx"},
		{typ: records.Loan, query: `userId=="` + annID + `" and status.name==Open`, index: "loan_user_id_idx"},
		{typ: records.Loan, query: `itemId=="` + annID + `" and status.name=="Open"`, index: "loan_item_id_idx"},
		{
			typ: records.Loan, query: `status.name==Open and itemId==("` + annID + `" or "` + benID + `")`,
			index: "loan_item_id_idx",
		},
		{
			typ: records.Loan, index: "loan_system_return_date_idx",
			query: `status.name==Closed and userId="" and systemReturnDate<"2026-01-01T00:00:00Z" sortBy systemReturnDate`,
		},
		{
			typ:   records.Request,
			query: `itemId=="` + annID + `" and status==("Open - Not yet filled" or "Open - In transit") sortBy position`,
			index: "request_item_id_idx",
		},
		{
			typ: records.Request, query: `instanceId==` + annID + ` and status=="Open - Not yet filled"`,
			index: "request_instance_id_idx",
		},
		{
			typ: records.Request, query: `requesterId==` + annID + ` and status=="Open - Not yet filled"`,
			index: "request_requester_id_idx",
		},
		{
			typ: records.PatronActionSession, query: `patronId==` + annID + ` and actionType=="Check-out"`,
			index: "patron_action_session_patron_id_idx",
		},
		{typ: records.CheckInOperation, query: `itemId==` + annID, index: "check_in_operation_item_id_idx"},
		{typ: records.ScheduledNotice, query: `loanId==` + annID, index: "scheduled_notice_loan_id_idx"},
		{
			typ: records.ScheduledNotice, query: `nextRunTime < "2026-01-01T00:00:00Z" sortby nextRunTime`,
			index: "scheduled_notice_next_run_time_idx",
		},
		{typ: records.ActualCostRecord, query: `loan.id==` + annID, index: "actual_cost_record_loan_id_idx"},
		{typ: records.ManualBlock, query: `userId==` + annID, index: "manualblocks_user_id_idx"},
		{typ: records.PatronBlockLimit, query: `patronGroupId==` + annID, index: "patron_block_limits_patron_group_id_idx"},
		{typ: records.ProxyFor, query: `proxyUserId==` + annID + ` and userId==` + benID, index: "proxyfor_"},
		{typ: records.CirculationSetting, query: `name==generalTlr`, index: "circulation_settings_name_key"},
		{
			typ: records.SettingsEntry, query: `scope==mod-circulation and key==checkoutLockFeature`,
			index: "settings_entry_scope_key_idx",
		},
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

const manyLoansSQL = `
INSERT INTO S.loan (id, jsonb)
SELECT id, jsonb_build_object('id', id, 'userId', md5('patron' || n % 300)::uuid, 'itemId', gen_random_uuid(),
'action', 'checkedout',
	'loanDate', '2026-08-22', 'dueDate', to_char(date '2026-01-01' + n % 365, 'YYYY-MM-DD'),
	'status', jsonb_build_object('name', CASE WHEN n % 10 = 0 THEN 'Open' ELSE 'Closed' END))
  FROM (SELECT gen_random_uuid() AS id, n FROM generate_series(1, 3000) AS n) AS new`

// fillLoans stores 3,000 loans, every tenth of them open, with statistics.
func (l library) fillLoans(t *testing.T) {
	t.Helper()
	l.executeStatements(t, manyLoansSQL, "ANALYZE S.loan")
}

// executeStatements runs SQL in which S. stands for the tenant's schema.
func (l library) executeStatements(t *testing.T, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := l.db.Pool().Exec(l.in(t), l.sql(statement)); err != nil {
			t.Fatal(err)
		}
	}
}

// sql puts the tenant's schema into SQL for S.
func (l library) sql(statement string) string {
	return strings.ReplaceAll(statement, "S.", postgres.SchemaName(l.id)+".")
}

// explain returns the plan of a list statement on a table that PostgreSQL takes
// for large.
func explain(t *testing.T, l library, typ records.Type, query string) string {
	statement, args, err := postgres.ListStatement(l.in(t), typ, records.Page{Query: query, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	return l.explainRead(t, statement, args...)
}
