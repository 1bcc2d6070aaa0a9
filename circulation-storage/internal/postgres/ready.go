package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/readiness"
	"checkoutlock/database"
	"checkoutlock/migrations"
	"checkoutlock/schemas/okapi"
)

// readySQL reads the server's mode, and beside it what the statement in %s reads of the
// tenants.
const readySQL = `
SELECT server.mode, coalesce(v.tenant, ''), coalesce(v.version, 0), coalesce(v.dirty, false)
FROM (SELECT ` + database.ModeSQL + ` AS mode) server
LEFT JOIN (%s) v ON true`

const noVersionsSQL = `SELECT '' AS tenant, 0::bigint AS version, false AS dirty WHERE false`

// Ready returns why the service cannot work. It returns nil if the database answers and
// takes writes, and these tenants have the migrations of this build. It runs one
// statement for any number of tenants. The text is safe to show.
func (db *DB) Ready(ctx context.Context, ids []okapi.Tenant) error {
	ctx, cancel := context.WithTimeout(ctx, database.ReadyTimeout)
	defer cancel()
	versions := noVersionsSQL
	if len(ids) > 0 {
		versions = versionsSQL(ids)
	}
	var mode string
	var v schemaVersion
	var read []schemaVersion
	err := db.conns.Read(ctx, func() error {
		read = nil
		rows, _ := db.urgent.Query(ctx, fmt.Sprintf(readySQL, versions)) // a Query error surfaces in ForEachRow
		_, err := pgx.ForEachRow(rows, []any{&mode, &v.Tenant, &v.Version, &v.Dirty}, func() error {
			read = append(read, v)
			return nil
		})
		return err
	})
	switch {
	case missesTable(err):
		return db.nameMissing(ctx, ids)
	case err != nil:
		return db.conns.Unreachable(err)
	}
	if err := db.conns.JudgeMode(mode); err != nil {
		return err
	}
	needed, err := migrations.Latest()
	if err != nil {
		return err
	}
	return joinProblems(judgeSchemas(ids, read, needed))
}

// joinProblems returns what keeps the service from using the schemas, nil for nothing.
func joinProblems(schemas []readiness.Schema) error {
	var errs []error
	for _, s := range schemas {
		if problem := s.Problem(); problem != "" {
			errs = append(errs, errors.New(problem))
		}
	}
	return errors.Join(errs...)
}

// nameMissing returns an error that names the tenants without a table of versions.
func (db *DB) nameMissing(ctx context.Context, ids []okapi.Tenant) error {
	var schemas []readiness.Schema
	for _, id := range ids {
		s, err := db.Schema(okapi.WithTenant(ctx, id))
		if err != nil {
			return db.conns.Unreachable(err)
		}
		schemas = append(schemas, s)
	}
	return joinProblems(schemas)
}

// Await waits until the database answers and takes writes, for patience at most; 0 does
// not wait. It does not wait after errors that waiting does not mend. The text of the
// error is safe to show.
func (db *DB) Await(ctx context.Context, patience time.Duration) error {
	if err := db.conns.Await(ctx, patience, func(ctx context.Context) error { return db.Ready(ctx, nil) }); err != nil {
		return fmt.Errorf("connecting to the database of DATABASE_URL: %w", err)
	}
	return nil
}
