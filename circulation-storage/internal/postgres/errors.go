package postgres

import (
	"errors"
	"time"

	"checkoutlock/database"
	"checkoutlock/schemas/fault"
)

var errNoTenant = fault.New(fault.Malformed, "Unable to process request Tenant must be set")

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
