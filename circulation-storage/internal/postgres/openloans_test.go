package postgres_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/circulation-storage/internal/postgres"
	"checkoutlock/schemas"
	"checkoutlock/schemas/fault"
)

// addNamed stores a material type or a loan type.
func (l harness) addNamed(table string) uuid.UUID {
	l.t.Helper()
	id := uuid.New()
	l.exec(`INSERT INTO {schema}.`+table+
		` (id, jsonb) VALUES ($1::uuid, jsonb_build_object('id', $1::uuid, 'name', $1::uuid))`, id)
	return id
}

// addLoan stores a loan of a new item.
func (l harness) addLoan(user uuid.UUID, status, itemStatus, itemMore string) {
	l.t.Helper()
	id, item := uuid.New(), l.addItem(itemStatus, itemMore)
	l.exec(`INSERT INTO {schema}.loan (id, jsonb) VALUES ($1, $2)`, id,
		fmt.Sprintf(`{"id":%q,"userId":%q,"itemId":%q,"status":{"name":%q}}`, id, user, item, status))
}

func TestItemLimit_CountsAsFolio(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	user := uuid.New()
	held := l.lock(user)
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
	// The item of this one is gone.
	l.exec(`INSERT INTO {schema}.loan (id, jsonb) VALUES (gen_random_uuid(),
		jsonb_build_object('userId', $1::uuid, 'itemId', gen_random_uuid(), 'status', '{"name":"Open"}'::jsonb))`, user)

	for name, tt := range map[string]struct {
		material, loanType uuid.UUID
		want               int
	}{
		"all":                     {want: 3},
		"books":                   {material: book, want: 2},
		"for a week":              {loanType: week, want: 2},
		"for a day":               {loanType: day, want: 1},
		"books for a week":        {material: book, loanType: week, want: 1},
		"a type that nothing has": {material: uuid.New(), want: 0},
	} {
		c := lending{
			loan: uuid.New(), user: user, item: l.addItem("Available", ""), lock: held, version: 1, material: tt.material,
			loanType: tt.loanType,
		}
		if c.limit = tt.want; tt.want > 0 {
			l.wantCount(name, c, tt.want)
			l.wantUntouched(c.item)
		}
		c.limit = tt.want + 1
		l.lend(c)
		l.exec(`DELETE FROM {schema}.loan WHERE id = $1`, c.loan)
	}
}

// addDueLoan stores an open loan that is due so long ago.
func (l harness) addDueLoan(user uuid.UUID, ago time.Duration, itemStatus, more string) {
	l.t.Helper()
	id, item := uuid.New(), l.addItem(itemStatus, "")
	l.exec(`INSERT INTO {schema}.loan (id, jsonb) VALUES ($1, $2)`, id,
		fmt.Sprintf(`{"id":%q,"userId":%q,"itemId":%q,"status":{"name":"Open"},"dueDate":%q%s}`,
			id, user, item, time.Now().Add(-ago).UTC().Format(time.RFC3339), more))
}

func TestLimits_CountWhatTheyName(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	const recalled, notRecalled = `,"dueDateChangedByRecall":true`, `,"dueDateChangedByRecall":false`
	user := l.addUser("p-1")
	held := l.lock(user)
	l.addDueLoan(user, -time.Hour, "Checked out", recalled)
	l.addDueLoan(user, time.Second, "Checked out", recalled) // not overdue for a minute
	l.addDueLoan(user, time.Hour+5*time.Second, "Checked out", notRecalled)
	l.addDueLoan(user, 25*time.Hour, "Checked out", recalled)
	l.addDueLoan(user, 50*time.Hour, "Declared lost", "")
	l.addDueLoan(user, 99*time.Hour, "Claimed returned", recalled) // does not count
	l.addLoan(user, "Open", "Aged to lost", "")                    // is due on no date
	l.addLoan(user, "Closed", "Available", "")
	loans := l.readFacts(schemas.CheckOutSubjects{UserBarcode: "p-1"}).OpenLoans
	for _, tt := range []struct {
		limit schemas.LoanLimit
		want  int
	}{
		{limit: schemas.LoanLimit{}, want: 6},
		{limit: schemas.LoanLimit{OverdueMinutes: 1}, want: 3},
		{limit: schemas.LoanLimit{OverdueMinutes: 60}, want: 3},
		{limit: schemas.LoanLimit{OverdueMinutes: 61}, want: 2},
		{limit: schemas.LoanLimit{OverdueMinutes: 1, Recalled: true}, want: 1},
		{limit: schemas.LoanLimit{OverdueMinutes: 24*60 + 1, Recalled: true}, want: 1},
		{limit: schemas.LoanLimit{Lost: true}, want: 2},
		{limit: schemas.LoanLimit{Lost: true, OverdueMinutes: 1}, want: 1},
	} {
		if got := tt.limit.Count(loans); got != tt.want {
			t.Errorf("%+v: the facts count %d of %+v, want %d", tt.limit, got, loans, tt.want)
		}
		tt.limit.Max = tt.want
		own, err := json.Marshal(tt.limit)
		if err != nil {
			t.Fatal(err)
		}
		c := lending{
			loan: uuid.New(), user: user, item: l.addItem("Available", ""), lock: held, version: 1,
			limits: `{"max":99},` + string(own),
		}
		l.wantCount(fmt.Sprintf("%+v", tt.limit), c, tt.want)
		l.wantUntouched(c.item)
	}
}

