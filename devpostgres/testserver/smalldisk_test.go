package testserver

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestSmallDisk(t *testing.T) {
	t.Parallel()
	d := NewSmallDisk(t)
	pool, err := pgxpool.New(t.Context(), d.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	const grow = `CREATE TABLE grown AS SELECT repeat('x', 1000) FROM generate_series(1, 1000)`
	for range 2 {
		d.Fill(t)
		var refused *pgconn.PgError
		if _, err := pool.Exec(t.Context(), grow); !errors.As(err, &refused) || refused.Code != "53100" {
			t.Errorf("a full disk: got %v, want SQLSTATE 53100", err)
		}
		d.Free(t)
		for _, statement := range []string{grow, `DROP TABLE grown`} {
			if _, err := pool.Exec(t.Context(), statement); err != nil {
				t.Errorf("a disk with space: %v", err)
			}
		}
	}
}
