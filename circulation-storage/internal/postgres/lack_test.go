package postgres_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"checkoutlock/circulation-storage/internal/commit"
	"checkoutlock/schemas/fault"
)

// PostgreSQL refuses the loan, or the COMMIT. Sequences count also what is rolled back.
func TestCheckOut_IsRefusedOnceForALack(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"53100": "no space left", "53200": "out of memory", "53400": "a limit of its configuration",
		"58030": "its disk fails",
	} {
		for _, at := range []string{"IMMEDIATE", "DEFERRED"} {
			t.Run(code+" "+at, func(t *testing.T) {
				t.Parallel()
				l := newHarness(t)
				l.exec(`CREATE SEQUENCE {schema}.tries`)
				l.exec(strings.NewReplacer("{tries}", l.sql("{schema}.tries"), "{code}", code).Replace(`
					CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
					BEGIN PERFORM nextval('{tries}'); RAISE 'refused' USING ERRCODE = '{code}'; END $$`))
				l.exec(`CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON {schema}.loan DEFERRABLE INITIALLY ` + at + `
					FOR EACH ROW EXECUTE FUNCTION {schema}.refuse()`)
				c := l.withLock(uuid.New(), l.addItem("Available", ""))
				_, _, err := l.send(c)
				if !fault.Is(err, fault.Unavailable) || !fault.ChangedNothing(err) || !strings.Contains(fault.Text(err), want) {
					t.Errorf("got %v, which changed nothing: %t, want %q", err, fault.ChangedNothing(err), want)
				}
				if n := l.count(`SELECT last_value FROM {schema}.tries`); n != 1 {
					t.Errorf("tried %d times, want once", n)
				}
				l.exec(`DROP TRIGGER refuse ON {schema}.loan`)
				if _, outcome, err := l.send(c); err != nil || outcome != commit.Committed {
					t.Errorf("later: %s, %v, want a loan", outcome, err)
				}
			})
		}
	}
}
