package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/circulation-storage/internal/readiness"
	"checkoutlock/migrations"
	"checkoutlock/schemas/okapi"
)

// readyTimeout bounds one check of the server, so that it answers a probe before the
// probe gives up.
const readyTimeout = 3 * time.Second

// errReadOnly means that the server refuses writes.
var errReadOnly = errors.New("the database is read-only (a standby?)")

// readySQL reads the server's mode, and beside it what the statement in %s reads of the
// tenants.
const readySQL = `
SELECT server.read_only, coalesce(v.tenant, ''), coalesce(v.version, 0), coalesce(v.dirty, false)
FROM (SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS read_only) server
LEFT JOIN (%s) v ON true`

const noVersionsSQL = `SELECT '' AS tenant, 0::bigint AS version, false AS dirty WHERE false`

// Ready returns why the service cannot work. It returns nil if the database answers and
// takes writes, and these tenants have the migrations of this build. It runs one
// statement for any number of tenants. The text is safe to show.
func (db *DB) Ready(ctx context.Context, ids []okapi.Tenant) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	versions := noVersionsSQL
	if len(ids) > 0 {
		versions = versionsSQL(ids)
	}
	var readOnly bool
	var v schemaVersion
	var read []schemaVersion
	err := db.read(ctx, func() error {
		read = nil
		rows, _ := db.lending.Query(ctx, fmt.Sprintf(readySQL, versions)) // a Query error surfaces in ForEachRow
		_, err := pgx.ForEachRow(rows, []any{&readOnly, &v.Tenant, &v.Version, &v.Dirty}, func() error {
			read = append(read, v)
			return nil
		})
		return err
	})
	switch {
	case missesTable(err):
		return db.nameMissing(ctx, ids)
	case err != nil:
		return db.unreachable(err)
	case readOnly:
		db.resetPools() // new connections may lead to the new primary
		return errReadOnly
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
			return db.unreachable(err)
		}
		schemas = append(schemas, s)
	}
	return joinProblems(schemas)
}

// Await waits until the database answers and takes writes, for patience at most; 0 does
// not wait. It does not wait after errors that waiting does not mend, such as a wrong
// password or an unknown database. The text of the error is safe to show.
func (db *DB) Await(ctx context.Context, patience time.Duration) error {
	err := db.Ready(ctx, nil)
	if err == nil || patience == 0 || isPermanent(err) {
		return err
	}
	db.log.InfoContext(ctx, "waiting for the database", "for", patience.String(), "err", err)
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(awaitInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return fmt.Errorf("%w (waited for %s)", err, patience)
		case <-tick.C:
		}
		err = db.Ready(ctx, nil)
		if err == nil || isPermanent(err) {
			return err
		}
	}
}

const awaitInterval = 500 * time.Millisecond

// isPermanent reports whether the server refused this user, password or database.
func isPermanent(err error) bool {
	code, _ := sqlState(err)
	const invalidAuthorization, unknownDatabase = "28", "3D000"
	return strings.HasPrefix(code, invalidAuthorization) || code == unknownDatabase
}

// unreachableError means that the database did not answer. Its text names the servers
// and the cause, and neither user, password nor URL.
type unreachableError struct {
	hosts string
	err   error
}

// Error implements error.
func (e *unreachableError) Error() string {
	return "PostgreSQL at " + e.hosts + ": " + strings.Join(listCauses(e.err), "; ")
}

// Unwrap returns pgx's error.
func (e *unreachableError) Unwrap() error { return e.err }

func (db *DB) unreachable(err error) error {
	return &unreachableError{hosts: db.hosts, err: err}
}

// listCauses returns the texts of the innermost errors, each once. The errors that wrap them
// name user and database.
func listCauses(err error) []string {
	if errors.Is(err, context.DeadlineExceeded) {
		return []string{"no answer in time"}
	}
	inner := []error{}
	switch wrapped := err.(type) { //nolint:errorlint // it takes the chain apart
	case interface{ Unwrap() error }:
		inner = append(inner, wrapped.Unwrap())
	case interface{ Unwrap() []error }:
		inner = wrapped.Unwrap()
	}
	var texts []string
	for _, err := range inner {
		if err == nil {
			continue
		}
		for _, text := range listCauses(err) {
			if !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	if len(texts) == 0 {
		return []string{err.Error()}
	}
	return texts
}
