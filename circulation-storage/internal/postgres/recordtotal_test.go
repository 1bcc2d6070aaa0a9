package postgres_test

import (
	"strings"
	"testing"

	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/records"
)

const manyTypesSQL = `
INSERT INTO S.material_type (id, jsonb)
SELECT id, jsonb_build_object('id', id, 'name', 'type ' || n, 'source',
CASE WHEN n <= 1000 THEN 'local' ELSE 'folio' END)
  FROM (SELECT gen_random_uuid() AS id, n FROM generate_series(1, 3500) AS n) AS new`

func TestList_Total(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	// A column without an index, such as source, has no statistics for an estimate.
	l.executeStatements(t, manyTypesSQL, "ANALYZE S.material_type")
	within := func(least, most int) func(int) bool {
		return func(total int) bool { return total >= least && total <= most }
	}
	for _, tt := range []struct {
		name string
		page records.Page
		want func(total int) bool
	}{
		{
			name: "up to 1000 matches are counted", page: records.Page{Query: "source==local", Limit: 10},
			want: within(1000, 1000),
		},
		{name: "more are estimated", page: records.Page{Query: `name>"type 2"`, Limit: 10}, want: within(2000, 2800)},
		{name: "all records are estimated", page: records.Page{Limit: 10}, want: within(3000, 4000)},
		{name: "a page that is not full is the last", page: records.Page{Offset: 3490, Limit: 100}, want: within(3500, 3500)},
		{
			name: "an estimate covers the page",
			page: records.Page{Query: `name=="type*" and source=="f*"`, Offset: 2400, Limit: 90}, want: within(2490, 3500),
		},
		{
			name: "after the last record", page: records.Page{Query: "source==folio", Offset: 5000, Limit: 10},
			want: within(1001, 2500),
		},
		{
			name: "an estimate ends at an empty page",
			page: records.Page{Query: `cql.allRecords=1 not source=="l*"`, Offset: 2600, Limit: 10}, want: within(2600, 2600),
		},
		{name: "of no page", page: records.Page{Query: "source==folio", Offset: 5000}, want: within(1001, 2500)},
		{
			name: "an exact total is counted", page: records.Page{Query: "source==folio", Limit: 10, Total: records.TotalExact},
			want: within(2500, 2500),
		},
		{name: "without a total", page: records.Page{Limit: 10, Total: records.TotalNone}, want: within(0, 0)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			list, err := pgtest.List(l.in(t), l.store, records.MaterialType, tt.page)
			if err != nil {
				t.Fatal(err)
			}
			if !tt.want(list.Total) {
				t.Errorf("got a total of %d", list.Total)
			}
		})
	}
}

func TestList_OfLoansByDateReadsAnIndex(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.fillLoans(t)
	for query, index := range map[string]string{
		"cql.allRecords=1 sortby loanDate":                      "loan_loan_date_idx",
		"cql.allRecords=1 sortby loanDate/sort.descending":      "loan_loan_date_idx",
		"cql.allRecords=1 sortby dueDate":                       "loan_due_date_idx",
		"status.name==Open and dueDate<2026-08-22":              "loan_status_due_date_idx",
		`status.name==Open sortby dueDate`:                      "loan_status_due_date_idx",
		`dueDate>"2026-08-22T10:00:00Z" and dueDate<2026-09-01`: "loan_due_date_idx",
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			if plan := explain(t, l, records.Loan, query); !strings.Contains(plan, index) {
				t.Errorf("the plan does not use %s:\n%s", index, plan)
			}
		})
	}
}
