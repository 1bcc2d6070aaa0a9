package database

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"checkoutlock/schemas/fault"
)

// SQLSTATE codes that the services distinguish.
// https://www.postgresql.org/docs/current/errcodes-appendix.html
const (
	SerializationFailure     = "40001"
	DeadlockDetected         = "40P01"
	InvalidSchemaName        = "3F000"
	UndefinedTable           = "42P01"
	UndefinedColumn          = "42703"
	LockNotAvailable         = "55P03"
	QueryCanceled            = "57014"
	ForeignKeyViolation      = "23503"
	UniqueViolation          = "23505"
	IdleInTransactionTimeout = "25P03"
)

// SQLSTATE codes of this package.
const (
	// The session has ended, cannot begin, or cannot write.
	connectionException = "08" // the class
	readOnlyTransaction = "25006"
	tooManyConnections  = "53300"
	inRecovery          = "55000" // of OnPrimary
	adminShutdown       = "57P01"
	crashShutdown       = "57P02"
	cannotConnectNow    = "57P03"
	idleSessionTimeout  = "57P05"

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

// SQLState returns err's SQLSTATE and the constraint that it names, "" if err is not
// PostgreSQL's.
func SQLState(err error) (code, constraint string) {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code, pg.ConstraintName
	}
	return "", ""
}

// isOutageCode reports whether the SQLSTATE means that PostgreSQL stops, restarts, or is a standby.
func isOutageCode(code string) bool {
	switch code {
	case readOnlyTransaction, inRecovery, adminShutdown, crashShutdown, cannotConnectNow, idleSessionTimeout:
		return true
	}
	return strings.HasPrefix(code, connectionException)
}

// ConnectionLost reports whether err means that PostgreSQL was not reached, refused one more
// connection, went away, or cannot write. PostgreSQL may have run the statement.
func ConnectionLost(err error) bool {
	var connect *pgconn.ConnectError
	var network *net.OpError
	code, _ := SQLState(err)
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &connect), code == tooManyConnections, isOutageCode(code), lacks[code] != "" && Lack(err) == "":
		return true
	case errors.Is(err, context.DeadlineExceeded), code != "":
		return false
	}
	return pgconn.SafeToRetry(err) || errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func isReadOnly(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == readOnlyTransaction || pg.Code == inRecovery && !endsSession(pg))
}

// lackRetryAfter is the Retry-After of a refusal by a database without space: it takes a person.
const lackRetryAfter = 5 * time.Second

// IsUnreachable reports whether err means that the database did not answer, or takes no writes.
func IsUnreachable(err error) bool {
	_, ok := errors.AsType[*unreachableError](err)
	return ok || fault.Is(err, fault.Unavailable) || errors.Is(err, errReadOnly)
}

// ToFault turns PostgreSQL's errors into faults; op says what was being done. Faults
// pass unchanged, nil stays nil, and a cancelled context stays recognisable. Callers
// explain the constraints and codes that they know before this; any other one is
// Internal.
func ToFault(op string, err error) error {
	var f *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return err
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", op, err)
	case isReadOnly(err):
		return fault.Wrap(err, fault.Unavailable, "PostgreSQL was reached and is read-only (a standby?), found while %s", op)
	case ConnectionLost(err):
		return fault.Wrap(err, fault.Unavailable, "No PostgreSQL that takes writes was reached, or it went away, while %s", op)
	case errors.Is(err, ErrUnconfirmed), errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(err, fault.Timeout, "timed out while %s", op)
	case errors.Is(err, pgx.ErrNoRows):
		return fault.Wrap(err, fault.NotFound, "Not found")
	}
	if lack := Lack(err); lack != "" {
		return &fault.Error{
			Code: fault.Unavailable, Msg: lack, RetryAfter: lackRetryAfter, Unchanged: true, Err: fmt.Errorf("%s: %w", op, err),
		}
	}
	code, _ := SQLState(err)
	switch code {
	case QueryCanceled, IdleInTransactionTimeout, DeadlockDetected, SerializationFailure: // or its attempts are used up
		return fault.Wrap(err, fault.Timeout, "timed out while %s", op)
	case untranslatableCharacter, characterNotInRepertoire, invalidTextRepresentation, numericValueOutOfRange,
		datetimeFieldOverflow, invalidDatetimeFormat, invalidTimeZone, programLimitExceeded:
		// The checks before should have refused it, but it is the caller's value.
		return fault.Wrap(err, fault.Invalid, "A value is too long, too large or of a wrong form, found while %s", op)
	}
	return fault.Wrap(err, fault.Internal, "Internal server error while %s", op)
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

// listCauses returns the texts of the innermost errors, each once. The errors that wrap them
// name user and database.
func listCauses(err error) []string {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
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
