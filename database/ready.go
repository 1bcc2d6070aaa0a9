package database

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"checkoutlock/schemas/fault"
	"checkoutlock/schemas/pace"
)

// readyTimeout bounds one check of the server, so that it answers a probe before the
// probe gives up.
const readyTimeout = 3 * time.Second

// errReadOnly means that the server refuses writes.
var errReadOnly = errors.New("the database is read-only (a standby?)")

// errIsolation means that statements through PgBouncer have another isolation level.
var errIsolation = errors.New("the database's isolation level must be READ COMMITTED")

const readOnly = "read-only"

// readySQL reads the server's mode. A versionSQL follows for each schema, with its place in a list.
const readySQL = `
SELECT server.mode, v.place, coalesce(v.version, 0), coalesce(v.dirty, false)
  FROM (SELECT CASE WHEN pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean THEN '` + readOnly + `'
               ELSE current_setting('transaction_isolation') END AS mode) server
  LEFT JOIN (SELECT NULL::integer AS place, 0::bigint AS version, false AS dirty WHERE false`

const versionSQL = `
             UNION ALL SELECT {place}, version, dirty FROM {schema}.` + VersionTable

// SchemaState is how far the migrations of a schema are.
type SchemaState struct {
	// Installed means that the schema has a table of versions.
	Installed bool
	Version   uint // the last migration that ran; 0 is none
	Dirty     bool // it did not end
}

// ReadSchemas returns the states of the schemas, in their order, on an ordinary connection. It is
// one statement for any number of them, unless one is not installed.
func (db *DB) ReadSchemas(ctx context.Context, schemas ...string) ([]SchemaState, error) {
	_, states, err := readSchemas(ctx, db.Ordinary, schemas)
	return states, err
}

// CheckServer is ReadSchemas on an urgent connection. It returns an error also if the server cannot
// be used. The error's text is safe to show.
func (db *DB) CheckServer(ctx context.Context, schemas ...string) ([]SchemaState, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var mode string
	var states []SchemaState
	err := db.Read(ctx, func() (err error) {
		mode, states, err = readSchemas(ctx, db.Urgent, schemas)
		return err
	})
	if err != nil {
		return nil, &unreachableError{hosts: db.Hosts, err: err}
	}
	return states, db.judgeMode(mode)
}

func readSchemas(ctx context.Context, pool *pgxpool.Pool, schemas []string) (mode string, states []SchemaState, err error) {
	var statement strings.Builder
	statement.WriteString(readySQL)
	for place, schema := range schemas {
		statement.WriteString(strings.Replace(NameSchema(schema, versionSQL), "{place}", strconv.Itoa(place), 1))
	}
	statement.WriteString(`) v ON true`)
	states = slices.Repeat([]SchemaState{{Installed: true}}, len(schemas))
	var place *int
	var version int64
	var dirty bool
	rows, _ := pool.Query(ctx, statement.String()) // its error is also that of the rows
	_, err = pgx.ForEachRow(rows, []any{&mode, &place, &version, &dirty}, func() error {
		if place != nil {
			states[*place].Version, states[*place].Dirty = uint(max(version, 0)), dirty // -1 stands for no migration
		}
		return nil
	})
	code, _ := SQLState(err)
	switch {
	case code != UndefinedTable && code != InvalidSchemaName:
		return mode, states, err
	case len(schemas) == 1:
		mode, _, err = readSchemas(ctx, pool, nil)
		return mode, []SchemaState{{}}, err
	}
	for place := range schemas {
		var one []SchemaState
		mode, one, err = readSchemas(ctx, pool, schemas[place:place+1])
		if err != nil {
			return "", nil, err
		}
		states[place] = one[0]
	}
	return mode, states, nil
}

// judgeMode returns why the server cannot be used, by its mode in readySQL. Its text is safe
// to show. It drops the connections to a server that is read-only, because new ones may lead
// to the new primary. A server that lacks space, memory or a working disk cannot be used either,
// until a probe has written something.
func (db *DB) judgeMode(mode string) error {
	db.readOnly.Store(mode == readOnly)
	switch mode {
	case readCommitted:
		if lack := db.lack.current(); lack != "" {
			return errors.New(lack)
		}
		return nil
	case readOnly:
		db.Reset()
		return errReadOnly
	}
	return fmt.Errorf("%w, and is %s: ALTER ROLE ... SET %s = '%s' for the user of DATABASE_URL, then RECONNECT in PgBouncer",
		errIsolation, strings.ToUpper(mode), isolationSetting, readCommitted)
}

// Await waits until the database answers and takes writes, for patience at most; 0 does not
// wait. Then it calls prepare, nil for nothing, and begins again if the database went away meanwhile, or
// confirmed no commit. It does not wait after errors that waiting does not mend, such as a wrong password,
// an unknown database or another isolation level. The text of its error is safe to show.
func (db *DB) Await(ctx context.Context, patience time.Duration, prepare func() error) error {
	begun := time.Now()
	for waiting := false; ; waiting = true {
		again, err := db.prepare(ctx, prepare)
		left := patience - time.Since(begun)
		switch {
		case patience == 0, !again:
			return err
		case left <= 0:
			return fmt.Errorf("%w (waited for %s)", err, patience)
		case !waiting:
			db.log.InfoContext(ctx, "waiting for the database", "for", patience.String(), "err", err)
		}
		if !pace.Wait(ctx, min(left, awaitInterval)) {
			return ctx.Err()
		}
	}
}

// prepare checks the server and calls f, which may be nil. again reports whether waiting may mend the error.
func (db *DB) prepare(ctx context.Context, f func() error) (again bool, err error) {
	if _, err := db.CheckServer(ctx); err != nil {
		return !isPermanent(err), fmt.Errorf("connecting to the database of DATABASE_URL: %w", err)
	}
	if f == nil {
		return false, nil
	}
	err = f()
	unconfirmed := fault.Is(err, fault.Timeout) // the standby is away, or another host is the primary by now
	return (IsUnreachable(err) || unconfirmed) && !isPermanent(err), err
}

const awaitInterval = 500 * time.Millisecond

// isPermanent reports whether the server refused this user, password or database, or has
// another isolation level.
func isPermanent(err error) bool {
	const invalidAuthorization, unknownDatabase, noPrivilege = "28", "3D000", "42501"
	code, _ := SQLState(err)
	return strings.HasPrefix(code, invalidAuthorization) || code == unknownDatabase || code == noPrivilege || errors.Is(err, errIsolation)
}
