package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas/fault"
)

// addNamed stores a material type or a loan type.
func (l desk) addNamed(table string) uuid.UUID {
	l.t.Helper()
	id := uuid.New()
	l.exec(`INSERT INTO {schema}.`+table+` (id, jsonb) VALUES ($1::uuid, jsonb_build_object('id', $1::uuid, 'name', $1::uuid))`, id)
	return id
}

// addLoan stores a loan of a new item.
func (l desk) addLoan(user uuid.UUID, status, itemStatus, itemMore string) {
	l.t.Helper()
	id, item := uuid.New(), l.addItem(itemStatus, itemMore)
	l.exec(`INSERT INTO {schema}.loan (id, jsonb) VALUES ($1, $2)`, id,
		fmt.Sprintf(`{"id":%q,"userId":%q,"itemId":%q,"status":{"name":%q}}`, id, user, item, status))
}

func TestCountOpenLoans_CountsAsTheItemLimitDoes(t *testing.T) {
	t.Parallel()
	l := newDesk(t)
	user := uuid.New()
	book, dvd := l.addNamed("material_type"), l.addNamed("material_type")
	week, day := l.addNamed("loan_type"), l.addNamed("loan_type")
	types := func(material, permanent, temporary uuid.UUID) string {
		more := fmt.Sprintf(`,"materialTypeId":%q,"permanentLoanTypeId":%q`, material, permanent)
		if temporary != uuid.Nil {
			more += fmt.Sprintf(`,"temporaryLoanTypeId":%q`, temporary)
		}
		return more
	}
	l.addLoan(user, "Open", "Checked out", types(book, week, uuid.Nil))
	l.addLoan(user, "Open", "Declared lost", types(book, week, day)) // its temporary loan type is day
	l.addLoan(user, "Open", "Aged to lost", types(dvd, week, uuid.Nil))
	l.addLoan(user, "Open", "Claimed returned", types(book, week, uuid.Nil)) // does not count
	l.addLoan(user, "Closed", "Available", types(book, week, uuid.Nil))      // nor does this
	l.addLoan(uuid.New(), "Open", "Checked out", types(book, week, uuid.Nil))
	l.exec(`INSERT INTO {schema}.loan (id, jsonb) VALUES (gen_random_uuid(),
		jsonb_build_object('userId', $1::uuid, 'itemId', gen_random_uuid(), 'status', '{"name":"Open"}'::jsonb))`, user) // its item is gone

	tests := map[string]struct {
		o    commit.OpenLoans
		want int
	}{
		"all":                         {commit.OpenLoans{UserID: user}, 3},
		"books":                       {commit.OpenLoans{UserID: user, MaterialTypeID: book}, 2},
		"for a week":                  {commit.OpenLoans{UserID: user, LoanTypeID: week}, 2},
		"for a day":                   {commit.OpenLoans{UserID: user, LoanTypeID: day}, 1},
		"books for a week":            {commit.OpenLoans{UserID: user, MaterialTypeID: book, LoanTypeID: week}, 1},
		"a type that nothing has":     {commit.OpenLoans{UserID: user, MaterialTypeID: uuid.New()}, 0},
		"a patron who never borrowed": {commit.OpenLoans{UserID: uuid.New()}, 0},
	}
	for name, tt := range tests {
		if got, err := l.commits.CountOpenLoans(l.ctx(), tt.o); err != nil || got != tt.want {
			t.Errorf("%s: got %d, %v, want %d", name, got, err, tt.want)
		}
	}
}

// The count runs while the patron's lock is held, so it must not read the whole
// library.
func TestCountOpenLoans_UsesTheIndexOfOpenLoans(t *testing.T) {
	t.Parallel()
	l := newDesk(t)
	l.exec(`INSERT INTO {schema}.item (id, jsonb) SELECT gen_random_uuid(), '{"status":{"name":"Checked out"}}' FROM generate_series(1, 4000)`)
	l.exec(`INSERT INTO {schema}.loan (id, jsonb) SELECT gen_random_uuid(), jsonb_build_object(
		'userId', md5((row_number() OVER () % 1000)::text)::uuid, 'itemId', id, 'status', jsonb_build_object('name', 'Open')) FROM {schema}.item`)
	l.exec(`INSERT INTO {schema}.loan (id, jsonb) SELECT gen_random_uuid(), jsonb || '{"status":{"name":"Closed"}}'
		FROM {schema}.loan, generate_series(1, 4)`) // most loans are closed
	l.exec(`ANALYZE {schema}.item`)
	l.exec(`ANALYZE {schema}.loan`)
	for name, types := range map[string]*uuid.UUID{"all": nil, "of one type": new(uuid.UUID)} {
		rows, _ := l.db.Pool().Query(l.ctx(), `EXPLAIN `+l.sql(postgres.CountOpenLoansSQL), uuid.New(), types, types, types)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		plan := strings.Join(lines, "\n")
		if !strings.Contains(plan, "loan_open_user_id_idx") || strings.Contains(plan, "Seq Scan on loan") || strings.Contains(plan, "Seq Scan on item") {
			t.Errorf("%s: got the plan\n%s\nwant loan_open_user_id_idx and no Seq Scan", name, plan)
		}
	}
}

func TestCountOpenLoans_WithALock(t *testing.T) {
	t.Parallel()
	l := newDesk(t)
	user, other := uuid.New(), uuid.New()
	l.addLoan(user, "Open", "Checked out", "")
	held := l.lock(user)
	others := l.lock(other)
	released := l.lock(uuid.New())
	if _, err := l.locks.Release(l.ctx(), released); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		lock uuid.UUID
		want fault.Code
	}{
		{name: "counts without a lock", lock: uuid.Nil},
		{name: "counts under the patron's lock", lock: held},
		{name: "refuses another patron's lock", lock: others, want: fault.LockLost},
		{name: "refuses a lock that is gone", lock: released, want: fault.LockLost},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, err := l.commits.CountOpenLoans(l.ctx(), commit.OpenLoans{UserID: user, LockID: tt.lock})
			if fault.CodeOf(err) != tt.want || err == nil && n != 1 {
				t.Errorf("counted %d, %v, want 1 or %q", n, err, tt.want)
			}
		})
	}
}
