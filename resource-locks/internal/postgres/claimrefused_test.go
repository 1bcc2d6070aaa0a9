package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
	"checkoutlock/schemas/fault"
)

// writeCall is a call of a ClaimStore that changes what is stored.
type writeCall struct {
	name string
	call func(*postgres.ClaimStore) error
}

// removals returns the calls that remove a claim.
func removals(t *testing.T, q engine.Claim) []writeCall {
	ctx := t.Context()
	return []writeCall{
		{"Withdraw", func(s *postgres.ClaimStore) error {
			_, err := s.Withdraw(ctx, q.Instance, q.Namespace, q.ID)
			return err
		}},
		{"Disconnect", func(s *postgres.ClaimStore) error {
			_, err := s.Disconnect(ctx, q.Instance, q.Namespace, q.ID)
			return err
		}},
		{"ForceWithdraw", func(s *postgres.ClaimStore) error {
			_, err := s.ForceWithdraw(ctx, q.Instance, q.Namespace, q.ID, engine.Note{By: "eve", Reason: "stuck"})
			return err
		}},
		{"Settle", func(s *postgres.ClaimStore) error { _, _, err := s.Settle(ctx, q.Instance); return err }},
	}
}

// storeClaim stores a claim of an instance whose lease has ended.
func storeClaim(t *testing.T, schema *schematest.Schema, db *postgres.DB) engine.Claim {
	t.Helper()
	q := engine.Claim{ID: uuid.New(), Instance: uuid.New(), Namespace: "ns", Resources: []engine.Resource{{Write: true}}}
	store := postgres.NewClaimStore(db)
	if err := store.StartLease(t.Context(), q.Instance, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Enqueue(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	schema.Advance(db, time.Hour)
	return q
}

func TestClaimStore_ReadOnlyDatabaseIsUnavailable(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	q := storeClaim(t, s, s.Open(""))
	calls := append(removals(t, q), []writeCall{
		{"StartLease", func(s *postgres.ClaimStore) error { return s.StartLease(t.Context(), uuid.New(), time.Minute) }},
		{"KeepLease", func(s *postgres.ClaimStore) error { return s.KeepLease(t.Context(), q.Instance, time.Minute) }},
		{"EndLease", func(s *postgres.ClaimStore) error { return s.EndLease(t.Context(), q.Instance) }},
		{"OpenNamespace", func(s *postgres.ClaimStore) error { return s.OpenNamespace(t.Context(), "new") }},
		{"Enqueue", func(s *postgres.ClaimStore) error { _, err := s.Enqueue(t.Context(), q); return err }},
		{"NoteGrants", func(s *postgres.ClaimStore) error {
			_, err := s.NoteGrants(t.Context(), []uuid.UUID{q.ID})
			return err
		}},
	}...)
	for mode, parameters := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			store := postgres.NewClaimStore(s.Open(parameters + "&default_transaction_read_only=on"))
			for _, c := range calls {
				if err := c.call(store); !fault.Is(err, fault.Unavailable) {
					t.Errorf("%s: %v, want %s", c.name, err, fault.Unavailable)
				}
			}
		})
	}
}

// The first try is rolled back by its COMMIT, after the statement has returned what it granted.
func TestClaimStore_RepeatedRemovalGrantsOnce(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("")
	store, instance := postgres.NewClaimStore(db), uuid.New()
	if err := store.StartLease(t.Context(), instance, time.Minute); err != nil {
		t.Fatal(err)
	}
	claims := make([]engine.Claim, 2)
	for i := range claims {
		claims[i] = engine.Claim{
			ID: uuid.New(), Instance: instance, Namespace: "ns", Resources: []engine.Resource{{Write: true}},
		}
		if _, err := store.Enqueue(t.Context(), claims[i]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Pool().Exec(t.Context(), s.NameSchema(`
		CREATE SEQUENCE {schema}.tries;
		CREATE FUNCTION {schema}.refuse_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('{schema}.tries') = 1 THEN RAISE 'refused' USING ERRCODE = '40P01'; END IF; RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER refuse_once AFTER DELETE ON {schema}.claim DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_once()`), pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	granted, err := store.Withdraw(t.Context(), instance, "ns", claims[0].ID)
	if err != nil || len(granted) != 1 || granted[0] != claims[1].ID {
		t.Errorf("granted %v, %v, want %s", granted, err, claims[1].ID)
	}
}

// A statement that the server refuses has no columns.
func TestClaimStore_RefusedRemovalIsAFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, sqlState string
		want           fault.Code
	}{
		{name: "the server ends sessions", sqlState: "57P01", want: fault.Unavailable},
		{name: "a time-out", sqlState: "57014", want: fault.Timeout},
		{name: "deadlocks, time after time", sqlState: "40P01", want: fault.Timeout},
		{name: "a full disk", sqlState: "53100", want: fault.Unavailable},
		{name: "no memory", sqlState: "53200", want: fault.Unavailable},
		{name: "a failing disk", sqlState: "58030", want: fault.Unavailable},
		{name: "a lost table", sqlState: "42P01", want: fault.Unavailable},
		{name: "a lost schema", sqlState: "3F000", want: fault.Unavailable},
		{name: "a lost column", sqlState: "42703", want: fault.Unavailable},
		{name: "any other error", sqlState: "P0001", want: fault.Internal},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := schematest.New(t)
			db := s.Open("")
			q := storeClaim(t, s, db)
			if _, err := db.Pool().Exec(t.Context(), strings.NewReplacer("{schema}", s.Name, "{state}", c.sqlState).Replace(`
				CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN RAISE 'refused' USING ERRCODE = '{state}'; END $$;
				CREATE TRIGGER refuse BEFORE DELETE ON {schema}.claim FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse()`),
				pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
			for _, removal := range removals(t, q) {
				if err := removal.call(postgres.NewClaimStore(db)); !fault.Is(err, c.want) {
					t.Errorf("%s: %v, want %s", removal.name, err, c.want)
				}
			}
		})
	}
}
