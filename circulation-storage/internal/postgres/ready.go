package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"checkoutlock/schemas/okapi"
)

// Ready returns why the service cannot work. It returns nil if the database answers and
// takes writes, and these tenants have the migrations of this build. It runs one
// statement for any number of tenants. The text is safe to show.
func (db *DB) Ready(ctx context.Context, ids []okapi.Tenant) error {
	states, err := db.conns.CheckServer(ctx, schemaNames(ids)...)
	if err != nil {
		return err
	}
	schemas, err := compareSchemas(ids, states)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range schemas {
		if problem := s.Problem(); problem != "" {
			errs = append(errs, errors.New(problem))
		}
	}
	return errors.Join(errs...)
}

// Await waits until the database answers and takes writes, for patience at most; 0 does
// not wait. It does not wait after errors that waiting does not mend. The text of the
// error is safe to show.
func (db *DB) Await(ctx context.Context, patience time.Duration) error {
	if err := db.conns.Await(ctx, patience); err != nil {
		return fmt.Errorf("connecting to the database of DATABASE_URL: %w", err)
	}
	return nil
}
