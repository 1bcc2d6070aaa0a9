package postgres_test

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/devpostgres/testserver"
	"checkoutlock/resource-locks/internal/engine"
	"checkoutlock/resource-locks/internal/engine/enginetest"
	"checkoutlock/resource-locks/internal/postgres"
	"checkoutlock/schemas/fault"
)

// A primary whose standby is gone may be an old one: the standby may serve as the new one.
func TestStores_AnswerNothingWithoutTheStandby(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t, nil)
	db := openServer(t, server.URL())
	if err := db.Migrations().Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, instance := postgres.NewClaimStore(db), uuid.New()
	if err := before.StartLease(t.Context(), instance, time.Hour); err != nil {
		t.Fatal(err)
	}
	held := engine.Claim{ID: uuid.New(), Instance: instance, Namespace: "ns", Resources: []engine.Resource{{}}}
	if _, err := before.Enqueue(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	a := engine.Acquire{Key: engine.Key{Namespace: "ns", Name: "a"}, Owner: "ann", TTL: time.Hour}
	kept, free := a, a
	kept.Keep, free.Name = true, "free"
	if _, err := postgres.NewLockStore(db).Acquire(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Pool().Exec(t.Context(), `ALTER SYSTEM SET synchronous_standby_names = 'gone'`); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	db = openServer(t, server.URL())
	locks, claims := postgres.NewLockStore(db), postgres.NewClaimStore(db)
	acquire := func(a engine.Acquire) func(context.Context) error {
		return func(ctx context.Context) error { _, err := locks.Acquire(ctx, a); return err }
	}
	for name, call := range map[string]func(context.Context) error{
		"a new lock":             acquire(free),
		"a lock that is renewed": acquire(a),
		"a lock that is kept":    acquire(kept),
		"a new lease":            func(ctx context.Context) error { return claims.StartLease(ctx, uuid.New(), time.Hour) },
		"a lease that is kept":   func(ctx context.Context) error { return claims.KeepLease(ctx, instance, time.Hour) },
		"a grant that is seen": func(ctx context.Context) error {
			_, err := claims.NoteGrants(ctx, []uuid.UUID{held.ID})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { // one after the other: none waits for a connection or a row
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := call(ctx); !fault.Is(err, fault.Timeout) {
				t.Errorf("got %v, want %s", err, fault.Timeout)
			}
		})
	}
}

// Without a lock there is no other call that notices the old primary.
func TestClaims_LeaveAPrimaryThatKeepsNoLease(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t, nil)
	if err := openServer(t, server.URL()).Migrations().Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.Host += "," + other.Addr().String()
	db := openServer(t, u.String())
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	claims := engine.NewClaims(postgres.NewClaimStore(db), engine.NewRecent(1), log)
	if err := claims.RenewLease(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer enginetest.RunLoops(claims)()
	for _, statement := range []string{
		`ALTER SYSTEM SET synchronous_standby_names = 'gone'`, `SELECT pg_reload_conf()`,
	} {
		if _, err := db.Pool().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.(*net.TCPListener).SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	conn, err := other.Accept()
	if err != nil {
		t.Fatalf("the process does not try another host: %v", err)
	}
	_ = conn.Close()
}
