package postgres

import (
	"errors"
	"time"

	"checkoutlock/database"
	"checkoutlock/schemas/fault"
)

// errRunAgain makes a transaction run again, because it sees the result of another one
// then.
var errRunAgain = errors.New("run the transaction again")

var errNoTenant = fault.New(fault.Malformed, "Unable to process request Tenant must be set")

// retryable reports whether a transaction that failed with err may run again.
func retryable(err error) bool {
	code, _ := database.SQLState(err)
	switch code {
	case database.SerializationFailure, database.DeadlockDetected, database.IdleInTransactionTimeout:
		return !errors.Is(err, database.ErrUnconfirmed)
	}
	return errors.Is(err, errRunAgain)
}

// toFault is database.ToFault with the faults of a tenant that is not served, and of a row
// lock that another commit holds.
func toFault(op string, err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	code, _ := database.SQLState(err)
	switch code {
	case database.UndefinedTable, database.InvalidSchemaName:
		return fault.Wrap(err, fault.UnknownTenant, "Unknown tenant: install it with POST /_/tenant")
	case database.UndefinedColumn:
		return fault.Wrap(err, fault.TenantNotReady, "The tenant's database is of an earlier version: upgrade it with POST /_/tenant")
	case database.LockNotAvailable:
		f := fault.New(fault.InUse, "A running commit uses it right now: try again, found while %s", op)
		f.RetryAfter, f.Err = time.Second, err
		return f
	}
	return database.ToFault(op, err)
}
