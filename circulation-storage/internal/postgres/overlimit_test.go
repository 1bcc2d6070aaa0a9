package postgres_test

import (
	"testing"

	"github.com/google/uuid"
)

func TestOverLimit_CountsPatronsLentTooMuch(t *testing.T) {
	t.Parallel()
	l := newHarness(t)
	wantOver := func(when string, want int) {
		t.Helper()
		if n, err := l.db.CountOverLimit(l.ctx()); err != nil || n != want {
			t.Errorf("%s: got %d, %v, want %d", when, n, err, want)
		}
	}
	book := l.addNamed("material_type")
	typed := func() uuid.UUID { return l.addItem("Available", `,"materialTypeId":"`+book.String()+`"`) }
	user := l.addUser("p-1")
	held := l.lock(user)
	var loans []uuid.UUID
	for range 2 {
		c := lending{
			loan: uuid.New(), user: user, item: typed(), lock: held, version: 1, limit: 2, material: book,
			limits: `{"max":1,"overdueMinutes":9999999},{"max":1,"lost":true},{"max":1,"recalled":true}`,
		}
		l.lend(c)
		loans = append(loans, c.loan)
	}
	wantOver("as many as the limit allows", 0)

	beyond := lending{loan: uuid.New(), user: user, item: typed(), lock: held, version: 1}
	l.lend(beyond)
	wantOver("staff lent another one", 0)

	l.exec(`UPDATE {schema}.loan SET lent_date = lent_date - interval '1 minute' WHERE id = $1`, beyond.loan)
	wantOver("the other one was there already", 1)
	l.exec(`UPDATE {schema}.loan SET lent_date = NULL WHERE id = $1`, beyond.loan)
	wantOver("an earlier build lent it", 1)
	l.exec(`UPDATE {schema}.item SET jsonb = jsonb - 'materialTypeId' WHERE id = $1`, beyond.item)
	wantOver("an item of another type", 0)
	l.exec(`UPDATE {schema}.item SET jsonb = jsonb_set(jsonb, '{materialTypeId}', to_jsonb($2::text)) WHERE id = $1`,
		beyond.item, book.String())
	wantOver("of the same type again", 1)

	if _, err := l.takeBack(beyond.item, 2); err != nil {
		t.Fatal(err)
	}
	wantOver("it is back", 0)
	l.exec(`UPDATE {schema}.loan SET limits = '[{"max":1}]' WHERE id = $1`, loans[1])
	wantOver("a lower limit was in force", 1)
	l.exec(`UPDATE {schema}.loan_history
		SET jsonb = jsonb_set(jsonb, '{createdDate}', to_jsonb('2026-01-01T00:00:00.000+00:00'::text))`)
	wantOver("long ago", 0)
}