// wantCount sends a check-out that the limit must refuse, with n open loans counted.
func (l harness) wantCount(what string, c lending, n int) {
	l.t.Helper()
	_, _, err := l.send(c)
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.LimitReached || *f.Details[0].Parameters[0].Value != strconv.Itoa(n) {
		l.t.Errorf("%s: got %v, want %s with %d open loans", what, err, fault.LimitReached, n)
	}
}

func TestCheckOut_RefusesALoanBeyondTheLimit(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	first := l.withLock(uuid.New(), l.addItem("Available", ""))
	first.limit = 1
	l.lend(first)
	second := first
	second.loan, second.item, second.release = uuid.New(), l.addItem("Available", ""), true
	for _, what := range []string{"the second loan", "the same again"} {
		l.wantCount(what, second, 1)
	}
	l.wantUntouched(second.item)
	if n := l.count(`SELECT count(*) FROM {schema}.check_out_lock WHERE id = $1`, second.lock); n != 1 {
		t.Error("the refusal released the lock")
	}
	if _, outcome, err := l.send(first); outcome != commit.Repeated {
		t.Errorf("a repeat at the limit: got %s, %v, want its loan", outcome, err)
	}
	second.lock = uuid.New()
	if _, _, err := l.send(second); !fault.Is(err, fault.LockLost) {
		t.Errorf("beyond the limit without the lock: got %v, want %s", err, fault.LockLost)
	}
}

// Both commits name one lock. The second begins before the first one ends, and waits for
// the fence. A snapshot from before that wait would not have the first one's loan.
func TestCheckOut_CountsAfterTheFence(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	for _, limits := range []string{`{"max":1}`, `{"max":9},{"max":1,"overdueMinutes":1}`} {
		first := l.withLock(uuid.New(), l.addItem("Available", ""))
		first.limits = limits // the loan is due in the past
		l.wantSecondCounted(first)
	}
}

// wantSecondCounted sends the check-out and another one at once, which the limit must refuse.
func (l harness) wantSecondCounted(first lending) {
	l.t.Helper()
	second := first
	second.loan, second.item = uuid.New(), l.addItem("Available", "")
	// stops the first one behind its fence
	held := l.begin(`SELECT FROM {schema}.item WHERE id = $1 FOR UPDATE`, first.item)
	done := make(chan error, 1)
	go func() {
		_, _, err := l.send(first)
		done <- err
	}()
	l.waitUntilBlocked(1)
	var wg sync.WaitGroup
	wg.Go(func() { l.wantCount("the second commit", second, 1) })
	l.waitUntilBlocked(2)
	if err := held.Rollback(l.ctx()); err != nil {
		l.t.Fatal(err)
	}
	if err := <-done; err != nil {
		l.t.Errorf("the first commit: %v", err)
	}
	wg.Wait()
	l.wantUntouched(second.item)
}

// The count runs while the patron's lock is held, so it must not read the whole
// library.
func TestItemLimit_UsesTheIndexOfOpenLoans(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	l.exec(`INSERT INTO {schema}.item (id, jsonb) SELECT gen_random_uuid(), '{"status":{"name":"Checked out"}}' FROM ` +
		`generate_series(1, 4000)`)
	l.exec(`INSERT INTO {schema}.loan (id, jsonb) SELECT gen_random_uuid(), jsonb_build_object(
		'userId', md5((row_number() OVER () % 1000)::text)::uuid, 'itemId', id, 'status', jsonb_build_object('name',
		'Open')) FROM {schema}.item`)
	l.exec(`INSERT INTO {schema}.loan (id, jsonb) SELECT gen_random_uuid(), jsonb || '{"status":{"name":"Closed"}}'
		FROM {schema}.loan, generate_series(1, 4)`) // most loans are closed
	l.exec(`ANALYZE {schema}.item`)
	l.exec(`ANALYZE {schema}.loan`)
	for name, limits := range map[string]string{
		"all":         `[{"max":3}]`,
		"of one type": `[{"max":3,"materialTypeId":"` + uuid.NewString() + `","loanTypeId":"` + uuid.NewString() + `"}]`,
		"several":     `[{"max":3},{"max":3,"overdueMinutes":1},{"max":3,"lost":true}]`,
	} {
		explain := `EXPLAIN ` + l.sql(postgres.CheckOutLoanSQL)
		rows, _ := l.db.Pool().Query(l.ctx(), explain, uuid.New(), uuid.New(), uuid.New(), limits)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		plan := strings.Join(lines, "\n")
		if !strings.Contains(plan, "loan_open_user_id_idx") || strings.Contains(plan, "Seq Scan on loan") ||
			strings.Contains(plan, "Seq Scan on item") {
			t.Errorf("%s: got the plan\n%s\nwant loan_open_user_id_idx and no Seq Scan", name, plan)
		}
	}
}
