package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"checkoutlock/migrations"
	"checkoutlock/schemas/okapi"
)

// readyTimeout bounds one look at the server, so that a probe gets its answer
// before it gives up.
const readyTimeout = 3 * time.Second

// errReadOnly is a server that refuses writes.
var errReadOnly = errors.New("the database is read-only (a standby?)")

// readySQL asks the server for its mode beside what the statement in %s reads of
// the tenants.
const readySQL = `
SELECT server.read_only, coalesce(v.tenant, ''), coalesce(v.version, 0), coalesce(v.dirty, false)
FROM (SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS read_only) server
LEFT JOIN (%s) v ON true`

const noVersionsSQL = `SELECT '' AS tenant, 0::bigint AS version, false AS dirty WHERE false`

// Ready returns why the service cannot work, nil when it can: the database answers
// and takes writes, and these tenants have the migrations of this build. It is one
// statement, however many tenants there are. The text is safe to show.
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
		return db.notInstalled(ctx, ids)
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
	var errs []error
	for _, s := range judgeSchemas(ids, read, needed) {
		if problem := s.Problem(); problem != "" {
			errs = append(errs, errors.New(problem))
		}
	}
	return errors.Join(errs...)
}

// notInstalled names the tenants that have no table of versions.
func (db *DB) notInstalled(ctx context.Context, ids []okapi.Tenant) error {
	var errs []error
	for _, id := range ids {
		s, err := db.Schema(okapi.WithTenant(ctx, id))
		if err != nil {
			return db.unreachable(err)
		}
		if problem := s.Problem(); problem != "" {
			errs = append(errs, errors.New(problem))
		}
	}
	return errors.Join(errs...)
}

// Await returns when the database answers and takes writes. It waits for at most
// that long, and not at all for what waiting does not mend: a wrong password or an
// unknown database. 0 does not wait. The text of the error is safe to show.
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
		if err = db.Ready(ctx, nil); err == nil || isPermanent(err) {
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

// unreachableError is a database that did not answer. Its text names the servers and
// the cause, and neither user, password nor URL.
type unreachableError struct {
	hosts string
	err   error
}

// Error implements error.
func (e *unreachableError) Error() string {
	return "PostgreSQL at " + e.hosts + ": " + strings.Join(causes(e.err), "; ")
}

// Unwrap returns pgx's error.
func (e *unreachableError) Unwrap() error { return e.err }

func (db *DB) unreachable(err error) error {
	return &unreachableError{hosts: db.hosts, err: err}
}

// causes returns the texts of the innermost errors, each once: what stands around
// them names user and database.
func causes(err error) []string {
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
		for _, text := range causes(err) {
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
