package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"checkoutlock/schemas/fault"
)

// SQLSTATE codes this package tells apart.
// https://www.postgresql.org/docs/current/errcodes-appendix.html
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	invalidSchemaName    = "3F000"
	undefinedTable       = "42P01"
	undefinedColumn      = "42703"
	lockNotAvailable     = "55P03"
	queryCanceled        = "57014"
	foreignKeyViolation  = "23503"
	uniqueViolation      = "23505"

	// A value that cannot be stored or compared.
	untranslatableCharacter   = "22P05"
	characterNotInRepertoire  = "22021"
	invalidTextRepresentation = "22P02"
	numericValueOutOfRange    = "22003"
	datetimeFieldOverflow     = "22008"
	invalidDatetimeFormat     = "22007"
	invalidTimeZone           = "22009"
	programLimitExceeded      = "54000" // above all a value too long for an index
)

// errRunAgain is a transaction that met another one half-way and finds its result
// when it runs again.
var errRunAgain = errors.New("run the transaction again")

var errNoTenant = fault.New(fault.Malformed, "Unable to process request Tenant must be set")

// sqlState returns err's SQLSTATE and the constraint it names, "" when it did
// not come from PostgreSQL.
func sqlState(err error) (code, constraint string) {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code, pg.ConstraintName
	}
	return "", ""
}

func retryable(err error) bool {
	code, _ := sqlState(err)
	return code == serializationFailure || code == deadlockDetected || errors.Is(err, errRunAgain)
}

// toFault turns what is left of PostgreSQL's errors into faults, saying what was
// being done. Faults pass unchanged, nil stays nil, and a cancelled context
// stays recognisable. Constraints with a meaning for callers are told apart
// where they are known, before this: an unknown one is Internal.
func toFault(op string, err error) error {
	var f *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return err
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", op, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(err, fault.Timeout, "timed out while %s", op)
	case errors.Is(err, pgx.ErrNoRows):
		return fault.Wrap(err, fault.NotFound, "Not found")
	}
	switch code, _ := sqlState(err); code {
	case undefinedTable, invalidSchemaName:
		return fault.Wrap(err, fault.Malformed, "Unknown tenant: install it with POST /_/tenant")
	case undefinedColumn:
		return fault.Wrap(err, fault.Internal, "The tenant's database is of an earlier version: upgrade it with POST /_/tenant")
	case queryCanceled:
		return fault.Wrap(err, fault.Timeout, "timed out while %s", op)
	case untranslatableCharacter, characterNotInRepertoire, invalidTextRepresentation, numericValueOutOfRange,
		datetimeFieldOverflow, invalidDatetimeFormat, invalidTimeZone, programLimitExceeded:
		// The checks before should have caught it; a caller's value all the same.
		return fault.Wrap(err, fault.Invalid, "A value is too long, too large or of a wrong form, found while %s", op)
	}
	return fault.Wrap(err, fault.Internal, "Internal server error while %s", op)
}
