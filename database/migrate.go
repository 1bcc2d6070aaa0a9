package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"

	"checkoutlock/schemas/fault"
)

// VersionTable is the table in each schema that holds the version of its migrations.
const VersionTable = "schema_migrations"

// Schema is a PostgreSQL schema with numbered migrations.
type Schema struct {
	Name string
	// URL is a direct connection, because migrations need a session of their own.
	URL string
	// Files hold the folder Folder with NNNN_name.{up,down}.sql. They name no schema, so
	// they run with Name as search_path.
	Files  fs.FS
	Folder string
	// Explain adds to the error of a dirty schema which command repairs it.
	Explain func(*DirtyError) error
	// Admit may end Up with an error. It runs under Lock, in the transaction that then creates the
	// schema. nil admits.
	Admit func(context.Context, pgx.Tx) error
	Log   *slog.Logger
}

// DirtyError is a schema whose migration to Version did not end.
type DirtyError struct{ Version int }

// Error implements error.
func (e *DirtyError) Error() string {
	return fmt.Sprintf("migration %d did not end and left the schema dirty", e.Version)
}

// lockSchemaSQL separates those who create or drop a schema. Two CREATE SCHEMA IF NOT
// EXISTS at once may fail on the catalogue's unique index. The lock ends with its
// transaction, so it also works through PgBouncer. The schema is foreign if it has tables and none
// of the first two of a tenant.
const lockSchemaSQL = `SELECT pg_advisory_xact_lock(hashtextextended($1, 0)),
       (SELECT count(*) > 0 AND bool_and(tablename NOT IN ('` + VersionTable + `', 'tenant_job')) FROM pg_tables WHERE schemaname = $1)`

// Lock waits for others that create or drop the schema, until tx ends. Fault: Invalid for the schema
// of another module, such as FOLIO's own of the same name.
func (s Schema) Lock(ctx context.Context, tx pgx.Tx) error {
	var foreign bool
	if err := tx.QueryRow(ctx, lockSchemaSQL, s.Name).Scan(nil, &foreign); err != nil {
		return fmt.Errorf("waiting for other instances: %w", err)
	}
	if foreign {
		return fault.New(fault.Invalid, "The schema %s holds the tables of another module and stays as it is: rename it first", s.Name)
	}
	return nil
}

// Up creates the schema if there is none, and runs the migrations that it lacks. Any
// number of instances may do so at once: an advisory lock lets one work, and the others
// wait and find nothing left to do. A schema that a newer build migrated stays as it is,
// because migrations do not break older builds. A schema below the first migration stays as it is too,
// and the error is fault.TenantNotReady.
func (s Schema) Up(ctx context.Context) error {
	return s.migrate(ctx, func(m *migrate.Migrate, d *migrationDriver) error {
		if err := s.create(ctx, d.conn); err != nil {
			return ToFault("creating the schema", err)
		}
		err := m.Up()
		if version, newer := s.isNewer(d); newer && errors.Is(err, fs.ErrNotExist) {
			s.Log.InfoContext(ctx, "a newer build has migrated the schema", "schema", s.Name, "version", version)
			return nil
		}
		return err
	})
}

// isNewer returns the schema's version, and whether it is above those of all files.
func (s Schema) isNewer(d *migrationDriver) (version int, newer bool) {
	version, _, err := d.Version()
	names, globErr := fs.Glob(s.Files, s.Folder+"/*.up.sql") // sorted
	if err != nil || globErr != nil || len(names) == 0 {
		return version, false
	}
	return version, path.Base(names[len(names)-1]) < fmt.Sprintf("%04d", version)
}

// create creates the schema in a transaction of its own.
func (s Schema) create(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := s.Lock(ctx, tx); err != nil {
			return err
		}
		if s.Admit != nil {
			if err := s.Admit(ctx, tx); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+pgx.Identifier{s.Name}.Sanitize())
		return err
	})
}

// Down undoes all migrations. All rows are lost; the empty schema stays.
func (s Schema) Down(ctx context.Context) error {
	return s.migrate(ctx, func(m *migrate.Migrate, _ *migrationDriver) error { return m.Down() })
}

// Repair completes the migration that left the schema dirty, and then runs Up. Each file
// is one transaction, so it left all of its work or nothing, and Repair finds out which.
// If neither is true, it fails and changes nothing.
func (s Schema) Repair(ctx context.Context) error {
	if err := s.migrate(ctx, s.repairDirty); err != nil {
		return err
	}
	return s.Up(ctx)
}

// migrate runs f with the migrations, on a connection of its own. It leaves another module's schema alone.
func (s Schema) migrate(ctx context.Context, f func(*migrate.Migrate, *migrationDriver) error) (err error) {
	files, err := iofs.New(s.Files, s.Folder)
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	driver, err := openMigrationDriver(ctx, s.URL, s.Name, s.Log)
	if err != nil {
		return errors.Join(ToFault("connecting for the migrations", err), files.Close())
	}
	m, err := migrate.NewWithInstance("iofs", files, "postgres", driver)
	if err != nil {
		return errors.Join(fmt.Errorf("preparing migrations: %w", err), files.Close(), driver.Close())
	}
	defer func() {
		sourceErr, dbErr := m.Close()
		err = errors.Join(err, sourceErr, dbErr)
	}()
	m.LockTimeout = math.MaxInt64 // the driver's lock ends with ctx
	stop := context.AfterFunc(ctx, func() { m.GracefulStop <- true })
	defer stop()
	err = pgx.BeginFunc(ctx, driver.conn, func(tx pgx.Tx) error { return s.Lock(ctx, tx) })
	if err == nil {
		err = f(m, driver)
	}
	var dirty migrate.ErrDirty
	switch {
	case errors.As(err, &dirty):
		return s.Explain(&DirtyError{dirty.Version})
	case errors.Is(err, fs.ErrNotExist): // no file has the schema's version
		return cmp.Or(s.refuseOld(files, driver), err)
	case ConnectionLost(err) || Lack(err) != "": // any other error is a defect
		return ToFault("running the migrations", err)
	case err != nil && !errors.Is(err, migrate.ErrNoChange):
		return err
	}
	return ctx.Err()
}

// refuseOld returns what to do about a schema below the first migration, nil for all others.
func (s Schema) refuseOld(files source.Driver, d *migrationDriver) error {
	version, _, err := d.Version()
	if err != nil {
		return err
	}
	first, err := files.First()
	if err != nil || version < 0 || version >= int(first) {
		return err
	}
	return fault.New(fault.TenantNotReady, "The schema %s has migration %d, and this build begins with migration %d: "+
		"first upgrade it with a revision that still has the migrations up to %[3]d", s.Name, version, first)
}
