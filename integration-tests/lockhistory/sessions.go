package lockhistory

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
)

// CyclesPerEnd is how often clients use a lock between two calls of EndSessions. A slow host
// thus loses no more answers than a fast one.
const CyclesPerEnd = 8

// endedSessions is how many sessions end at once. On a slow host, each client has a
// statement that runs; to end them all would lose most answers.
const endedSessions = 3

// NameSessions returns the address of a database, a URL, with a name for its sessions. No other test
// has the name.
func NameSessions(t *testing.T, databaseURL, name string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("application_name", name)
	u.RawQuery = query.Encode()
	return u.String()
}

// EndSessions ends a few sessions of that name, first those that work. databaseURL does not have the
// name.
func EndSessions(ctx context.Context, databaseURL, name string) (err error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connecting to end sessions: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if _, err := conn.Exec(ctx, `
SELECT pg_terminate_backend(pid)
FROM (
	SELECT pid FROM pg_stat_activity WHERE application_name = $1 ORDER BY state = 'idle', random() LIMIT $2
) AS s`, name, endedSessions); err != nil {
		return fmt.Errorf("ending sessions: %w", err)
	}
	return nil
}
