package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"checkoutlock/schemas/fault"
)

// SQLSTATE codes that this package distinguishes.
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

	// The session has ended, cannot begin, or cannot write.
	connectionException      = "08" // the class
	readOnlyTransaction      = "25006"
	idleInTransactionTimeout = "25P03"
	tooManyConnections       = "53300"
	adminShutdown            = "57P01"
	crashShutdown            = "57P02"
	cannotConnectNow         = "57P03"
	idleSessionTimeout       = "57P05"

	// A value that cannot be stored or compared.
	untranslatableCharacter   = "22P05"
	characterNotInRepertoire  = "22021"
	invalidTextRepresentation = "22P02"
	numericValueOutOfRange    = "22003"
	datetimeFieldOverflow     = "22008"
	invalidDatetimeFormat     = "22007"
	invalidTimeZone           = "22009"
	programLimitExceeded      = "54000" // mostly a value too long for an index
)

// errRunAgain makes a transaction run again, because it sees the result of another one
// then.
var errRunAgain = errors.New("run the transaction again")

var errNoTenant = fault.New(fault.Malformed, "Unable to process request Tenant must be set")

// sqlState returns err's SQLSTATE and the constraint that it names, "" if err is not
// PostgreSQL's.
func sqlState(err error) (code, constraint string) {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code, pg.ConstraintName
	}
	return "", ""
}

// retryable reports whether a transaction that failed with err may run again.
func retryable(err error) bool {
	code, _ := sqlState(err)
	switch code {
	case serializationFailure, deadlockDetected, idleInTransactionTimeout:
		return !errors.Is(err, errUnconfirmed)
	}
	return errors.Is(err, errRunAgain)
}

// isOutageCode reports whether the SQLSTATE means that PostgreSQL stops, restarts, has too
// many sessions, or is a standby.
func isOutageCode(code string) bool {
	switch code {
	case readOnlyTransaction, tooManyConnections, adminShutdown, crashShutdown, cannotConnectNow, idleSessionTimeout:
		return true
	}
	return strings.HasPrefix(code, connectionException)
}

// connectionLost reports whether err means that PostgreSQL was not reached, went away, or cannot
// write. PostgreSQL may have run the statement.
func connectionLost(err error) bool {
	var connect *pgconn.ConnectError
	var network *net.OpError
	code, _ := sqlState(err)
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &connect), isOutageCode(code):
		return true
	case errors.Is(err, context.DeadlineExceeded), code != "":
		return false
	}
	return pgconn.SafeToRetry(err) || errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// toFault turns PostgreSQL's errors into faults; op says what was being done. Faults
// pass unchanged, nil stays nil, and a cancelled context stays recognisable. Callers
// explain the constraints that they know before this; any other one is Internal.
func toFault(op string, err error) error {
	var f *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return err
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", op, err)
	case connectionLost(err):
		return fault.Wrap(err, fault.Unavailable, "PostgreSQL was not reached, or went away, while %s", op)
	case errors.Is(err, errUnconfirmed), errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(err, fault.Timeout, "timed out while %s", op)
	case errors.Is(err, pgx.ErrNoRows):
		return fault.Wrap(err, fault.NotFound, "Not found")
	}
	code, _ := sqlState(err)
	switch code {
	case undefinedTable, invalidSchemaName:
		return fault.Wrap(err, fault.UnknownTenant, "Unknown tenant: install it with POST /_/tenant")
	case undefinedColumn:
		return fault.Wrap(err, fault.TenantNotReady, "The tenant's database is of an earlier version: upgrade it with POST /_/tenant")
	case queryCanceled, idleInTransactionTimeout:
		return fault.Wrap(err, fault.Timeout, "timed out while %s", op)
	case lockNotAvailable:
		f := fault.New(fault.InUse, "A running commit uses it right now: try again, found while %s", op)
		f.RetryAfter, f.Err = time.Second, err
		return f
	case untranslatableCharacter, characterNotInRepertoire, invalidTextRepresentation, numericValueOutOfRange,
		datetimeFieldOverflow, invalidDatetimeFormat, invalidTimeZone, programLimitExceeded:
		// The checks before should have refused it, but it is the caller's value.
		return fault.Wrap(err, fault.Invalid, "A value is too long, too large or of a wrong form, found while %s", op)
	}
	return fault.Wrap(err, fault.Internal, "Internal server error while %s", op)
}
