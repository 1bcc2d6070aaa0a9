package database

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/golang-migrate/migrate/v4"
)

// repairDirty completes the migration that left the schema dirty. A schema that is
// not dirty stays as it is.
func (s Schema) repairDirty(_ *migrate.Migrate, d *migrationDriver) (err error) {
	if err := d.Lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Unlock()) }()
	version, dirty, err := d.Version()
	if err != nil || !dirty {
		return err
	}
	up, err := s.migrationFile(version, "up")
	if err != nil {
		return fmt.Errorf("version %d is dirty: %w", version, err)
	}
	upErr := d.runFile(up, version)
	if upErr == nil || !alreadyThere(upErr) {
		return upErr
	}
	down, err := s.migrationFile(version, "down")
	if err != nil {
		return err
	}
	if err := d.tryFile(down); err != nil {
		return fmt.Errorf("the schema has a part of migration %d, so a person must mend it: running it says %w, undoing it says %w", version, upErr, err)
	}
	s.Log.InfoContext(d.ctx, "the dirty migration was complete", "schema", s.Name, "version", version)
	return d.SetVersion(version, false)
}

// migrationFile returns the file that leads to a version, or back from it.
func (s Schema) migrationFile(version int, direction string) (string, error) {
	names, err := fs.Glob(s.Files, fmt.Sprintf("%s/%04d_*.%s.sql", s.Folder, version, direction))
	if err != nil || len(names) != 1 {
		return "", fmt.Errorf("this build has no migration %d: use a build that has it", version)
	}
	text, err := fs.ReadFile(s.Files, names[0])
	return string(text), err
}

// alreadyThere reports whether a statement failed because its name is taken.
func alreadyThere(err error) bool {
	const duplicateTable, duplicateColumn, duplicateObject, duplicateFunction = "42P07", "42701", "42710", "42723"
	code, _ := SQLState(err)
	return slices.Contains([]string{duplicateTable, duplicateColumn, duplicateObject, duplicateFunction}, code)
}

// tryFile returns the error with which a file fails, and rolls its work back.
func (d *migrationDriver) tryFile(file string) error {
	tx, err := d.conn.Begin(d.ctx)
	if err != nil {
		return err
	}
	err = d.exec(file)
	return errors.Join(err, tx.Rollback(d.ctx))
}
