package database

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/golang-migrate/migrate/v4/database"
	"github.com/jackc/pgx/v5"

	"checkoutlock/schemas/pace"
)

// migrationDriver runs golang-migrate's steps on one schema. Unlike the
// library's driver, it runs a file and the note of its version in one transaction, so a
// crash leaves no dirty version. It waits for its lock until its context ends. It uses
// the library's lock and table, as older builds do.
type migrationDriver struct {
	ctx  context.Context //nolint:containedctx // golang-migrate's methods have none
	conn *pgx.Conn
	// table is the table of versions, quoted.
	table string
	// lock is the key of the advisory lock.
	lock string
	// next is the version that the next file leads to.
	next int
	log  *slog.Logger
}

var _ database.Driver = (*migrationDriver)(nil)

// openMigrationDriver connects with the schema as search_path.
func openMigrationDriver(ctx context.Context, url, schema string, log *slog.Logger) (*migrationDriver, error) {
	cc, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the migration URL cannot be read as a PostgreSQL connection URL") // pgx's message may hold the password
	}
	for name := range cc.RuntimeParams {
		if strings.HasPrefix(name, "pool_") { // pgxpool's own, unknown to PostgreSQL
			delete(cc.RuntimeParams, name)
		}
	}
	boundConnect(cc)
	requirePrimary(url, cc)
	cc.RuntimeParams = migrationParameters(schema, cc.RuntimeParams)
	conn, err := pgx.ConnectConfig(ctx, cc)
	if ConnectionLost(err) && ctx.Err() == nil { // once more, as for reads
		conn, err = pgx.ConnectConfig(ctx, cc)
	}
	if err != nil {
		return nil, &unreachableError{hosts: strings.Join(hosts(cc), ", "), err: err}
	}
	d := &migrationDriver{ctx: ctx, conn: conn, log: log, table: pgx.Identifier{schema, VersionTable}.Sanitize()}
	var name string
	err = conn.QueryRow(ctx, `SELECT current_database()`).Scan(&name)
	if err == nil {
		d.lock, err = database.GenerateAdvisoryLockId(name, schema, VersionTable)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("naming the lock of migrations: %w", err), d.Close())
	}
	return d, nil
}

// migrationIdle ends a transaction of a process that froze. Only the creation of a schema and the
// trial of a repair have more than one statement, and they wait for nothing between those.
const migrationIdle = 5 * time.Second

// migrationParameters is sessionParameters for migrations, whose statements have no bound. A session
// that is idle for idleTimeout ends, and its lock with it: the process froze between two files.
func migrationParameters(schema string, url map[string]string) map[string]string {
	parameters := sessionBounds(0, migrationIdle)
	parameters["idle_session_timeout"] = milliseconds(idleTimeout)
	maps.Copy(parameters, url)
	parameters[isolationSetting] = readCommitted
	parameters["search_path"] = pgx.Identifier{schema}.Sanitize()
	parameters["statement_timeout"] = "0" // a role's own would end the wait for the lock
	return parameters
}

const (
	// closeTimeout bounds the last steps on a connection whose context has ended.
	closeTimeout = 5 * time.Second
	// fileTries is how often a file may run into a deadlock, each of which takes a second.
	fileTries = 20
	// briefLocks bounds how long a file waits for each of its locks, and others behind it. A backup has
	// its locks for minutes. A deadlock is found before, after a second.
	briefLocks = `SELECT set_config('lock_timeout', '1500ms', true);`
	// lockPause is how long the others go on before the file tries again.
	lockPause = 2 * time.Second
)

// Close implements database.Driver.
func (d *migrationDriver) Close() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), closeTimeout)
	defer cancel()
	return d.conn.Close(ctx)
}

// Lock implements database.Driver. It creates the table of versions if there is none.
func (d *migrationDriver) Lock() error {
	if _, err := d.conn.Exec(d.ctx, `SELECT pg_advisory_lock($1::bigint)`, d.lock); err != nil {
		return fmt.Errorf("waiting for the migrations of other instances: %w", err)
	}
	var there bool
	if err := d.conn.QueryRow(d.ctx, `SELECT to_regclass($1) IS NOT NULL`, d.table).Scan(&there); err != nil || there {
		return err
	}
	return d.exec(`CREATE TABLE ` + d.table + ` (version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)`)
}

// Unlock implements database.Driver. A connection that ends unlocks too.
func (d *migrationDriver) Unlock() error {
	if d.conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), closeTimeout)
	defer cancel()
	_, err := d.conn.Exec(ctx, `SELECT pg_advisory_unlock($1::bigint)`, d.lock)
	return err
}

// SetVersion implements database.Driver. golang-migrate announces each file by a dirty
// version. SetVersion only remembers that one, and Run notes it with the file's work.
func (d *migrationDriver) SetVersion(version int, dirty bool) error {
	if dirty {
		d.next = version
		return nil
	}
	return d.exec(d.versionSQL(version))
}

// Run implements database.Driver.
func (d *migrationDriver) Run(migration io.Reader) error {
	file, err := io.ReadAll(migration)
	if err != nil {
		return err
	}
	return d.runFile(string(file), d.next)
}

// runFile runs a file and notes its version. PostgreSQL runs the statements of one query
// in one transaction. After a deadlock with requests it runs them again, fileTries times in all. While a
// lock is held for long it tries again until its context ends.
func (d *migrationDriver) runFile(file string, version int) (err error) {
	for deadlocks, waits := 0, 0; deadlocks < fileTries; {
		err = d.exec(briefLocks + file + "\n;" + d.versionSQL(version))
		switch code, _ := SQLState(err); code {
		case DeadlockDetected:
			deadlocks++
		case LockNotAvailable:
			if waits++; waits == 1 {
				d.log.WarnContext(d.ctx, "a migration waits for the end of another transaction", "version", version, "err", err)
			}
			if !pace.Wait(d.ctx, lockPause) {
				return d.ctx.Err()
			}
		default:
			return err
		}
	}
	return err
}

// versionSQL returns the statements that note a complete version.
func (d *migrationDriver) versionSQL(version int) string {
	return fmt.Sprintf("DELETE FROM %[1]s; INSERT INTO %[1]s (version, dirty) SELECT %[2]d, false WHERE %[2]d >= 0;", d.table, version)
}

func (d *migrationDriver) exec(statements string) error {
	_, err := d.conn.PgConn().Exec(d.ctx, statements).ReadAll()
	return err
}

// Version implements database.Driver.
func (d *migrationDriver) Version() (version int, dirty bool, err error) {
	err = d.conn.QueryRow(d.ctx, `SELECT version, dirty FROM `+d.table).Scan(&version, &dirty)
	if errors.Is(err, pgx.ErrNoRows) {
		return database.NilVersion, false, nil
	}
	return version, dirty, err
}

// Open implements database.Driver. It has no caller.
func (d *migrationDriver) Open(string) (database.Driver, error) { return nil, errors.ErrUnsupported }

// Drop implements database.Driver. It has no caller.
func (d *migrationDriver) Drop() error { return errors.ErrUnsupported }
