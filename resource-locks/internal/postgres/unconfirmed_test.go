package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"checkoutlock/devpostgres/testserver"
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
	instance := uuid.New()
	if err := postgres.NewClaimStore(db).StartLease(t.Context(), instance, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Pool().Exec(t.Context(), `ALTER SYSTEM SET synchronous_standby_names = 'gone'`); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	claims := postgres.NewClaimStore(openServer(t, server.URL()))
	for name, call := range map[string]func(context.Context) error{
		"a new lease":          func(ctx context.Context) error { return claims.StartLease(ctx, uuid.New(), time.Hour) },
		"a lease that is kept": func(ctx context.Context) error { return claims.KeepLease(ctx, instance, time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := call(ctx); !fault.Is(err, fault.Timeout) {
				t.Errorf("got %v, want %s", err, fault.Timeout)
			}
		})
	}
}
