package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/resource-locks/internal/postgres/schematest"
)

// Callers rely on some answers after a crash. The others cost less.
func TestStores_WaitForTheDiskWhereCallersRelyOnIt(t *testing.T) {
	t.Parallel()
	s := schematest.New(t)
	db := s.Open("&synchronous_commit=on")
	exec := func(statement string) {
		t.Helper()
		if _, err := db.Pool().Exec(t.Context(), s.NameSchema(statement), pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE TABLE {schema}.committed (synchronous text);
		CREATE FUNCTION {schema}.record() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO {schema}.committed VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$`)
	for _, table := range []string{"lock", "claim", "instance"} {
		exec(`CREATE CONSTRAINT TRIGGER record AFTER INSERT OR UPDATE OR DELETE ON {schema}.` + table +
			` DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {schema}.record()`)
	}
	store, claims, instance := postgres.NewLockStore(db), postgres.NewClaimStore(db), uuid.New()
	a := engine.Acquire{Key: engine.Key{Namespace: "ns", Name: "a"}, Owner: "ann", TTL: time.Hour}
	b := a
	b.Name = "b"
	note := engine.Note{By: "eve", Reason: "stuck"}
	claim := func(name string) engine.Claim {
		return engine.Claim{
			ID: uuid.New(), Instance: instance, Namespace: name, Abandon: time.Hour, Resources: []engine.Resource{{Write: true}},
		}
	}
	ended, forced := claim("ended"), claim("forced")
	var lock engine.Lock
	for _, tt := range []struct {
		name    string
		durable bool
		call    func() error
	}{
		{name: "a grant", durable: true, call: func() error {
			g, err := store.Acquire(t.Context(), a)
			lock = g.Lock
			return err
		}},
		{name: "another grant", durable: true, call: func() error { _, err := store.Acquire(t.Context(), b); return err }},
		{name: "a renewal", durable: true, call: func() error { _, err := store.Acquire(t.Context(), a); return err }},
		{name: "a group of renewals", durable: true, call: func() error {
			_, err := store.SendRenewals(t.Context(), []engine.Acquire{a, b})
			return err
		}},
		{name: "a refresh", durable: true, call: func() error {
			_, err := store.Refresh(t.Context(), engine.Refresh{Key: a.Key, ID: lock.ID, Owner: "ann", TTL: time.Hour})
			return err
		}},
		{name: "a release", call: func() error { _, err := store.Release(t.Context(), b.Key, "ann"); return err }},
		{name: "a forced release", durable: true, call: func() error {
			_, err := store.ForceRelease(t.Context(), a.Key, lock.ID, note)
			return err
		}},
		{name: "a lease", durable: true, call: func() error { return claims.StartLease(t.Context(), instance, time.Hour) }},
		{name: "a lease that is kept", durable: true, call: func() error {
			return claims.KeepLease(t.Context(), instance, time.Hour)
		}},
		{name: "a claim", durable: true, call: func() error { _, err := claims.Enqueue(t.Context(), ended); return err }},
		{name: "another claim", durable: true, call: func() error {
			_, err := claims.Enqueue(t.Context(), forced)
			return err
		}},
		{name: "the note of a grant", durable: true, call: func() error {
			_, err := claims.NoteGrants(t.Context(), []uuid.UUID{ended.ID})
			return err
		}},
		{name: "the end of a connection", durable: true, call: func() error {
			_, err := claims.Disconnect(t.Context(), instance, "ended", ended.ID)
			return err
		}},
		{name: "a withdrawal", call: func() error {
			_, err := claims.Withdraw(t.Context(), instance, "ended", ended.ID)
			return err
		}},
		{name: "a forced withdrawal", durable: true, call: func() error {
			_, err := claims.ForceWithdraw(t.Context(), instance, "forced", forced.ID, note)
			return err
		}},
		{name: "the end of a lease", durable: true, call: func() error { return claims.EndLease(t.Context(), instance) }},
	} {
		exec(`DELETE FROM {schema}.committed`)
		if err := tt.call(); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		var got string
		query := s.NameSchema(`SELECT coalesce(string_agg(DISTINCT synchronous, ' '), 'nothing') FROM {schema}.committed`)
		if err := db.Pool().QueryRow(t.Context(), query).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]string{true: "on", false: "off"}[tt.durable]; got != want {
			t.Errorf("%s: its commit waits for the disk: %s, want %s", tt.name, got, want)
		}
	}
}
