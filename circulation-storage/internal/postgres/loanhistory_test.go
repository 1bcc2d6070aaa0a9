package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/circulation-storage/internal/postgres/pgtest"
	"checkoutlock/circulation-storage/internal/records"
)

// patronsInHistory counts the entries of a loan's history that name a patron.
func (l harness) patronsInHistory(loan uuid.UUID) int {
	l.t.Helper()
	return l.count(`SELECT count(*) FROM {schema}.loan_history WHERE loan_id = $1 AND jsonb->'loan' ?| ARRAY['userId', `+
		`'proxyUserId']`, loan)
}

func TestLoanHistory_NamesNoPatronOfALoanWithoutOne(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	c, other := l.lent(), l.lent()
	l.exec(`UPDATE {schema}.loan SET jsonb = jsonb || jsonb_build_object('proxyUserId', id) WHERE id = $1`, c.loan)
	if _, err := l.takeBack(c.item, 2); err != nil {
		t.Fatal(err)
	}
	before := l.patronsInHistory(c.loan)
	if err := l.replaceLoan(uuid.New(), c, toClosed+`,"userId":null,"actionComment":"anonymous"`); err != nil {
		t.Fatal(err)
	}
	if n := l.patronsInHistory(c.loan); before != 3 || n != 0 {
		t.Errorf("%d and then %d entries name a patron, want 3 and none", before, n)
	}
	l.exec(`DELETE FROM {schema}.loan WHERE id = $1`, c.loan)
	if n := l.count(`SELECT count(*) FROM {schema}.loan_history WHERE loan_id = $1`, c.loan); n != 5 ||
		l.patronsInHistory(c.loan) != 0 {
		t.Errorf("after the deletion %d entries are left, %d name a patron, want 5 and none", n, l.patronsInHistory(c.loan))
	}
	if n := l.patronsInHistory(other.loan); n != 1 {
		t.Errorf("%d entries of another loan name a patron, want 1", n)
	}
}

func TestLoanHistory_OfOpenLoansIsNotSwept(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	open, closed := l.lent(), l.lent()
	if _, err := l.takeBack(closed.item, 2); err != nil {
		t.Fatal(err)
	}
	l.exec(`UPDATE {schema}.loan_history SET jsonb = jsonb_set(jsonb, '{createdDate}', '"2020-01-01T00:00:00.000+00:00"')`)
	young := l.lent()
	if _, err := l.takeBack(young.item, 2); err != nil {
		t.Fatal(err)
	}
	store := postgres.NewRecordStore(l.db, func() {})
	for _, want := range []int{1, 1, 0} {
		if n, err := store.SweepLoanHistory(l.ctx(), 24*time.Hour, 1); err != nil || n != want {
			t.Errorf("swept %d, %v, want %d", n, err, want)
		}
	}
	for loan, want := range map[uuid.UUID]int{open.loan: 1, closed.loan: 0, young.loan: 2} {
		if n := l.patronsInHistory(loan); n != want {
			t.Errorf("%d entries are left, want %d", n, want)
		}
	}
}

// FOLIO's page of a loan shows the entries in the order in which they come.
func TestLoanHistory_IsListedNewestFirst(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.executeStatements(t, `INSERT INTO S.loan_history (id, jsonb) SELECT gen_random_uuid(), jsonb_build_object(
		'operation', n::text, 'createdDate', format('2026-03-1%sT10:00:00.000+00:00', n)) FROM generate_series(1, 9) AS n`)
	for query, want := range map[string]string{
		"": "987654321", "operation<>5": "98764321", "operation<>5 sortBy operation": "12346789",
	} {
		list, err := pgtest.List(l.in(t), l.store, records.LoanHistory, records.Page{Query: query, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, doc := range list.Records {
			entry, _ := records.Decode(doc)
			got += entry.Text("operation")
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}
}

func TestLoanHistory_IsSweptByAnIndex(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.executeStatements(t, `INSERT INTO S.loan_history (id, jsonb) SELECT gen_random_uuid(), jsonb_build_object('loan',
		jsonb_build_object('id', gen_random_uuid()),
		'createdDate', to_char(now() - n * interval '1 minute', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) FROM generate_series(1,
		100000) AS n`, "ANALYZE S.loan_history")
	statement := l.sql(strings.ReplaceAll(postgres.SweepLoanHistorySQL, "{schema}.", "S."))
	plan, err := explainOn(l.in(t), l.db.Pool(), statement, 69*24*time.Hour, 500)
	if err != nil || !strings.Contains(plan, "loan_history_created_date_idx") ||
		strings.Contains(plan, "Seq Scan on loan_history") {
		t.Errorf("the plan reads the whole history, %v:\n%s", err, plan)
	}
	if n, err := l.store.SweepLoanHistory(l.in(t), 69*24*time.Hour, 500); err != nil || n != 500 {
		t.Errorf("swept %d, %v, want 500", n, err)
	}
}
