package database_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/database"
	"checkoutlock/devpostgres/testserver"
)

// grownTable is a table that PostgreSQL has found empty, and a connection with a plan from then.
type grownTable struct {
	*testing.T
	db   *database.DB
	name string
}

func newGrownTable(t *testing.T) grownTable {
	t.Helper()
	cfg := database.Settings{URL: testserver.URL(t), MaxConns: 2}
	db, err := database.Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	g := grownTable{T: t, db: db, name: "grown_" + rand.Text()}
	g.exec(`CREATE TABLE ` + g.name + ` (id uuid PRIMARY KEY, filler text)`)
	t.Cleanup(func() {
		if _, err := db.Urgent.Exec(context.WithoutCancel(t.Context()), `DROP TABLE `+g.name); err != nil {
			t.Error(err)
		}
	})
	g.exec(`VACUUM ANALYZE ` + g.name)
	if !g.scansTable() {
		t.Fatal("the empty table is not read as a whole, so there is nothing to test")
	}
	return g
}

func (g grownTable) exec(sql string, args ...any) {
	g.Helper()
	if _, err := g.db.Urgent.Exec(g.Context(), sql, args...); err != nil {
		g.Fatal(err)
	}
}

// scansTable finds a row by its id in the pool's only ordinary connection, and reports whether
// PostgreSQL read the whole table.
func (g grownTable) scansTable() bool {
	g.Helper()
	// The counter has also what ran before.
	const countSQL = `SELECT coalesce(sum(seq_scan), 0) FROM pg_stat_xact_user_tables WHERE relname = lower($1)`
	var before, after int
	err := pgx.BeginFunc(g.Context(), g.db.Ordinary, func(tx pgx.Tx) error {
		if _, err := tx.Exec(g.Context(), `SET LOCAL plan_cache_mode = force_generic_plan`); err != nil {
			return err
		}
		if err := tx.QueryRow(g.Context(), countSQL, g.name).Scan(&before); err != nil {
			return err
		}
		if _, err := tx.Exec(g.Context(), `SELECT FROM `+g.name+` WHERE id = $1`, uuid.New()); err != nil {
			return err
		}
		return tx.QueryRow(g.Context(), countSQL, g.name).Scan(&after)
	})
	if err != nil {
		g.Fatal(err)
	}
	return after > before
}

const addRowsSQL = ` SELECT gen_random_uuid(), repeat('x', 500) FROM generate_series(1, $1::int)`

func TestDB_RenewsPlansAsTablesGrow(t *testing.T) {
	t.Parallel()
	for name, add := range map[string]func(g grownTable, insert string){
		"by a statement": func(g grownTable, insert string) { g.exec(insert, 3000) },
		"row by row, beside a larger table": func(g grownTable, insert string) {
			g.exec(`CREATE TEMPORARY TABLE larger (id uuid, filler text)`)
			g.exec(`INSERT INTO larger`+addRowsSQL, 3000)
			g.scansTable() // plans anew
			for range 300 {
				g.exec(insert, 1)
			}
		},
		"by a batch": func(g grownTable, insert string) {
			var batch pgx.Batch
			batch.Queue(insert, 3000)
			if err := g.db.Urgent.SendBatch(g.Context(), &batch).Close(); err != nil {
				g.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGrownTable(t)
			add(g, `INSERT INTO `+g.name+addRowsSQL)
			if g.scansTable() {
				t.Error("the plan for the empty table is still in use")
			}
		})
	}
	t.Run("a connection that was lost meanwhile is replaced", func(t *testing.T) {
		t.Parallel()
		g := newGrownTable(t)
		g.exec(`INSERT INTO `+g.name+addRowsSQL, 3000)
		err := g.db.Ordinary.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
			g.exec(`SELECT pg_terminate_backend($1, 60000)`, conn.Conn().PgConn().PID())
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		g.exec(`INSERT INTO `+g.name+addRowsSQL, 20000)
		if g.scansTable() {
			t.Error("the new connection reads the whole table")
		}
	})
}
