package database_test

import (
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/devpostgres/testserver"
)

// openWith opens the tests' database with a parameter in its URL.
func openWith(t *testing.T, name, value string, statement time.Duration) *database.DB {
	t.Helper()
	u, err := url.Parse(testserver.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // pgx takes + for itself
	cfg := database.Settings{URL: u.String(), MaxConns: 2, StatementTimeout: statement}
	db, err := database.Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// TestOpen_SessionsAreReadCommitted sets the level as ALTER DATABASE and ALTER ROLE do, and in the
// URL itself.
func TestOpen_SessionsAreReadCommitted(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		for name, value := range map[string]string{
			"options":                       "-c default_transaction_isolation=" + strings.ReplaceAll(level, " ", `\ `),
			"default_transaction_isolation": level,
		} {
			for _, statement := range []time.Duration{0, time.Second} {
				t.Run(level+" by "+name+", statements of "+statement.String(), func(t *testing.T) {
					t.Parallel()
					db := openWith(t, name, value, statement)
					for _, pool := range []*pgxpool.Pool{db.Urgent, db.Ordinary} {
						var got string
						err := pool.QueryRow(t.Context(), `SHOW transaction_isolation`).Scan(&got)
						if err != nil || got != "read committed" {
							t.Errorf("got %q, %v, want read committed", got, err)
						}
					}
				})
			}
		}
	}
}
